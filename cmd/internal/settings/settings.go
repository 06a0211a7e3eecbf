package settings

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"

	"curfew/monitor/incident"
	"curfew/monitor/telemetry"
)

const prefix = "CURFEW"

// Settings has a field for each variable. The variable is named like the field, with CURFEW_ in front.
//
// No field has an envconfig tag, on purpose: with one, envconfig would also read the name without the prefix,
// such as an unrelated USER or PORT in the environment. The tags are:
//
//	default  the value when the variable is not set; a variable that is set but empty has the empty value
//	allow    what it takes: "a|b" is one of these, "a..b" is a range, anything else describes what the
//	         field's type accepts; no tag: any text
//	desc     what it means
//	secret   never printed; may come from the file that <variable>_FILE names
//	alias    a variable that is used when this one is not set
//	ignored  it is not a variable
//	group    on a blank field: the heading over the variables that follow it
type Settings struct {
	_          struct{} `group:"Addresses"`
	AMQPAddr   string   `split_words:"true" default:"127.0.0.1:5672" allow:"host:port" desc:"where AMQP clients connect, without TLS or, if there is a certificate, with it"`
	AMQPSAddr  string   `split_words:"true" default:"" allow:"host:port, or nothing" desc:"where AMQP clients connect with TLS only; empty: nowhere"`
	HTTPAddr   string   `split_words:"true" default:"127.0.0.1:15672" allow:"host:port" desc:"where RabbitMQ's management API is, under /api"`
	HTTPSAddr  string   `split_words:"true" default:"" allow:"host:port, or nothing" desc:"where the management API is with TLS, with the same certificate; empty: nowhere"`
	HTTPOnAMQP bool     `split_words:"true" default:"false" allow:"true|false" desc:"serve the management API and the dashboard, without TLS, also to clients of HTTP on the AMQP address"`
	OpsAddr    string   `split_words:"true" default:"127.0.0.1:15692" allow:"host:port" desc:"where /metrics, /healthz and /readyz are; no credentials, no message data"`

	_           struct{} `group:"Storage"`
	DataDir     string   `split_words:"true" default:"./curfew-data" desc:"folder of the message store; empty: memory only"`
	StoreSync   string   `split_words:"true" default:"group" allow:"group|interval|never" desc:"when durable messages are synced to disk: before their confirm, within 100 ms, or when the operating system does it"`
	Definitions string   `split_words:"true" default:"" desc:"file of definitions in RabbitMQ's format, imported at each start; empty: none"`

	_              struct{}      `group:"Deadlines"`
	Monitor        bool          `split_words:"true" default:"true" allow:"true|false" desc:"fire deadlines when they come; false: messages expire only when a delivery or a get meets them, and at a start"`
	RedisURL       redisURL      `split_words:"true" default:"" allow:"redis://, rediss://, unix://, redis-cluster:// or redis-sentinel://, or nothing" secret:"true" desc:"where the schedule of deadlines lives, or beside RabbitMQ what several Curfews share; empty: in the process"`
	Instance       string        `split_words:"true" default:"" allow:"letters, digits, '.', '_' and '-', 64 at most" desc:"name of this Curfew in Redis and in alerts; empty: the host name. No two Curfews may have the same name"`
	TTL            string        `split_words:"true" default:"on" allow:"on|off" desc:"off: no message expires. Times to live are checked and stored, but have no effect; a start removes the deadlines of queued messages permanently"`
	TTLPrecedence  string        `split_words:"true" default:"min" allow:"min|message" desc:"when queue and message both set a time to live: the lower one applies, or the message's own; for queues where neither x-ttl-precedence nor a policy decides"`
	Unroutable     string        `split_words:"true" default:"park" allow:"park|drop" desc:"what becomes of a dead letter that its exchange cannot route: kept in curfew.undeliverable, or lost"`
	IdleMinimum    time.Duration `split_words:"true" default:"5m" allow:"1ms..24h" desc:"the shortest period that x-auto-delete-on-idle may have, as an argument or by a policy"`
	ScheduleWindow time.Duration `split_words:"true" default:"20ms" allow:"0s..1s" desc:"a message that leaves its queue within this time is never written to the schedule; 0s: every message with a deadline is, whatever its time to live"`
	Clock          string        `split_words:"true" default:"system" allow:"system|manual" desc:"manual: for tests of programs. The clock of deadlines stands until curfew clock or the API moves it; messages are in memory only"`
	Audit          string        `split_words:"true" default:"true" allow:"true|false|all" desc:"record every message that expires and what users change, in the folder audit of the data folder; all: other dead letters too"`

	_          struct{}   `group:"Beside RabbitMQ"`
	PrimaryURL primaryURL `split_words:"true" default:"" allow:"amqp:// or amqps://, one or several hosts and a virtual host, or nothing" secret:"true" desc:"the RabbitMQ whose deadlines are to be kept, such as amqp://user:password@a,b:5672/vhost: Curfew then runs no broker of its own; empty: none"`
	// PrimaryAPIUrl is not PrimaryAPIURL: envconfig would read that as PRIMARY_APIURL.
	PrimaryAPIUrl primaryAPIURL `split_words:"true" default:"" allow:"http:// or https:// and one or several hosts, or nothing" secret:"true" desc:"its management API, such as http://a:15672,b:15672, with user and password if they differ; empty: not used, so less is known"`
	Watch         string        `split_words:"true" default:"" allow:"observe:, keep:, delay: or off: and a pattern, separated by commas, the path of a file, or nothing" desc:"what is done with its queues: rules, of which the first that matches applies, such as keep:retry-*,observe:*, or the path, from / or ., of a YAML file with rules and budgets. Empty: every queue is observed"`

	_                 struct{} `group:"Users and TLS"`
	User              string   `split_words:"true" default:"guest" allow:"a text that is not empty" alias:"RABBITMQ_DEFAULT_USER" desc:"user that is created as an administrator at the first start, and when this is changed"`
	Password          string   `split_words:"true" default:"guest" allow:"a text that is not empty" alias:"RABBITMQ_DEFAULT_PASS" secret:"true" desc:"its password, set at the first start and when this is changed"`
	GuestLoopbackOnly bool     `split_words:"true" default:"true" allow:"true|false" desc:"the user guest may log in only from this machine; false where a container's own network keeps others out"`
	TLSCert           string   `split_words:"true" default:"" desc:"file with the certificate of the TLS listeners, followed by its chain (PEM); read again when it changes"`
	TLSKey            string   `split_words:"true" default:"" desc:"file with its private key (PEM)"`
	TLSClientCA       string   `split_words:"true" default:"" desc:"file with the certificate authorities that are trusted for clients' certificates (PEM)"`
	TLSClientAuth     string   `split_words:"true" default:"none" allow:"none|request|require" desc:"certificates of clients: not asked for, verified if there is one, or required"`
	TLSLoginFrom      string   `split_words:"true" default:"distinguished_name" allow:"distinguished_name|common_name|subject_alternative_name" desc:"which part of a client's certificate is the user's name, for clients that log in by certificate (EXTERNAL)"`

	_                  struct{} `group:"Azure Service Bus"`
	ServicebusKeys     string   `split_words:"true" default:"" allow:"name=key or name=key:listen+send+manage, separated by commas, or nothing" secret:"true" desc:"shared access keys with which Azure's SDKs may connect to the AMQP addresses; a key without claims has all; empty: none"`
	ServicebusEmulator bool     `split_words:"true" default:"false" allow:"true|false" desc:"Azure's SDKs may connect from this machine with any key or token, as with Microsoft's emulator"`
	ServicebusConfig   string   `split_words:"true" default:"" desc:"the emulator's Config.json, whose queues, topics and subscriptions are declared at each start; empty: none"`

	_               struct{}    `group:"Limits"`
	MemoryLimit     memoryLimit `split_words:"true" default:"60%" allow:"1% to 90%, or a size of 64MiB or more" desc:"memory above which publishers wait, not counting the page cache; a percentage is of the container's or machine's memory"`
	DiskFreeLimit   byteSize    `split_words:"true" default:"50MiB" allow:"a size" desc:"free disk space below which publishers wait; a sixteenth of the disk if that is less; 0: none"`
	MaxMessageSize  byteSize    `split_words:"true" default:"16MiB" allow:"1KiB..128MiB" desc:"largest message body"`
	MaxConnections  int         `split_words:"true" default:"1024" allow:"1..1000000" desc:"AMQP connections open at once"`
	ConsumerTimeout ackTimeout  `split_words:"true" default:"30m" allow:"0s for never, or from 1m to 10 years" desc:"how long a delivery may stay unacknowledged before its channel is closed and it goes back to its queue"`

	_      struct{} `group:"Alerts"`
	Alerts string   `split_words:"true" default:"" desc:"file with the sinks of alerts, the rules and the dead man's switch, YAML or JSON, read again when it changes; deploy/alerts.yaml is one; empty: none"`
	// AlertUrls is not AlertURLs: envconfig would read that as ALERT_UR_LS.
	AlertUrls sinkURLs `split_words:"true" default:"" allow:"URLs of sinks, separated by commas, or nothing" secret:"true" desc:"sinks besides those in the file, without their own rules: webhook+https://..., alertmanager+http://..., amqp:curfew.events, slack://..., and likewise for every service of shoutrrr"`

	_         struct{} `group:"Logs and tools"`
	LogLevel  string   `split_words:"true" default:"info" allow:"debug|info|warn|error" desc:"least severe level that is logged"`
	LogFormat string   `split_words:"true" default:"auto" allow:"auto|console|json" desc:"auto: console on a terminal, otherwise json"`

	// Telemetry is what to send to OpenTelemetry, by its variables; nil: nothing.
	Telemetry *telemetry.Options `ignored:"true"`
}

