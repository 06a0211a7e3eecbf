package printable

import "regexp"

// plain has the errors that Go and its libraries are known for, each with what it says to an operator. What stands before an error, such as the
// names of packages, goes with it.
var plain = []struct {
	error *regexp.Regexp
	says  string
}{
	{regexp.MustCompile(`(?:[\w-]+: )*(?:\w+ "([^"]*)": )?dial \w+ (\S+): connect: connection refused`), "nothing listens on $2"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:\w+ "([^"]*)": )?dial \w+ (\S+): (?:i/o timeout|connect: (?:connection timed out|no route to host|network is unreachable))`), "$2 cannot be reached"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:\w+ "([^"]*)": )?dial \w+: lookup (\S+?)(?: on \S+)?: (?:no such host|server misbehaving)`), "the name $2 is not known"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:read|write) \w+ \S+->(\S+): (?:(?:read|write): )?(?:connection reset by peer|broken pipe)`), "$1 has cut the connection"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:read|write) \w+ \S+->(\S+): i/o timeout`), "$1 does not answer in time"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:\w+ "([^"]*)": )?(?:context deadline exceeded|net/http: request canceled)(?: \([^)]*\))?`), "it does not answer in time"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:\w+ "([^"]*)": )?(?:unexpected EOF|EOF)\b`), "the connection was cut"},
	{regexp.MustCompile(`(?:[\w-]+: )*Exception \(\d+\) Reason: "([^"]*)"`), "RabbitMQ says: $1"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:WRONGPASS|NOAUTH)[^;)]*`), "the password is refused"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:tls: failed to verify certificate: )?x509: ([^;)]*)`), "its certificate is not valid: $1"},
	{regexp.MustCompile(`(?:[\w-]+: )*(?:\w+ \S+: )?no space left on device`), "the disk is full"},
}

// Plainly is a text without the words of Go's errors.
func Plainly(text string) string {
	for _, p := range plain {
		text = p.error.ReplaceAllString(text, p.says)
	}
	return text
}
