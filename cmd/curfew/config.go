package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/kelseyhightower/envconfig"

	"curfew/monitor/telemetry"
)

const prefix = "CURFEW"

// config is every variable there is. The name of a field is the name of its variable, CURFEW_
// before it.
//
// There is no envconfig tag on purpose: envconfig falls back from such a name to the same without
// prefix, and a stray USER or PORT of the surroundings would count. Tags:
//
//	default  the value when the variable is not set; a variable set to nothing is nothing
//	allow    what it takes: "a|b" one of these, "a..b" between these, else words for what the field's
//	         type checks by itself; no tag: any text
//	desc     what it means, for people
//	secret   never shown; may come from the file that <variable>_FILE names
//	alias    a variable that is used when this one is not set
//	group    on a blank field: the heading over the variables that follow it
type config struct {
	_         struct{}        `group:"Addresses"`
	AMQPAddr  address         `split_words:"true" default:"127.0.0.1:5672" allow:"host:port" desc:"where AMQP clients connect"`
	AMQPSAddr optionalAddress `split_words:"true" default:"" allow:"host:port, or nothing" desc:"where AMQP clients connect with TLS; empty: nowhere"`
	HTTPAddr  address         `split_words:"true" default:"127.0.0.1:15672" allow:"host:port" desc:"where RabbitMQ's management API is, under /api"`
	HTTPSAddr optionalAddress `split_words:"true" default:"" allow:"host:port, or nothing" desc:"where the management API is with TLS as well, with the same certificate; empty: nowhere"`
	OpsAddr   address         `split_words:"true" default:"127.0.0.1:15692" allow:"host:port" desc:"where /metrics, /healthz and /readyz are; no credentials, no message data"`

	_           struct{} `group:"Storage"`
	DataDir     string   `split_words:"true" default:"./curfew-data" desc:"folder of the message store; empty: memory only"`
	StoreSync   string   `split_words:"true" default:"group" allow:"group|interval|never" desc:"when durable messages are synced to disk: before their confirm, within 100 ms, or when the system likes"`
	Definitions string   `split_words:"true" default:"" desc:"file of definitions in RabbitMQ's format, imported at each start; empty: none"`

	_              struct{}      `group:"Deadlines"`
	Monitor        bool          `split_words:"true" default:"true" allow:"true|false" desc:"fire deadlines when they come; false: messages expire only when a delivery or a get meets them"`
	RedisURL       redisURL      `split_words:"true" default:"" allow:"redis://, rediss://, unix://, redis-cluster:// or redis-sentinel://, or nothing" secret:"true" desc:"where the schedule of deadlines lives; empty: in the process"`
	RedisShards    int           `split_words:"true" default:"4" allow:"1..1024" desc:"sorted sets the schedule is spread over"`
	Instance       instance      `split_words:"true" default:"" allow:"letters, digits, '.', '_' and '-', 64 at most" desc:"name of this Curfew in Redis and in alerts; empty: the host name. No two may share one"`
	TTL            string        `split_words:"true" default:"on" allow:"on|off" desc:"off: no message expires. Times to live are checked and kept, and not in force; a start takes the deadlines off what is queued, for good"`
	TTLPrecedence  string        `split_words:"true" default:"min" allow:"min|message" desc:"when queue and message both set a time to live: the lower counts, or the message's own; of queues for which neither x-ttl-precedence nor a policy says so"`
	Unroutable     string        `split_words:"true" default:"park" allow:"park|drop" desc:"what becomes of a dead letter that its exchange routes nowhere: kept in curfew.undeliverable, or lost"`
	IdleMinimum    time.Duration `split_words:"true" default:"5m" allow:"1ms..24h" desc:"the shortest period that x-auto-delete-on-idle may have, as argument or policy"`
	ScheduleWindow time.Duration `split_words:"true" default:"20ms" allow:"0s..1s" desc:"a message that comes and goes within this time is never written to the schedule; 0s: each one with a deadline is, though gone or due by then"`
	MissThreshold  time.Duration `split_words:"true" default:"1s" allow:"1ms..24h" desc:"a deadline fired later than this is reported as fired late"`
	RiskPercent    int           `split_words:"true" default:"50" allow:"1..100" desc:"part of its time to live that the first message which will miss its deadline has used up when its queue is told to be at risk"`
	Audit          bool          `split_words:"true" default:"true" allow:"true|false" desc:"record every message that expires, in the folder audit of the data folder"`
	AuditSize      byteSize      `split_words:"true" default:"512MiB" allow:"1MiB..1024GiB" desc:"disk that this may take; the oldest records go"`

	_                 struct{} `group:"Users and TLS"`
	User              given    `split_words:"true" default:"guest" allow:"any text but none" alias:"RABBITMQ_DEFAULT_USER" desc:"user made at the first start, an administrator, and when this is changed"`
	Password          given    `split_words:"true" default:"guest" allow:"any text but none" alias:"RABBITMQ_DEFAULT_PASS" secret:"true" desc:"its password, set at the first start and when this is changed"`
	GuestLoopbackOnly bool     `split_words:"true" default:"true" allow:"true|false" desc:"the user guest may log in from this machine only; false where a container's own network keeps others out"`
	TLSCert           string   `split_words:"true" default:"" desc:"file with the certificate of the TLS listeners, its chain behind it (PEM); read anew when it changes"`
	TLSKey            string   `split_words:"true" default:"" desc:"file with its private key (PEM)"`
	TLSClientCA       string   `split_words:"true" default:"" desc:"file with the authorities whose certificates clients may have (PEM)"`
	TLSClientAuth     string   `split_words:"true" default:"none" allow:"none|request|require" desc:"certificates of clients: not asked for, verified if there is one, or needed"`
	TLSLoginFrom      string   `split_words:"true" default:"distinguished_name" allow:"distinguished_name|common_name|subject_alternative_name" desc:"what of a client's certificate is the user's name, for clients that log in by it (EXTERNAL)"`

	_               struct{}    `group:"Limits"`
	MemoryLimit     memoryLimit `split_words:"true" default:"60%" allow:"1% to 90%, or a size of 64MiB or more" desc:"memory above which publishers wait, page cache not counted; a share is of the container's or machine's memory"`
	DiskFreeLimit   byteSize    `split_words:"true" default:"50MiB" allow:"a size" desc:"free disk below which publishers wait; a sixteenth of the disk where that is less; 0: none"`
	MaxMessageSize  byteSize    `split_words:"true" default:"16MiB" allow:"1KiB..128MiB" desc:"largest message body"`
	MaxConnections  int         `split_words:"true" default:"1024" allow:"1..1000000" desc:"AMQP connections open at once"`
	ChannelMax      int         `split_words:"true" default:"2047" allow:"1..65535" desc:"channels per connection"`
	FrameMax        int         `split_words:"true" default:"131072" allow:"4096..16777216" desc:"largest AMQP frame in bytes"`
	Heartbeat       seconds     `split_words:"true" default:"60s" allow:"whole seconds from 0s to 18h" desc:"heartbeat offered to clients; 0s: none"`
	ConsumerTimeout ackTimeout  `split_words:"true" default:"30m" allow:"0s for never, or from 1m to 10 years" desc:"how long a delivery may stay unacknowledged before its channel is closed and it goes back to its queue"`
	MaxQueues       int         `split_words:"true" default:"50000" allow:"1..10000000" desc:"queues of a virtual host"`
	MaxExchanges    int         `split_words:"true" default:"10000" allow:"1..10000000" desc:"exchanges of a virtual host"`
	MaxBindings     int         `split_words:"true" default:"200000" allow:"1..10000000" desc:"bindings of an exchange"`

	_                        struct{}       `group:"Alerts"`
	AlertRules               string         `split_words:"true" default:"" desc:"file of alert rules, YAML or JSON, put in force when it changes; empty: every event goes to every sink"`
	AlertWebhookURL          webhookURL     `split_words:"true" default:"" allow:"an http:// or https:// URL, or nothing" secret:"true" desc:"alerts are posted here in Alertmanager's webhook format"`
	AlertWebhookSecret       string         `split_words:"true" default:"" secret:"true" desc:"signs what is posted there: X-Curfew-Signature is sha256= and the HMAC-SHA256 of X-Curfew-Timestamp, a dot and the body"`
	AlertAlertmanagerURL     webhookURLs    `split_words:"true" default:"" allow:"http:// or https:// URLs with commas between, or nothing" secret:"true" desc:"every Alertmanager of a cluster; alerts are sent to their API v2"`
	AlertSlackURL            webhookURL     `split_words:"true" default:"" allow:"an http:// or https:// URL, or nothing" secret:"true" desc:"incoming webhook of Slack"`
	AlertPagerdutyRoutingKey string         `split_words:"true" default:"" secret:"true" desc:"routing key of PagerDuty's Events API v2"`
	AlertPagerdutyURL        webhookURL     `split_words:"true" default:"https://events.pagerduty.com/v2/enqueue" allow:"an http:// or https:// URL" desc:"its endpoint; that of the EU is https://events.eu.pagerduty.com/v2/enqueue"`
	AlertCloudeventsURL      webhookURL     `split_words:"true" default:"" allow:"an http:// or https:// URL, or nothing" secret:"true" desc:"alerts are posted here as CloudEvents 1.0"`
	AlertCloudeventsMode     string         `split_words:"true" default:"structured" allow:"structured|binary" desc:"their content mode"`
	AlertAMQP                optionalFormat `split_words:"true" default:"" allow:"json or cloudevents, or nothing" desc:"alerts are published so to the topic exchange curfew.events of virtual host /, with routing key event.vhost.queue"`
	AlertAllow               allowList      `split_words:"true" default:"" allow:"hosts, addresses and networks (CIDR) with commas between, or nothing" desc:"where alerts and heartbeat may go besides https to public addresses and hosts named as internal"`
	AlertGroupBy             string         `split_words:"true" default:"event" allow:"event|vhost|queue|none" desc:"what is told in one notification; none: every message for itself, within the rate limit"`
	AlertGroupWait           time.Duration  `split_words:"true" default:"10s" allow:"1ms..1h" desc:"how long a new group of alerts collects before it is told"`
	AlertGroupInterval       time.Duration  `split_words:"true" default:"1m" allow:"1s..24h" desc:"least time between two notifications of a group; after so long without events an alert is over"`
	AlertRepeatInterval      time.Duration  `split_words:"true" default:"4h" allow:"1s..720h" desc:"when what still fires is told again without news"`
	AlertRateLimit           int            `split_words:"true" default:"60" allow:"1..6000" desc:"notifications a minute to each sink, above the first ten"`
	AlertExternalURL         webhookURL     `split_words:"true" default:"" allow:"an http:// or https:// URL, or nothing" desc:"where people reach this Curfew; in alerts as a link"`
	AlertRunbookBase         webhookURL     `split_words:"true" default:"" allow:"an http:// or https:// URL, or nothing" desc:"where the folder deploy/runbooks can be read; makes the annotation runbook_url of each alert"`
	HeartbeatURL             webhookURL     `split_words:"true" default:"" allow:"an http:// or https:// URL, or nothing" secret:"true" desc:"asked for with GET while every loop, the store and the server are alive: a dead man's switch"`
	HeartbeatInterval        time.Duration  `split_words:"true" default:"30s" allow:"1s..24h" desc:"how often"`

	_                     struct{}        `group:"Logs and tools"`
	LogLevel              string          `split_words:"true" default:"info" allow:"debug|info|warn|error" desc:"least severe level that is logged"`
	LogFormat             string          `split_words:"true" default:"auto" allow:"auto|console|json" desc:"auto: console on a terminal, else json"`
	CompatRabbitmqVersion rabbitmqVersion `split_words:"true" default:"4.1.0" allow:"a version such as 4.1.0" desc:"version of RabbitMQ that clients and management tools are told: they decide by it what they may ask for"`

	telemetry *telemetry.Options // of OpenTelemetry's variables; nil: nothing is sent
}

