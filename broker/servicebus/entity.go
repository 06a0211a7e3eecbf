package servicebus

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/policy"
)

// Entity is a queue, a topic or a subscription as the emulator's Config.json describes it. Durations are
// those of ISO 8601; empty: the default.
type Entity struct {
	Name       string
	Properties struct {
		DefaultMessageTimeToLive string // default: forever
		LockDuration             string // of queues and subscriptions; default PT1M
		MaxDeliveryCount         int64  // likewise; default 10
		AutoDeleteOnIdle         string // default: never

		// DeadLetteringOnMessageExpiration: messages that expire are dead-lettered; false: they are dropped.
		DeadLetteringOnMessageExpiration bool

		ForwardTo                     string
		ForwardDeadLetteredMessagesTo string
		RequiresSession               bool
		RequiresDuplicateDetection    bool
	}
	Rules         []Rule   // of a subscription; none: it gets every message
	Subscriptions []Entity // of a topic
}

// Rule is a rule of a subscription.
type Rule struct {
	Name       string
	Properties struct {
		FilterType        string
		SQLFilter         struct{ SQLExpression string } `json:"SqlFilter"`
		CorrelationFilter Correlation
		Action            any
	}
}

// DefaultRule is the name of the rule that a subscription has unless it is made with others. The routing key of a rule's binding is
// its name, and empty for this one.
const DefaultRule = "$Default"

// binding is that of a subscription for the rule.
func (r *Rule) binding(topic, queue string) (b broker.Binding, err error) {
	b = broker.Binding{Source: topic, Destination: queue}
	if b.RoutingKey = r.Name; strings.EqualFold(r.Name, DefaultRule) {
		b.RoutingKey = ""
	}
	switch p := &r.Properties; {
	case p.Action != nil:
		err = errors.New("actions are not supported")
	case strings.EqualFold(p.FilterType, "Correlation"):
		b.Args, err = p.CorrelationFilter.Args()
	default:
		b.Args, err = SQLArgs(p.SQLFilter.SQLExpression)
	}
	if err != nil {
		err = fmt.Errorf("rule %s: %w", r.Name, err)
	}
	return b, err
}

// Config is the emulator's Config.json.
type Config struct {
	UserConfig struct {
		Namespaces []struct{ Queues, Topics []Entity }
	}
}

// ParseConfig parses a Config.json.
func ParseConfig(text []byte) (c Config, err error) {
	if err = json.Unmarshal(text, &c); err == nil && len(c.UserConfig.Namespaces) != 1 {
		err = errors.New("expected UserConfig with one namespace")
	}
	return c, err
}

// Declare makes the entities in a virtual host unless they exist: what has changed in one since it was made stays. A
// subscription whose rules the configuration has gets those, and no others. What cannot be made is left out; why says so for each.
func (c *Config) Declare(vh *broker.VHost) (why []error) {
	add := func(kind, name string, err error) bool {
		if err != nil {
			why = append(why, fmt.Errorf("%s %s: %w", kind, name, err))
		}
		return err == nil
	}
	for _, n := range c.UserConfig.Namespaces {
		for i := range n.Queues {
			add("queue", n.Queues[i].Name, declareQueue(vh, n.Queues[i].Name, &n.Queues[i]))
		}
		for i := range n.Topics {
			t := &n.Topics[i]
			if !add("topic", t.Name, t.declareTopic(vh)) {
				continue
			}
			for j := range t.Subscriptions {
				s := &t.Subscriptions[j]
				name := t.Name + "/Subscriptions/" + s.Name
				add("subscription", name, s.declareSubscription(vh, t.Name, name))
			}
		}
	}
	return why
}

// TopicArgs are the arguments with which the exchange of a topic is declared.
func (e *Entity) TopicArgs() (args amqp.Table, err error) {
	if e.Properties.RequiresDuplicateDetection {
		return nil, errDuplicates
	}
	args = amqp.Table{}
	if err = SetSpan(args, "x-message-ttl", e.Properties.DefaultMessageTimeToLive); err == nil {
		err = SetSpan(args, "x-auto-delete-on-idle", e.Properties.AutoDeleteOnIdle)
	}
	return args, err
}

func (e *Entity) declareTopic(vh *broker.VHost) error {
	args, err := e.TopicArgs()
	if err != nil {
		return err
	}
	if x, err := vh.Exchanges.Get(e.Name); err == nil && x.Durable && (x.Kind == TopicKind || x.Kind == oldTopicKind) {
		return nil
	}
	return vh.Exchanges.Declare(e.Name, broker.ExchangeDeclare{Kind: TopicKind, Durable: true, Args: args})
}

// TopicKind is the type of the exchange of a topic: rules compare headers.
const TopicKind = "headers"

