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

		UserMetadata                  string // this and the next two are kept, and mean nothing here
		EnablePartitioning            bool
		EnableBatchedOperations       *bool // default: true
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

// DefaultRule is the name of the rule that a subscription has unless it is made with others.
const DefaultRule = "$Default"

// args are the arguments of the binding that is the rule.
func (r *Rule) args() (args amqp.Table, err error) {
	switch p := &r.Properties; {
	case p.Action != nil:
		err = errActions
	case strings.EqualFold(p.FilterType, "Correlation"):
		args, err = p.CorrelationFilter.Args()
	default:
		args, err = SQLArgs(p.SQLFilter.SQLExpression)
	}
	if err != nil {
		err = fmt.Errorf("rule %s: %w", r.Name, err)
	}
	return args, err
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

// Declare makes the entities in a virtual host. One that exists keeps its messages and gets the settings of the configuration; changed
// names it. A subscription whose rules the configuration has gets those, and no others; one of which it has none keeps its own.
// What cannot be made so is left as it is; why says so for each.
func (c *Config) Declare(vh *broker.VHost) (changed []string, why []error) {
	for _, n := range c.UserConfig.Namespaces {
		d := declaring{vh: vh}
		for i := range n.Queues {
			d.add("queue", n.Queues[i].Name, n.Queues[i].declareQueue)
		}
		for i := range n.Topics {
			t := &n.Topics[i]
			known := vh.Exchanges.Check(t.Name) == nil
			if !d.add("topic", t.Name, t.declareTopic) {
				continue
			}
			for j := range t.Subscriptions {
				d.add("subscription", t.Name+"/Subscriptions/"+t.Subscriptions[j].Name, func(vh *broker.VHost, name string) (bool, error) {
					return t.Subscriptions[j].declareSubscription(vh, t.Name, name, known)
				})
			}
		}
		changed, why = append(changed, d.changed...), append(why, d.why...)
	}
	return changed, why
}

// declaring is one Config.Declare.
type declaring struct {
	vh      *broker.VHost
	changed []string
	why     []error
}

func (d *declaring) add(kind, name string, declare func(vh *broker.VHost, name string) (changed bool, err error)) bool {
	changed, err := declare(d.vh, name)
	if changed {
		d.changed = append(d.changed, kind+" "+name)
	}
	if err != nil {
		d.why = append(d.why, fmt.Errorf("%s %s: %w", kind, name, err))
	}
	return err == nil
}

// Arguments in which the administration API notes when it has made or changed an entity, in Unix ms, and what its client wants to remember.
const (
	CreatedArg  = "x-created-at"
	UpdatedArg  = "x-updated-at"
	MetadataArg = "x-user-metadata"

	PartitionedArg = "x-enable-partitioning"       // true if so
	BatchedArg     = "x-enable-batched-operations" // false if not
)

// adjust has change make the arguments of what exists those of the configuration.
func adjust(is, want amqp.Table, change func(amqp.Table) error) (changed bool, err error) {
	changes := amqp.Table{}
	for _, args := range []amqp.Table{is, want} {
		for name := range args {
			if v := want[name]; !exchange.ArgsEqual(amqp.Table{name: is[name]}, amqp.Table{name: v}) && name != CreatedArg && name != UpdatedArg {
				changes[name] = v
			}
		}
	}
	if len(changes) > 0 {
		err = exists(change(changes))
	}
	return len(changes) > 0 && err == nil, err
}

// exists says what to do about an entity that cannot be made as it should be.
func exists(err error) error {
	if err != nil {
		err = fmt.Errorf("it exists, and stays as it is: %w; delete it, and it is made as the configuration says at the next start", err)
	}
	return err
}

// TopicArgs are the arguments with which the exchange of a topic is declared.
func (e *Entity) TopicArgs() (args amqp.Table, err error) {
	if e.Properties.RequiresDuplicateDetection {
		return nil, errDuplicates
	}
	args = amqp.Table{}
	return args, e.common(args)
}

// common sets the arguments that queues, topics and subscriptions have.
func (e *Entity) common(args amqp.Table) error {
	if e.Properties.UserMetadata != "" {
		args[MetadataArg] = e.Properties.UserMetadata
	}
	if e.Properties.EnablePartitioning {
		args[PartitionedArg] = true
	}
	if batched := e.Properties.EnableBatchedOperations; batched != nil && !*batched {
		args[BatchedArg] = false
	}
	return cmp.Or(
		SetSpan(args, "x-message-ttl", "DefaultMessageTimeToLive", e.Properties.DefaultMessageTimeToLive),
		SetSpan(args, "x-auto-delete-on-idle", "AutoDeleteOnIdle", e.Properties.AutoDeleteOnIdle),
	)
}

func (e *Entity) declareTopic(vh *broker.VHost, name string) (changed bool, err error) {
	d := broker.ExchangeDeclare{Kind: TopicKind, Durable: true}
	if d.Args, err = e.TopicArgs(); err != nil {
		return false, err
	}
	x, err := vh.Exchanges.Get(name)
	switch {
	case err != nil:
		return false, vh.Exchanges.Declare(name, d)
	case x.Durable && !x.Internal && !x.AutoDelete && (x.Kind == TopicKind || x.Kind == oldTopicKind):
		return adjust(x.Args, d.Args, func(changes amqp.Table) error { return vh.Exchanges.Change(name, changes) })
	}
	return false, exists(vh.Exchanges.Declare(name, d))
}

// TopicKind is the type of the exchange of a topic: rules compare headers.
const TopicKind = "headers"

// oldTopicKind is the type that earlier versions declared.
const oldTopicKind = "fanout"

// declareSubscription makes or changes a subscription. known: the topic was there before.
func (e *Entity) declareSubscription(vh *broker.VHost, topic, queue string, known bool) (changed bool, err error) {
	var bindings, others []broker.Binding
	for i := range e.Rules {
		args, err := e.Rules[i].args()
		if err != nil {
			return false, err
		}
		b, err := NewRule(vh, topic, queue, e.Rules[i].Name, args)
		if err != nil {
			return false, err
		}
		bindings = append(bindings, b)
	}
	for _, r := range RulesOf(vh, topic, queue) {
		if !slices.ContainsFunc(bindings, func(b broker.Binding) bool { return b.RoutingKey == r.RoutingKey && exchange.ArgsEqual(b.Args, r.Args) }) {
			others = append(others, r.Binding)
		}
	}
	switch {
	case len(e.Rules) > 0:
	case known && vh.Queues.Has(queue): // its rules may have been deleted
		if len(others) == 0 {
			err = errNoRules
		}
		others = nil
	default:
		bindings = []broker.Binding{{Source: topic, Destination: queue}}
	}
	changed, err2 := e.declareQueue(vh, queue)
	err = cmp.Or(err2, err)
	for i := 0; err == nil && i < len(bindings); i++ {
		err = vh.Bind(nil, bindings[i])
	}
	for i := 0; err == nil && i < len(others); i++ {
		err = vh.Unbind(nil, others[i])
	}
	return changed, err
}

// declareQueue makes or changes a queue or a subscription.
func (e *Entity) declareQueue(vh *broker.VHost, name string) (changed bool, err error) {
	args, err := e.Args()
	if err != nil {
		return false, err
	}
	q, err := vh.Queues.Get(name)
	if err == nil {
		if d := q.Declared(); d.Durable && !d.Exclusive && !d.AutoDelete {
			return adjust(d.Args, args, func(changes amqp.Table) error { return vh.Queues.Change(nil, name, changes) })
		}
	}
	made := err != nil
	if _, err = vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args}); !made {
		err = exists(err)
	}
	return false, err
}