// loadConfig reads the environment. The error is a usageError that says what is wrong.
func loadConfig() (config, error) {
	var c config
	settings := settingsOf(&c)
	errs := unknownVariables(settings, os.Environ())
	errs = append(errs, readEnvironment(&c, settings)...)
	if c.Instance == "" {
		errs = append(errs, c.Instance.setHostName())
	}
	var otelErrs []error
	c.telemetry, otelErrs = readTelemetry(string(c.Instance))
	errs = append(errs, otelErrs...)
	if err := errors.Join(errs...); err != nil {
		return config{}, usageError{err}
	}
	return c, nil
}

// readEnvironment fills c. Values that are there but not allowed are all reported, of values that
// cannot be read at all the first.
func readEnvironment(c *config, settings []setting) []error {
	if err := envconfig.Process(prefix, c); err != nil {
		return []error{explain(err, settings)}
	}
	var errs []error
	for _, s := range settings {
		if err := s.readElsewhere(); err != nil {
			errs = append(errs, err)
		} else if !s.allowed() {
			errs = append(errs, s.refuse(fmt.Sprint(s.field), nil))
		}
	}
	return errs
}

// explain turns envconfig's error into ours.
func explain(err error, settings []setting) error {
	parse, ok := errors.AsType[*envconfig.ParseError](err)
	if !ok {
		return err
	}
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == parse.KeyName })
	return settings[i].refuse(parse.Value, parse.Err)
}