// oldTopicKind is the type that earlier versions declared.
const oldTopicKind = "fanout"

// CheckFilter refuses a rule, of those arguments, where the topic is an exchange that compares no headers.
func CheckFilter(topic broker.ExchangeInfo, rule string, args amqp.Table) error {
	if topic.Kind != TopicKind && len(args) > 0 {
		return fmt.Errorf("rule %s: the topic is an exchange of the type %s, where only the true filter is possible; delete the topic and make it again", rule, topic.Kind)
	}
	return nil
}

func (e *Entity) declareSubscription(vh *broker.VHost, topic, queue string) error {
	x, err := vh.Exchanges.Get(topic)
	if err != nil {
		return err
	}
	var bindings []broker.Binding
	for i := range e.Rules {
		b, err := e.Rules[i].binding(topic, queue)
		if err = cmp.Or(err, CheckFilter(x, e.Rules[i].Name, b.Args)); err != nil {
			return err
		}
		bindings = append(bindings, b)
	}
	others := vh.BindingsWhere(func(b *broker.Binding) bool {
		return b.Source == topic && b.Destination == queue && !b.ToExchange && IsRule(b.Args) && !slices.ContainsFunc(bindings, func(given broker.Binding) bool {
			return given.RoutingKey == b.RoutingKey && exchange.ArgsEqual(given.Args, b.Args)
		})
	})
	if len(e.Rules) == 0 {
		if len(others) == 0 {
			bindings = []broker.Binding{{Source: topic, Destination: queue}}
		}
		others = nil
	}
	err = declareQueue(vh, queue, e)
	for i := 0; err == nil && i < len(bindings); i++ {
		err = vh.Bind(nil, bindings[i])
	}
	for i := 0; err == nil && i < len(others); i++ {
		err = vh.Unbind(nil, others[i])
	}
	return err
}

// declareQueue makes a queue or a subscription.
func declareQueue(vh *broker.VHost, name string, e *Entity) error {
	args, err := e.Args()
	if err != nil {
		return err
	}
	if q, err := vh.Queues.Get(name); err == nil && q.Declared().Durable && !q.Declared().Exclusive && !q.Declared().AutoDelete {
		return nil
	}
	_, err = vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args})
	return err
}

var (
	errSessions   = errors.New("RequiresSession: sessions are not supported")
	errDuplicates = errors.New("RequiresDuplicateDetection: duplicate detection is not supported")
	errForward    = errors.New("ForwardTo and ForwardDeadLetteredMessagesTo: auto-forwarding is not supported")
)

// Args are the arguments with which a queue or a subscription is declared.
func (e *Entity) Args() (amqp.Table, error) {
	p := &e.Properties
	switch {
	case p.RequiresSession:
		return nil, errSessions
	case p.RequiresDuplicateDetection:
		return nil, errDuplicates
	case p.ForwardTo != "" || p.ForwardDeadLetteredMessagesTo != "":
		return nil, errForward
	}
	if p.LockDuration == "" {
		p.LockDuration = "PT1M"
	}
	if p.MaxDeliveryCount == 0 {
		p.MaxDeliveryCount = 10
	}
	args := amqp.Table{"x-dead-letter-queue": true, "x-delivery-deadline": true, "x-max-delivery-count": p.MaxDeliveryCount}
	if !p.DeadLetteringOnMessageExpiration {
		args[policy.DeadLetterExpiredArg] = false
	}
	for name, text := range map[string]string{
		"x-message-ttl": p.DefaultMessageTimeToLive, "x-lock-duration": p.LockDuration, "x-auto-delete-on-idle": p.AutoDeleteOnIdle,
	} {
		if err := SetSpan(args, name, text); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// SetSpan sets an argument of milliseconds, unless the duration is empty or ten years or more, which is
// forever.
func SetSpan(args amqp.Table, name, text string) error {
	if text == "" {
		return nil
	}
	n, err := ParseDuration(text)
	if err == nil && n < forever {
		args[name] = n
	}
	return err
}

const forever = 315_360_000_000 // ms

var iso8601 = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// ParseDuration parses a duration of ISO 8601 without years, months and weeks, in milliseconds, rounded
// up.
func ParseDuration(text string) (millis int64, err error) {
	parts := iso8601.FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return 0, fmt.Errorf("%q is not a duration such as PT1M or P14D", text)
	}
	seconds := 0.0
	for i, unit := range []float64{86400, 3600, 60, 1} {
		if parts[i+1] != "" {
			n, err := strconv.ParseFloat(parts[i+1], 64)
			if err != nil {
				return 0, err
			}
			seconds += n * unit
		}
	}
	return int64(math.Ceil(min(seconds, 1e12) * 1000)), nil
}