// Error is a mistake in the environment. Its text names each variable that is wrong.
type Error struct{ Err error }

func (e Error) Error() string { return e.Err.Error() }

func (e Error) Unwrap() error { return e.Err }

// Load reads the environment. The error is an Error that names each mistake.
func Load() (Settings, error) {
	var s Settings
	variables := variablesOf(&s)
	errs := unknownVariables(variables, os.Environ())
	errs = append(errs, readEnvironment(&s, variables)...)
	if s.Instance == "" {
		errs = append(errs, s.setHostName())
	}
	s.forgetDataDir()
	var otelErrs []error
	s.Telemetry, otelErrs = readTelemetry(s.Instance)
	errs = append(errs, otelErrs...)
	if err := errors.Join(errs...); err != nil {
		return Settings{}, Error{err}
	}
	return s, nil
}

// readEnvironment fills s. It reports every invalid value, but only the first that cannot be
// parsed.
func readEnvironment(s *Settings, variables []variable) []error {
	if err := envconfig.Process(prefix, s); err != nil {
		return []error{explain(err, variables)}
	}
	var errs []error
	for _, v := range variables {
		err := v.readElsewhere()
		if err == nil {
			err = v.valid()
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// explain turns an error of envconfig into one that names the variable and what is valid.
func explain(err error, variables []variable) error {
	parse, ok := errors.AsType[*envconfig.ParseError](err)
	if !ok {
		return err
	}
	i := slices.IndexFunc(variables, func(v variable) bool { return v.name == parse.KeyName })
	return variables[i].refuse(parse.Value, errValue)
}

// Known reports whether Curfew reads a variable.
func Known(name string) bool {
	return strings.HasPrefix(name, otelPrefix) || slices.ContainsFunc(variablesOf(new(Settings)), func(v variable) bool {
		return v.name == name || v.secret && v.fileName() == name
	})
}

// AlertOptions are the options of alerts that the settings give.
func (s *Settings) AlertOptions() incident.Options {
	return incident.Options{File: s.Alerts, URLs: incident.SplitURLs(string(s.AlertUrls)), Dir: s.DataDir, Instance: s.Instance}
}

// UseClock sets what CURFEW_CLOCK is, and leaves it as it is if name is empty. The error is an Error.
func (s *Settings) UseClock(name string) error {
	if name == "" {
		return nil
	}
	if name != "system" && name != manualClock {
		return Error{fmt.Errorf("--clock: %q is invalid: want system or manual", name)}
	}
	s.Clock = name
	s.forgetDataDir()
	return nil
}

const manualClock = "manual"

// ManualClock reports whether the broker's clock stands until it is moved.
func (s *Settings) ManualClock() bool { return s.Clock == manualClock }
