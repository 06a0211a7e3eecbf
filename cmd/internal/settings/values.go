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
	"curfew/monitor/rabbitmq/cluster"
	"curfew/scheduler/redisstore"
)

// errValue is the error of most types for an invalid text. The allow tag has what is valid.
var errValue = errors.New("invalid")

// checks are those of texts, by the name of the variable. errValue adds nothing to the allow tag; other errors are shown to
// the operator, and contain no part of a secret. A variable whose default is empty may be empty.
var checks = map[string]func(text string) error{
	"CURFEW_AMQP_ADDR":  checkAddress,
	"CURFEW_AMQPS_ADDR": checkAddress,
	"CURFEW_HTTP_ADDR":  checkAddress,
	"CURFEW_HTTPS_ADDR": checkAddress,
	"CURFEW_OPS_ADDR":   checkAddress,
	"CURFEW_INSTANCE":   checkInstance,
	"CURFEW_USER":       like(`.`), // an empty variable in a deployment would make a user who cannot log in
	"CURFEW_PASSWORD":   like(`.`),
	// Neither of these connects, so there is nothing to close.
	"CURFEW_REDIS_URL": parses(func(url string) (any, error) { return redisstore.Open(redisstore.Options{URL: url}) }),
	"CURFEW_PRIMARY_API_URL": parses(func(url string) (any, error) {
		return cluster.Open(cluster.Options{URL: "amqp://localhost", APIURL: url})
	}),
	"CURFEW_PRIMARY_URL":     parses(cluster.ParseAddress),
	"CURFEW_SERVICEBUS_KEYS": parses(servicebus.ParseKeys),
	"CURFEW_WATCH": func(rules string) error {
		if cluster.NamesFile(rules) {
			return nil
		}
		return parses(cluster.ParseWatch)(rules)
	},
	"CURFEW_ALERT_URLS": func(urls string) error {
		for _, one := range incident.SplitURLs(urls) {
			if err := incident.CheckURL(one); err != nil {
				return err
			}
		}
		return nil
	},
}

// checkAddress takes host:port to listen on; port 0 takes any free one, no host means every interface.
func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errValue
	}
	return nil
}

// parses is the check of what a function can parse.
func parses[T any](parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}

// like is the check of what a pattern matches.
func like(pattern string) func(string) error {
	re := regexp.MustCompile(`(?s)` + pattern)
	return func(text string) error {
		if !re.MatchString(text) {
			return errValue
		}
		return nil
	}
}

var checkInstance = like(`^[A-Za-z0-9._-]{1,64}$`)

// setHostName names this process by the host, among those that share Redis.
func (s *Settings) setHostName() error {
	name, err := os.Hostname()
	if err != nil || checkInstance(name) != nil {
		return fmt.Errorf("CURFEW_INSTANCE is not set, and the host name %q cannot be used instead: set it", name)
	}
	s.Instance = name
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
type ackTimeout struct{ time.Duration }

func (a *ackTimeout) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d != 0 && (d < time.Minute || d > policy.MaxTTLMillis*time.Millisecond) {
		return errValue
	}
	a.Duration = d
	return nil
}

// Limit is the value as the server takes it: 0 is the default, and a negative value means no limit.
func (a ackTimeout) Limit() time.Duration {
	if a.Duration == 0 {
		return -1
	}
	return a.Duration
}

// redisURL is a URL for redisstore.Options, or empty.
type redisURL string

var credentials = regexp.MustCompile(`(^|//)[^/]*@`)

// Redacted keeps only the address of the server: no user, no password, no parameters.
func (u redisURL) Redacted() string {
	address, _, _ := strings.Cut(string(u), "?")
	return credentials.ReplaceAllString(address, "$1")
}

// sinkURLs are URLs for incident.SplitURLs. A part of each is a secret.
type sinkURLs string

// Redacted keeps only the schemes.
func (u sinkURLs) Redacted() string {
	var shown []string
	for _, one := range incident.SplitURLs(string(u)) {
		scheme, _, _ := strings.Cut(one, ":")
		shown = append(shown, scheme+":...")
	}
	return strings.Join(shown, ",")
}
