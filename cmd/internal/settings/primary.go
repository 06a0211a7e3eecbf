package settings

import (
	"os"
	"runtime"
	"strings"

	"curfew/monitor/rabbitmq/cluster"
)

// primaryURL is a URL for cluster.Options, or empty.
type primaryURL string

func (u *primaryURL) UnmarshalText(text []byte) error {
	*u = primaryURL(text)
	if *u == "" {
		return nil
	}
	if _, err := cluster.ParseAddress(string(text)); err != nil {
		return explainedError{err}
	}
	return nil
}

// Redacted keeps the user, the nodes and the virtual host, without the password and parameters.
func (u primaryURL) Redacted() string {
	if u == "" {
		return ""
	}
	address, err := cluster.ParseAddress(string(u))
	if err != nil {
		return ""
	}
	return address.String()
}

// primaryAPIURL is the URL of a management API for cluster.Options, or empty.
type primaryAPIURL string

func (u *primaryAPIURL) UnmarshalText(text []byte) error {
	*u = primaryAPIURL(text)
	if *u == "" {
		return nil
	}
	// Open does not connect, so there is nothing to close.
	if _, err := cluster.Open(cluster.Options{URL: "amqp://localhost", APIURL: string(text)}); err != nil {
		return explainedError{err}
	}
	return nil
}

// Redacted keeps only the addresses, without the user, the password and parameters.
func (u primaryAPIURL) Redacted() string {
	nodes, err := cluster.APINodes(string(u))
	if err != nil {
		return ""
	}
	return strings.Join(nodes, ",")
}

// watchRules are rules for cluster.ParseWatch, the path of a file with such rules, or empty.
type watchRules string

func (w *watchRules) UnmarshalText(text []byte) error {
	*w = watchRules(text)
	if *w == "" || cluster.NamesFile(string(text)) {
		return nil
	}
	if _, err := cluster.ParseWatch(string(text)); err != nil {
		return explainedError{err}
	}
	return nil
}

// forgetDataDir unsets the default data folder if there is no broker, if its clock is manual, or on Windows, where the broker
// can keep messages only in memory.
func (s *Settings) forgetDataDir() {
	if _, chosen := os.LookupEnv("CURFEW_DATA_DIR"); !chosen && (s.PrimaryURL != "" || s.ManualClock() || runtime.GOOS == "windows") {
		s.DataDir = ""
	}
}

// ofBroker are variables that only Curfew's own broker uses, and that are harmless without it.
// CURFEW_AMQP_ADDR is not among them, since the image sets it.
var ofBroker = []string{"STORE_SYNC", "TTL_PRECEDENCE", "IDLE_MINIMUM", "SCHEDULE_WINDOW", "UNROUTABLE", "TLS_CLIENT_CA",
	"TLS_CLIENT_AUTH", "TLS_LOGIN_FROM", "DISK_FREE_LIMIT", "MAX_MESSAGE_SIZE", "MAX_CONNECTIONS", "CONSUMER_TIMEOUT"}

// Unused lists the variables that are set and have no effect, since no broker runs.
func (s *Settings) Unused() (names []string) {
	if s.PrimaryURL == "" {
		return nil
	}
	for _, name := range ofBroker {
		if os.Getenv(prefix+"_"+name) != "" {
			names = append(names, prefix+"_"+name)
		}
	}
	return names
}

// Primary is the address of the RabbitMQ of CURFEW_PRIMARY_URL. The URL is empty if there is none.
func (s *Settings) Primary() cluster.Options {
	return cluster.Options{URL: string(s.PrimaryURL), APIURL: string(s.PrimaryAPIUrl)}
}

// WatchRules reads the rules for its queues. The error is an Error about CURFEW_WATCH.
func (s *Settings) WatchRules() (cluster.Watch, error) {
	rules, err := cluster.LoadWatch(string(s.Watch))
	if err != nil {
		return nil, Error{err}
	}
	return rules, nil
}
