package policy

import (
	"maps"
	"math"
	"slices"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// A key is one setting of a definition.
type key struct {
	name    string
	scope   scope
	valid   func(any) bool
	problem string // what RabbitMQ says after a value that is not valid
	apply   setter // nil: it has no effect on a queue
}

// setter sets what the key of a definition says.
type setter func(t *target, d Definition, key string)

// scope says where a key may be set, and what a policy does not apply to.
type scope uint8

const (
	noClassic  scope = 1 << ClassicQueue // a policy with this key passes over classic queues, as in RabbitMQ: the next that matches counts
	noQuorum   scope = 1 << QuorumQueue
	noStream   scope = 1 << Stream
	noExchange scope = 1 << Exchange // only from apply-to
	operator   scope = 1 << 4        // operator policies may set it, too
	queuesOnly scope = 1 << 5        // refused in a policy for exchanges alone; RabbitMQ accepts its own keys for anything
	mirroring  scope = 1 << 6        // checked with the others of mirrored queues, see mirroring.go
)

// longest is the longest possible period, ten years in ms (RabbitMQ: Time-To-Live).
const longest = MaxTTLMillis

// keys are all keys, in the order in which they are applied.
var keys = []key{
	{"alternate-exchange", 0, name, " is not a valid alternate exchange name", nil},
	{"dead-letter-exchange", noStream, name, " is not a valid dead letter exchange name", deadLetterExchange},
	{"dead-letter-routing-key", noStream, name, " is not a valid dead letter routing key", deadLetterKey},
	{"dead-letter-strategy", noClassic | noStream, strategyName, " is not a valid dead letter strategy", nil}, // see finish
	{"message-ttl", operator | noStream, atLeast(0), " is not a valid message TTL", lower(-1, func(t *target) *int64 { return &t.TTLMillis })},
	{"ttl-precedence", 0, oneOf("min", "message"), " is not a valid TTL precedence: it is min or message", ttlPrecedence},
	{"expires", operator | noStream, atLeast(1), " is not a valid queue expiry", unlessKept(lower(0, func(t *target) *int64 { return &t.ExpiresMillis }))},
	{"max-length", operator | noStream, atLeast(0), " is not a valid maximum length", lower(-1, func(t *target) *int64 { return &t.Core.MaxLength })},
	{"max-length-bytes", operator, atLeast(0), " is not a valid maximum length in bytes", lower(-1, func(t *target) *int64 { return &t.Core.MaxBytes })},
	{"max-in-memory-length", operator | noStream, atLeast(0), " is not a valid maximum memory in bytes", nil},
	{"max-in-memory-bytes", operator | noStream, atLeast(0), " is not a valid maximum memory in bytes", nil},
	{"overflow", operator | noStream, overflowMode, " is not a valid overflow value", overflow},
	{"delivery-limit", operator | noClassic | noStream, is[int64], " is not a valid delivery limit", deliveryLimit},
	{"delayed-retry-type", operator | noClassic | noStream, retryType, " is not a valid delayed retry type", nil}, // see finishRetry
	{"delayed-retry-min", operator | noClassic | noStream, between(0, longest), " is not a valid minimum delay of retries", nil},
	{"delayed-retry-max", operator | noClassic | noStream, between(0, longest), " is not a valid maximum delay of retries", nil},
	{"retry-backoff", queuesOnly | noStream, backoff, " is not a valid back-off: it is a list of 1 to 16 waits, such as 1s,5s,30s,2m", nil},
	{"retry-jitter", queuesOnly | noStream, between(0, 100), " is not a valid jitter: it is a percentage, 0 to 100", nil},
	{"retry-park", queuesOnly | noStream, filledName, " is not a valid name of a queue", nil},
	{"lock-duration", queuesOnly, between(1, longest), " is not a valid lock duration", lower(0, func(t *target) *int64 { return &t.LockMillis })},
	{"dead-letter-queue", queuesOnly, is[bool], " is not a valid value of dead-letter-queue, which is true or false", unlessKept(deadLetterQueue)},
	{"auto-delete-on-idle", operator, between(1, longest), " is not a valid idle period", unlessKept(lower(0, func(t *target) *int64 { return &t.IdleMillis }))},
	{"max-delivery-count", operator | queuesOnly, between(1, 1<<16-1), " is not a valid maximum delivery count", maxDeliveryCount},
	{"consumer-timeout", 0, atLeast(0), " is not a valid consumer timeout", lower(0, func(t *target) *int64 { return &t.TimeoutMillis })},
	{"remaining-expiration", 0, is[bool], " is not a valid remaining expiration setting; it is true or false", remainingExpiration},
	{"curfew-purpose", queuesOnly, oneOf("work", "retry", "dead-letters", "telemetry", "reply"), ` is not a valid purpose: ` + purposeProblem, purpose},
	{"curfew-objective", queuesOnly, objectiveText, ` is not a valid objective: it is like "99% consumed within 30s", or "none expires"`, objective},
	{"deadline-header", queuesOnly | noStream, filledName, " is not a valid name of a header", deadlineHeader},
	{"delay-header", noStream, filledName, " is not a valid name of a header", delayHeader},
	{"queue-mode", noQuorum | noStream, queueMode, " is not a valid queue-mode value", nil},
	{"queue-version", operator | noStream, oneOf(int64(1), int64(2)), " is not a valid queue-version value", nil},
	{"max-age", noClassic | noQuorum, age, " is not a valid max age", nil},
	{"stream-max-segment-size-bytes", noClassic | noQuorum, atLeast(0), " is not a valid segment size", nil},
	{"stream-filter-size-bytes", noClassic | noQuorum, between(16, 255), " is not a valid filter size", nil},
	{"initial-cluster-size", noClassic | noQuorum, atLeast(0), " is not a valid cluster size", nil},
	{"target-group-size", noClassic | noStream, atLeast(1), " is not a valid target count", nil},
	{"consumer-disconnected-timeout", operator | noClassic | noStream, atLeast(0), " is not a valid consumer disconnected timeout", nil},
	{"queue-leader-locator", noClassic, leaderLocator, " is not a valid queue leader locator value", nil},
	{"queue-master-locator", noQuorum | noStream, oneOf("client-local", "min-masters", "random"), " invalid queue-master-locator value", nil},
	{"ha-mode", mirroring | noQuorum | noStream, nil, "", nil},
	{"ha-params", mirroring | noQuorum | noStream, nil, "", nil},
	{"ha-sync-mode", mirroring | noQuorum | noStream, nil, "", nil},
	{"ha-sync-batch-size", mirroring, nil, "", nil},
	{"ha-promote-on-shutdown", mirroring | noQuorum | noStream, nil, "", nil},
	{"ha-promote-on-failure", mirroring | noQuorum | noStream, nil, "", nil},
}

func keyNamed(name string) *key {
	if i := slices.IndexFunc(keys, func(k key) bool { return k.name == name }); i >= 0 {
		return &keys[i]
	}
	return nil
}

// checkDefinition returns the first thing that is wrong with a definition, or "".
func checkDefinition(k Kind, v any) string {
	d, ok := v.(map[string]any)
	if !ok {
		return "definition must be a dictionary: " + term(v)
	}
	if len(d) == 0 {
		return "no policy provided"
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		switch known := keyNamed(name); {
		case known == nil || k == Operator && known.scope&operator == 0:
			unknown = append(unknown, "{"+term(name)+","+term(d[name])+"}")
		case known.scope&mirroring == 0 && !known.valid(d[name]):
			return term(d[name]) + known.problem
		}
	}
	if k == User {
		if problem := checkMirroring(d); problem != "" {
			return problem
		}
	}
	if unknown != nil {
		return "[" + strings.Join(unknown, ",") + "] are not recognised policy settings"
	}
	return ""
}

// target is a queue whose settings a definition changes.
type target struct {
	Settings
	args  amqp.Table
	name  string
	names Names
}

// Apply returns the settings of a queue whose arguments give s and whose policies give d: the
// lower of two limits, otherwise what was declared (RabbitMQ: Policies). name is the queue's.
func (d Definition) Apply(s Settings, args amqp.Table, name string) Settings {
	t := target{Settings: s, args: args, name: name}
	for i := range keys {
		if k := &keys[i]; k.apply != nil && d[k.name] != nil {
			k.apply(&t, d, k.name)
		}
	}
	t.finish(d)
	return t.Settings
}

// finish settles what follows from several keys and arguments.
func (t *target) finish(d Definition) {
	if IsNever(t.TTLMillis) {
		t.TTLMillis = -1
	}
	if IsNever(t.ExpiresMillis) {
		t.ExpiresMillis = 0
	}
	t.TTLMillis, t.ExpiresMillis = min(t.TTLMillis, longest), min(t.ExpiresMillis, longest)
	if t.Type == Quorum {
		strategy, declared := t.args["x-dead-letter-strategy"].(string)
		if !declared {
			strategy, _ = d.Text("dead-letter-strategy")
		}
		t.AtLeastOnce = strategy == "at-least-once" && t.DeadLetters && t.Core.Overflow == queue.RejectPublish
	}
	if t.MaxDeliveries != 0 && !t.Keeps {
		byDefault := t.Type == Quorum && t.args["x-delivery-limit"] == nil && d["delivery-limit"] == nil
		if limit := t.MaxDeliveries - 1; byDefault || t.Core.DeliveryLimit < 0 || limit < t.Core.DeliveryLimit {
			t.Core.DeliveryLimit = limit // after this many failures it is delivered once more
		}
	}
	t.finishRetry(d)
	t.UseSubqueue()
}

// Lower lowers a limit to that of a key. A value up to none means that there is no limit.
func (d Definition) Lower(value *int64, key string, none int64) {
	if n, ok := d.Integer(key); ok && n > none && (*value <= none || n < *value) {
		*value = n
	}
}

// lower applies a limit, if it is lower than the one that was declared.
func lower(none int64, of func(*target) *int64) setter {
	return func(t *target, d Definition, key string) { d.Lower(of(t), key, none) }
}

// unlessKept leaves out dead-letter sub-queues, which exist as long as their queues and from which
// nothing is dead-lettered, and UndeliverableQueue: its messages must not be lost because nobody
// looks at them. The same goes for deferred messages.
func unlessKept(apply setter) setter {
	return func(t *target, d Definition, key string) {
		if !t.Keeps && t.name != UndeliverableQueue && !strings.HasSuffix(t.name, DeferredSuffix) {
			apply(t, d, key)
		}
	}
}

func deadLetterExchange(t *target, d Definition, key string) {
	if !t.DeadLetters {
		t.DeadLetterExchange, t.DeadLetters = d.Text(key)
	}
}

func deadLetterKey(t *target, d Definition, key string) {
	if !t.HasDeadLetterKey {
		t.DeadLetterKey, t.HasDeadLetterKey = d.Text(key)
	}
}

func ttlPrecedence(t *target, d Definition, key string) {
	if name, _ := d.Text(key); t.args["x-ttl-precedence"] == nil {
		t.Precedence, _ = ParsePrecedence(name)
	}
}

const purposeProblem = "it is work, retry, dead-letters, telemetry or reply"

func purpose(t *target, d Definition, key string) {
	if name, _ := d.Text(key); t.Purpose == 0 {
		t.Purpose, _ = deadline.ParsePurpose(name)
	}
}

func objective(t *target, d Definition, key string) {
	if text, _ := d.Text(key); t.Objective == (deadline.Objective{}) {
		t.Objective, _ = deadline.ParseObjective(text)
	}
}

func overflow(t *target, d Definition, key string) {
	if mode, _ := d.Text(key); t.args["x-overflow"] == nil {
		t.Core.Overflow = t.Type.Overflow(mode)
	}
}

func deliveryLimit(t *target, d Definition, key string) {
	if n, _ := d.Integer(key); t.args["x-delivery-limit"] == nil {
		t.Core.DeliveryLimit = max(n, -1) // in place of the default, even if higher
	} else {
		d.Lower(&t.Core.DeliveryLimit, key, -1)
	}
}

func maxDeliveryCount(t *target, d Definition, key string) {
	if !t.Keeps {
		d.Lower(&t.MaxDeliveries, key, 0)
	}
}

func deadLetterQueue(t *target, d Definition, key string) {
	if asked, _ := d.Bool(key); asked && t.args["x-dead-letter-queue"] == nil && len(t.name+SubqueueSuffix) <= 255 {
		t.HasSubqueue, t.Subqueue = true, t.name+SubqueueSuffix
	}
}

func remainingExpiration(t *target, d Definition, key string) {
	if show, _ := d.Bool(key); show && t.args["x-remaining-expiration"] == nil {
		t.Shows |= ShowRemaining
	}
}

func deadlineHeader(t *target, d Definition, key string) {
	if !t.Keeps {
		t.names.DeadlineHeader, _ = d.Text(key)
	}
}

func delayHeader(t *target, d Definition, key string) { t.names.DelayHeader, _ = d.Text(key) }

// The checks of values:

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// name reports whether v is a text that fits an AMQP short string: a dead letter could not be written with a longer one. RabbitMQ accepts any.
func name(v any) bool {
	s, ok := v.(string)
	return ok && len(s) <= 255
}

// filledName is name for one that may not be empty.
func filledName(v any) bool { return name(v) && v != "" }

func objectiveText(v any) bool {
	s, ok := v.(string)
	_, err := deadline.ParseObjective(s)
	return ok && err == nil
}

func atLeast(low int64) func(any) bool { return between(low, math.MaxInt64) }

func between(low, high int64) func(any) bool {
	return func(v any) bool {
		n, ok := v.(int64)
		return ok && n >= low && n <= high
	}
}

func oneOf(values ...any) func(any) bool {
	return func(v any) bool {
		switch v.(type) {
		case string, int64:
			return slices.Contains(values, v)
		}
		return false
	}
}

// age is a stream's max-age: digits and a unit.
func age(v any) bool {
	s, _ := v.(string)
	digits := strings.TrimRight(s, "YMDhms")
	return len(s)-len(digits) == 1 && digits != "" && strings.Trim(digits, "0123456789") == ""
}
