package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"curfew/broker"
	"curfew/monitor/alert"
	"curfew/scheduler/redisstore"
)

// errValue is all that most types say of a wrong text; what is right is said by the allow tag.
var errValue = errors.New("not allowed")

// reason is an error that says more, and holds no part of a secret.
type reason struct{ error }

// address is host:port to listen on; port 0 takes any free one, no host means every interface.
type address string

func (a *address) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return err
	}
	*a = address(text)
	return nil
}

// rabbitmqVersion is three numbers: what tools make of anything else they do not agree on.
type rabbitmqVersion string

var versionPattern = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,4}){2}$`)

func (v *rabbitmqVersion) UnmarshalText(text []byte) error {
	if !versionPattern.Match(text) {
		return errValue
	}
	*v = rabbitmqVersion(text)
	return nil
}

// optionalAddress is an address, or nothing.
type optionalAddress string

func (a *optionalAddress) UnmarshalText(text []byte) error {
	var given address
	if len(text) > 0 {
		if err := given.UnmarshalText(text); err != nil {
			return err
		}
	}
	*a = optionalAddress(given)
	return nil
}

// byteSize is a number of bytes, written as such or in KiB, MiB or GiB.
type byteSize int64

var byteUnits = []struct {
	suffix string
	size   byteSize
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func (b *byteSize) UnmarshalText(text []byte) error {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		*b = byteSize(n) * u.size
		return err
	}
	return errValue
}

func (b byteSize) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.suffix)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// memoryLimit is an amount of memory, or a share of what there is.
type memoryLimit struct {
	percent uint64 // of the container's or the machine's; 0: size counts
	size    byteSize
}

const minMemoryLimit = 64 << 20

func (m *memoryLimit) UnmarshalText(text []byte) error {
	*m = memoryLimit{}
	if digits, ok := strings.CutSuffix(string(text), "%"); ok {
		percent, err := strconv.ParseUint(digits, 10, 8)
		if err != nil || percent < 1 || percent > 90 {
			return errValue
		}
		m.percent = percent
		return nil
	}
	if err := m.size.UnmarshalText(text); err != nil || m.size < minMemoryLimit {
		return errValue
	}
	return nil
}

func (m memoryLimit) String() string {
	if m.percent > 0 {
		return fmt.Sprintf("%d%%", m.percent)
	}
	return m.size.String()
}

// bytes resolves a share; it is 0, no limit, where the amount of memory cannot be
// found out.
func (m memoryLimit) bytes() int64 {
	if m.percent == 0 {
		return int64(m.size)
	}
	all, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil {
		return 0
	}
	return int64(all / 100 * m.percent)
}

// seconds is a duration of whole seconds that fits AMQP's 16 bits.
type seconds time.Duration

func (s *seconds) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d%time.Second != 0 || d < 0 || d > 18*time.Hour {
		return errValue
	}
	*s = seconds(d)
	return nil
}

// offered is what the server calls it: there 0 is its default and less than 0 is none.
func (s seconds) offered() time.Duration {
	if s == 0 {
		return -1
	}
	return time.Duration(s)
}

func (s seconds) String() string { return time.Duration(s).String() }

// ackTimeout is a time from a minute up, as RabbitMQ supports it, or 0 for ever.
type ackTimeout time.Duration

func (a *ackTimeout) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d != 0 && (d < time.Minute || d > broker.MaxTTLMillis*time.Millisecond) {
		return errValue
	}
	*a = ackTimeout(d)
	return nil
}

// limit is what the server calls it: there 0 is its default and less than 0 is none.
func (a ackTimeout) limit() time.Duration {
	if a == 0 {
		return -1
	}
	return time.Duration(a)
}

func (a ackTimeout) String() string { return time.Duration(a).String() }

// given is text that cannot be empty: a variable of a deployment that nobody has filled in would
// make a user who cannot log in.
type given string

func (g *given) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errValue
	}
	*g = given(text)
	return nil
}

// instance names this process among those that share a Redis.
type instance string

var instancePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (i *instance) UnmarshalText(text []byte) error {
	if len(text) > 0 && !instancePattern.Match(text) {
		return errValue
	}
	*i = instance(text)
	return nil
}

func (i *instance) setHostName() error {
	name, err := os.Hostname()
	if err == nil && name != "" {
		err = i.UnmarshalText([]byte(name))
	}
	if err != nil || *i == "" {
		return fmt.Errorf("CURFEW_INSTANCE is not set and the host name %q cannot stand in for it: set it", name)
	}
	return nil
}

// redisURL is what redisstore.Options takes as URL, or nothing.
type redisURL string

func (u *redisURL) UnmarshalText(text []byte) error {
	*u = redisURL(text)
	if *u == "" {
		return nil
	}
	// It does not connect, and what was never used needs no Close.
	if _, err := redisstore.Open(redisstore.Options{URL: string(text)}); err != nil {
		return reason{err}
	}
	return nil
}

var credentials = regexp.MustCompile(`(^|//)[^/]*@`)

// redacted keeps what tells which server it is: no user, no password, no options.
func (u redisURL) redacted() string {
	address, _, _ := strings.Cut(string(u), "?")
	return credentials.ReplaceAllString(address, "$1")
}

// webhookURL is where alerts are posted to. Its path is often the secret.
type webhookURL string

func (u *webhookURL) UnmarshalText(text []byte) error {
	*u = webhookURL(text)
	if *u == "" {
		return nil
	}
	parsed, err := url.Parse(string(text))
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return errValue
	}
	return nil
}

// redacted shows scheme and host.
func (u webhookURL) redacted() string {
	parsed, err := url.Parse(string(u))
	if err != nil || u == "" {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host + "/..."
}

// webhookURLs are several, with commas between.
type webhookURLs string

func (u *webhookURLs) UnmarshalText(text []byte) error {
	*u = webhookURLs(text)
	for _, one := range u.list() {
		var parsed webhookURL
		if err := parsed.UnmarshalText([]byte(one)); err != nil || one == "" {
			return errValue
		}
	}
	return nil
}

func (u webhookURLs) list() []string { return commaList(string(u)) }

// redacted shows scheme and host of each.
func (u webhookURLs) redacted() string {
	var shown []string
	for _, one := range u.list() {
		shown = append(shown, webhookURL(one).redacted())
	}
	return strings.Join(shown, ",")
}

// commaList splits text at its commas; nothing for the empty one.
func commaList(text string) (list []string) {
	if text == "" {
		return nil
	}
	for one := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(one))
	}
	return list
}

// allowList is what alert.Options.Allow takes.
type allowList string

func (l *allowList) UnmarshalText(text []byte) error {
	*l = allowList(text)
	if err := alert.CheckAllow(l.list()); err != nil {
		return reason{err}
	}
	return nil
}

func (l allowList) list() []string { return commaList(string(l)) }

// optionalFormat is how alerts are written into messages, or nothing.
type optionalFormat string

func (f *optionalFormat) UnmarshalText(text []byte) error {
	*f = optionalFormat(text)
	switch *f {
	case "", "json", "cloudevents":
		return nil
	}
	return errValue
}
