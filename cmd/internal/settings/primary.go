package settings

import (
	"os"
	"runtime"
	"strings"

	"curfew/monitor/rabbitmq/cluster"
)

// primaryURL is a URL for cluster.Options, or empty.
type primaryURL string

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

// Redacted keeps only the addresses, without the user, the password and parameters.
func (u primaryAPIURL) Redacted() string {
	nodes, err := cluster.APINodes(string(u))
	if err != nil {
		return ""
	}
	return strings.Join(nodes, ",")
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
	rules, err := cluster.LoadWatch(s.Watch)
	if err != nil {
		return nil, Error{err}
	}
	return rules, nil
}
