package printable

import "regexp"

// packages are the single words before an error, at the start, in brackets or after another clause: these are names of packages. What they follow
// is the first group.
const packages = `(?:(^|[(;] ?|: )(?:[\w-]+: )+)?`

// plain has the errors that Go and its libraries are known for, each with what it says to an operator. The single words
// before an error, which are names of packages, go with it.
var plain = []struct {
	error *regexp.Regexp
	says  string
}{
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?dial \w+ (\S+): connect: connection refused`), "${1}nothing listens on ${3}"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?dial \w+ (\S+): (?:i/o timeout|connect: (?:connection timed out|no route to host|network is unreachable))`), "${1}${3} cannot be reached"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?dial \w+: lookup (\S+?)(?: on \S+)?: (?:no such host|server misbehaving)`), "${1}the name ${3} is not known"},
	{regexp.MustCompile(packages + `(?:read|write) \w+ \S+->(\S+): (?:(?:read|write): )?(?:connection reset by peer|broken pipe)`), "${1}${2} has cut the connection"},
	{regexp.MustCompile(packages + `(?:read|write) \w+ \S+->(\S+): i/o timeout`), "${1}${2} does not answer in time"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?(?:context deadline exceeded|net/http: request canceled)(?: \([^)]*\))?`), "${1}it does not answer in time"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?(?:unexpected EOF|EOF)\b`), "${1}the connection was cut"},
	{regexp.MustCompile(packages + `Exception \(\d+\) Reason: "([^"]*)"`), "${1}RabbitMQ says: ${2}"},
	{regexp.MustCompile(packages + `(?:WRONGPASS|NOAUTH)[^;)]*`), "${1}the password is refused"},
	{regexp.MustCompile(packages + `(?:tls: failed to verify certificate: )?x509: ([^;)]*)`), "${1}its certificate is not valid: ${2}"},
	{regexp.MustCompile(packages + `(?:\w+ \S+: )?no space left on device`), "${1}the disk is full"},
}

// Plainly is a text without the words of Go's errors.
func Plainly(text string) string {
	for _, p := range plain {
		text = p.error.ReplaceAllString(text, p.says)
	}
	return text
}