var (
	errSessions   = errors.New("RequiresSession: sessions are not supported")
	errDuplicates = errors.New("RequiresDuplicateDetection: duplicate detection is not supported")
	errNoRules    = errors.New("it has no rules, and gets no messages by them: add a rule, or delete it, and it is made with the true filter at the next start")
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
	p.LockDuration = cmp.Or(p.LockDuration, "PT1M")
	p.MaxDeliveryCount = cmp.Or(p.MaxDeliveryCount, 10)
	args := amqp.Table{"x-dead-letter-queue": true, "x-delivery-deadline": true, "x-max-delivery-count": p.MaxDeliveryCount}
	if !p.DeadLetteringOnMessageExpiration {
		args[policy.DeadLetterExpiredArg] = false
	}
	return args, cmp.Or(e.common(args), SetSpan(args, "x-lock-duration", "LockDuration", p.LockDuration))
}

// Forever is the longest duration of Azure, which it writes where there is no limit. Some SDKs write only its days.
const (
	Forever       = "P10675199DT2H48M5.4775807S"
	ForeverMillis = 10_675_199 * 86_400_000
)

// SetSpan sets the argument name to the milliseconds of a duration of ISO 8601, unless that is empty or more than ten years, which is forever.
// Errors name the property: it cannot be parsed, or is nothing.
func SetSpan(args amqp.Table, name, property, text string) error {
	if text == "" {
		return nil
	}
	n, err := ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", property, err)
	case n == 0:
		return fmt.Errorf("%s: %s is too short", property, text)
	case n <= policy.MaxTTLMillis:
		args[name] = n
	}
	return nil
}

var iso8601 = regexp.MustCompile(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// ParseDuration parses a duration of ISO 8601, in milliseconds, rounded up. As in .NET a year has 365 days and a month 30, and there are no weeks.
func ParseDuration(text string) (millis int64, err error) {
	parts := iso8601.FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return 0, fmt.Errorf("%q is not a duration such as PT1M or P14D", text)
	}
	seconds := 0.0
	for i, unit := range []float64{365 * 86400, 30 * 86400, 86400, 3600, 60, 1} {
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
