package settings

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"

	"curfew/broker/policy"
	"curfew/broker/servicebus"
	"curfew/monitor/incident"
	"curfew/scheduler/redisstore"
)

// errValue is the error of most types for an invalid text. The allow tag has what is valid.
var errValue = errors.New("invalid")

// explainedError is an error that is shown to the operator. It contains no part of a secret.
type explainedError struct{ error }

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

// optionalAddress is an address, or empty.
type optionalAddress string

func (a *optionalAddress) UnmarshalText(text []byte) error {
	var value address
	if len(text) > 0 {
		if err := value.UnmarshalText(text); err != nil {
			return err
		}
	}
	*a = optionalAddress(value)
	return nil
}

// byteSize is a number of bytes, written as such or with a unit such as MiB or MB.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return errValue
	}
	*b = byteSize(n)
	return nil
}

func (b byteSize) String() string { return strings.ReplaceAll(humanize.IBytes(uint64(b)), " ", "") }

// memoryLimit is an amount of memory, or a share of all memory.
type memoryLimit struct {
	percent uint64 // of the container's or the machine's memory; 0: size counts
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

// Bytes resolves a share. It returns 0, no limit, if the amount of memory is unknown.
func (m memoryLimit) Bytes() int64 {
	if m.percent == 0 {
		return int64(m.size)
	}
	all, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil {
		return 0
	}
	return int64(all / 100 * m.percent)
}

// ackTimeout is a time of at least a minute, as in RabbitMQ, or 0 for no limit.
type ackTimeout time.Duration

func (a *ackTimeout) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d != 0 && (d < time.Minute || d > policy.MaxTTLMillis*time.Millisecond) {
		return errValue
	}
	*a = ackTimeout(d)
	return nil
}

// Limit is the value as the server takes it: 0 is the default, and a negative value means no limit.
func (a ackTimeout) Limit() time.Duration {
	if a == 0 {
		return -1
	}
	return time.Duration(a)
}

func (a ackTimeout) String() string { return time.Duration(a).String() }

// nonEmpty is text that must not be empty: an empty variable in a deployment would make a user who
// cannot log in.
type nonEmpty string

func (g *nonEmpty) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errValue
	}
	*g = nonEmpty(text)
	return nil
}

// instance names this process among those that share a Redis.
type instance string

var instancePattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (i *instance) UnmarshalText(text []byte) error {
	if len(text) > 64 || len(text) > 0 && !instancePattern.Match(text) {
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
		return fmt.Errorf("CURFEW_INSTANCE is not set, and the host name %q cannot be used instead: set it", name)
	}
	return nil
}

// redisURL is a URL for redisstore.Options, or empty.
type redisURL string

func (u *redisURL) UnmarshalText(text []byte) error {
	*u = redisURL(text)
	if *u == "" {
		return nil
	}
	// Open does not connect, so there is nothing to close.
	if _, err := redisstore.Open(redisstore.Options{URL: string(text)}); err != nil {
		return explainedError{err}
	}
	return nil
}

var credentials = regexp.MustCompile(`(^|//)[^/]*@`)

// Redacted keeps only the address of the server: no user, no password, no options.
func (u redisURL) Redacted() string { return withoutSecrets(string(u)) }

// withoutSecrets is a URL without user, password and parameters.
func withoutSecrets(url string) string {
	address, _, _ := strings.Cut(url, "?")
	return credentials.ReplaceAllString(address, "$1")
}

// sinkURLs are URLs for incident.SplitURLs. A part of each is a secret.
type sinkURLs string

func (u *sinkURLs) UnmarshalText(text []byte) error {
	*u = sinkURLs(text)
	for _, one := range u.List() {
		if err := incident.CheckURL(one); err != nil {
			return explainedError{err}
		}
	}
	return nil
}

func (u sinkURLs) List() []string { return incident.SplitURLs(string(u)) }

// Redacted keeps only the schemes.
func (u sinkURLs) Redacted() string {
	var shown []string
	for _, one := range u.List() {
		scheme, _, _ := strings.Cut(one, ":")
		shown = append(shown, scheme+":...")
	}
	return strings.Join(shown, ",")
}

// serviceBusKeys are shared access keys for servicebus.ParseKeys.
type serviceBusKeys string

func (k *serviceBusKeys) UnmarshalText(text []byte) error {
	*k = serviceBusKeys(text)
	if _, err := servicebus.ParseKeys(string(text)); err != nil {
		return explainedError{err}
	}
	return nil
}
