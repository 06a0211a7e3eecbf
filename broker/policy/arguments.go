package policy

import (
	"fmt"
	"strings"
	"unique"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/exchange"
	"curfew/broker/queue"
)

// MaxTTLMillis is the longest time to live, ten years (RabbitMQ: Time-To-Live).
const MaxTTLMillis = 315_360_000_000

// Settings are a queue's arguments, parsed.
type Settings struct {
	TTLMillis          int64  // x-message-ttl; <0 none
	ExpiresMillis      int64  // x-expires; 0 none
	IdleMillis         int64  // x-auto-delete-on-idle; 0 none
	TimeoutMillis      int64  // x-consumer-timeout; 0 not set
	LockMillis         int64  // x-lock-duration; 0 none
	MaxDeliveries      int64  // x-max-delivery-count; 0 none
	DeadLetterExchange string // x-dead-letter-exchange
	DeadLetterKey      string // x-dead-letter-routing-key
	Subqueue           string // the name of the queue that x-dead-letter-queue makes
	Core               queue.Options

	Type             QueueType
	Precedence       Precedence
	Shows            Shows              // x-delivery-deadline, x-remaining-expiration
	DeadLetters      bool               // DeadLetterExchange is set
	HasDeadLetterKey bool               // DeadLetterKey is set
	AtLeastOnce      bool               // a dead letter is kept until all its targets have it
	HasSubqueue      bool               // Subqueue is set
	DropsExpired     bool               // messages that expire are not dead-lettered
	Keeps            bool               // nothing expires in it
	SingleActive     bool               // x-single-active-consumer
	Purpose          deadline.Purpose   // x-curfew-purpose; 0: it is inferred
	Objective        deadline.Objective // x-curfew-objective
	names            unique.Handle[Names]
}

// Names are what policies name for a queue; few queues have any.
type Names struct {
	Park           string // the queue for messages that have come back too often; "": they are dead-lettered as others
	DeadlineHeader string // the header with a message's absolute deadline, besides x-expires-at; "": none
	DelayHeader    string // the header that delays what is sent to the queue by its name; "": none
}

// Names returns what policies name for the queue.
func (s *Settings) Names() (n Names) {
	if s.names != (unique.Handle[Names]{}) {
		n = s.names.Value()
	}
	return n
}

// Shows are what a queue adds to messages when it delivers them. Messages are stored,
// dead-lettered and shown by Browse as they were published.
type Shows uint8

const (
	ShowDeadline  Shows = 1 << iota // x-delivery-deadline: headers with the deadline
	ShowRemaining                   // x-remaining-expiration: the expiration property is the remaining time
)

// Limited reports whether dispatch and trim must follow each single publish, so that a
// batch meets the limits as its messages would one by one.
func (s *Settings) Limited() bool { return s.Core.MaxLength >= 0 || s.Core.MaxBytes >= 0 }

// ParseQueue reads the arguments of queue.declare. label names the queue in error texts,
// which are RabbitMQ's: 406 on the channel. The error is the first mistake in
// RabbitMQ's order; the settings that come with it leave out what is invalid.
func ParseQueue(defaults Defaults, label string, args amqp.Table) (Settings, error) {
	p := argParser{defaults: defaults, label: label, args: args}
	var s Settings
	s.DeadLetterExchange, s.DeadLetters = p.exchange("x-dead-letter-exchange")
	s.Type = p.queueType()
	s.ExpiresMillis = p.span("x-expires", 0, 1)
	s.TTLMillis = p.span("x-message-ttl", -1, 0)
	s.Precedence = p.precedence()
	if s.DeadLetterKey, s.HasDeadLetterKey = p.name("x-dead-letter-routing-key"); s.HasDeadLetterKey && !s.DeadLetters {
		p.fail("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")
	}
	if s.Type == Quorum {
		s.AtLeastOnce = p.choice("x-dead-letter-strategy", strategyName, "invalid_dlx_strategy") == "at-least-once"
	}
	s.Core = queue.Options{
		MaxLength:     p.integer("x-max-length", -1, 0, 1<<62),
		MaxBytes:      p.integer("x-max-length-bytes", -1, 0, 1<<62),
		DeliveryLimit: -1,
	}
	if s.Type == Classic {
		s.Core.Priorities = p.priorities()
	} else {
		s.Core.DeliveryLimit = p.deliveryLimit()
		s.Core.Retry = p.retry()
		s.Core.Priorities, s.Core.TwoLevels = 1, true
	}
	s.Core.Overflow = s.Type.Overflow(p.choice("x-overflow", overflowMode, "invalid_overflow"))
	p.ignored(s.Type)
	s.SingleActive = p.bool("x-single-active-consumer")
	s.TimeoutMillis = p.integer("x-consumer-timeout", 0, 1, MaxTTLMillis)
	s.LockMillis = p.integer("x-lock-duration", 0, 1, MaxTTLMillis)
	s.MaxDeliveries = p.integer("x-max-delivery-count", 0, 1, mostDeliveries)
	s.HasSubqueue = p.bool("x-dead-letter-queue")
	if _, given := p.args[DeadLetterExpiredArg]; given {
		s.DropsExpired = !p.bool(DeadLetterExpiredArg)
	}
	if p.bool("x-delivery-deadline") {
		s.Shows |= ShowDeadline
	}
	if p.bool("x-remaining-expiration") {
		s.Shows |= ShowRemaining
	}
	s.IdleMillis = p.idle()
	s.Purpose, s.Objective = p.purpose(), p.objective()
	p.refuseForeign(s.Type)
	p.refuseMeaningless(meaninglessArgs)
	s.AtLeastOnce = s.AtLeastOnce && s.DeadLetters && s.Core.Overflow == queue.RejectPublish
	return s, p.err
}

// Defaults are the broker's options that apply where arguments set nothing.
type Defaults struct {
	Precedence        Precedence
	IdleMinimumMillis int64 // the least x-auto-delete-on-idle
}

// argParser reads arguments and keeps the first error.
type argParser struct {
	defaults Defaults
	label    string
	args     amqp.Table
	err      error
}

func (p *argParser) fail(name, reason string) {
	if p.err == nil {
		p.err = badArg(name, p.label, reason)
	}
}

// integer reads an argument of any AMQP integer type within [low, high].
func (p *argParser) integer(name string, absent, low, high int64) int64 {
	v, ok := p.args[name]
	if !ok {
		return absent
	}
	n, isInt := amqp.Integer(v)
	switch {
	case !isInt:
		p.fail(name, `"expected integer, got `+amqp.TypeName(v)+`"`)
	case n < 0:
		p.fail(name, fmt.Sprintf("{value_negative,%d}", n))
	case n < low:
		p.fail(name, fmt.Sprintf("{value_zero,%d}", n))
	case n > high:
		p.fail(name, fmt.Sprintf("{value_too_large,%d}", n))
	default:
		return n
	}
	return absent
}

// span reads ms from low to MaxTTLMillis. Never (IsNever) is read as absent.
func (p *argParser) span(name string, absent, low int64) int64 {
	if n, ok := amqp.Integer(p.args[name]); ok && IsNever(n) {
		return absent
	}
	return p.integer(name, absent, low, MaxTTLMillis)
}

// typed reads an argument of one type.
func typed[T any](p *argParser, name string) (v T, ok bool) {
	arg, given := p.args[name]
	if v, ok = arg.(T); given && !ok {
		p.fail(name, "{unacceptable_type,"+amqp.TypeName(arg)+"}")
	}
	return v, ok
}

func (p *argParser) text(name string) (string, bool) { return typed[string](p, name) }

// choice reads a text that has to be valid; problem says what is wrong otherwise, with the text in it for %s.
func (p *argParser) choice(name string, valid func(any) bool, problem string) string {
	s, ok := p.text(name)
	if ok && !valid(s) {
		p.fail(name, strings.ReplaceAll(problem, "%s", s))
	}
	return s
}

// name reads a text that must fit into AMQP's short string.
func (p *argParser) name(arg string) (string, bool) {
	s, ok := p.text(arg)
	return p.fits(arg, s), ok
}

func (p *argParser) fits(arg, s string) string {
	if len(s) > 255 {
		p.fail(arg, fmt.Sprintf("{too_long,%d}", len(s)))
	}
	return s
}

// exchange reads the name of an exchange, for which RabbitMQ has a different error text.
func (p *argParser) exchange(name string) (string, bool) {
	v, ok := p.args[name]
	s, isText := v.(string)
	if ok && !isText && p.err == nil {
		p.err = amqp.NewException(amqp.PreconditionFailed, 0, 0, "invalid type '%s' for arg '%s' in %s", amqp.TypeName(v), name, p.label)
	}
	return p.fits(name, s), isText
}

var overflowMode = oneOf("drop-head", "reject-publish", "reject-publish-dlx")

const (
	purposeArg   = "x-curfew-purpose"
	objectiveArg = "x-curfew-objective"
)

// purpose reads x-curfew-purpose; without it the purpose is that of a policy, or inferred.
func (p *argParser) purpose() deadline.Purpose {
	name, given := p.text(purposeArg)
	purpose, ok := deadline.ParsePurpose(name)
	if given && !ok {
		p.fail(purposeArg, `"`+purposeProblem+`"`)
	}
	return purpose
}

// objective reads x-curfew-objective.
func (p *argParser) objective() (o deadline.Objective) {
	if text, ok := p.text(objectiveArg); ok {
		var err error
		if o, err = deadline.ParseObjective(text); err != nil {
			p.fail(objectiveArg, `"`+err.Error()+`"`)
		}
	}
	return o
}

// precedence reads x-ttl-precedence; without it the broker's default applies.
func (p *argParser) precedence() Precedence {
	name, ok := p.text("x-ttl-precedence")
	if !ok {
		return p.defaults.Precedence
	}
	precedence, known := ParsePrecedence(name)
	if !known {
		p.fail("x-ttl-precedence", fmt.Sprintf(`"expected min or message, got '%s'"`, name))
	}
	return precedence
}

func (p *argParser) priorities() uint8 {
	n := p.integer("x-max-priority", 0, 0, 1<<62)
	if n > 255 {
		p.fail("x-max-priority", fmt.Sprintf("{max_value_exceeded,%d}", n))
	}
	return uint8(n)
}

// mostDeliveries is the highest x-max-delivery-count: a queue counts no further.
const mostDeliveries = 1<<16 - 1

// meaningless is an argument that has no effect but looks as if it had one, so it is refused: one
// of Curfew's own in the wrong place, or Service Bus's name for something that has another name
// here, or is not supported. Other arguments without effect are accepted, as in RabbitMQ.
type meaningless struct{ arg, why string }

var (
	meaninglessArgs = []meaningless{
		{"x-expires-at", "a header of messages"},
		{"x-scheduled-enqueue-time", "a header of messages"},
		{"x-expiry-receipt", "a header of messages"},
		{"x-default-message-time-to-live", "use x-message-ttl"},
		{"x-forward-to", "auto-forwarding is not supported"},
		{"x-auto-forward-to", "auto-forwarding is not supported"},
		{"x-forward-dead-lettered-messages-to", "auto-forwarding is not supported"},
		{"x-requires-session", "sessions are not supported"},
		{"x-session-id", "sessions are not supported"},
		{"x-requires-duplicate-detection", "duplicate detection is not supported"},
		{"x-enable-deferral", "deferral is not supported"},
	}
	// queueArgs are Curfew's own arguments that exchanges do not take.
	queueArgs = []meaningless{
		{"x-lock-duration", "an argument of queues"},
		{"x-dead-letter-queue", "an argument of queues"},
		{"x-max-delivery-count", "an argument of queues"},
		{"x-ttl-precedence", "an argument of queues"},
		{"x-delivery-deadline", "an argument of queues"},
		{"x-remaining-expiration", "an argument of queues"},
		{purposeArg, "an argument of queues"},
		{objectiveArg, "an argument of queues"},
	}
)

// refuseMeaningless refuses the arguments of the list.
func (p *argParser) refuseMeaningless(list []meaningless) {
	for _, m := range list {
		if v, given := p.args[m.arg]; given && v != false { // false asks for nothing
			p.fail(m.arg, `"`+m.why+`"`)
		}
	}
}

// CheckExchange checks the arguments of exchange.declare that have an effect here, and refuses those
// that only look as if they had one.
func CheckExchange(defaults Defaults, label string, args amqp.Table) error {
	p := argParser{defaults: defaults, label: label, args: args}
	p.exchange("alternate-exchange")
	p.span("x-message-ttl", -1, 0)
	p.idle()
	p.refuseMeaningless(meaninglessArgs)
	p.refuseMeaningless(queueArgs)
	return p.err
}

// ExchangeLimits reads the times in the arguments of an exchange. Invalid ones are read as absent.
func ExchangeLimits(defaults Defaults, args amqp.Table) (ttlMillis, idleMillis int64) {
	p := argParser{defaults: defaults, args: args}
	return p.span("x-message-ttl", -1, 0), p.idle()
}

// idle reads x-auto-delete-on-idle; 0 is none.
func (p *argParser) idle() int64 {
	n := p.span("x-auto-delete-on-idle", 0, 1)
	if n != 0 && n < p.defaults.IdleMinimumMillis {
		p.fail("x-auto-delete-on-idle", fmt.Sprintf("%d is less than CURFEW_IDLE_MINIMUM, which is %d ms", n, p.defaults.IdleMinimumMillis))
		return 0
	}
	return n
}

func badArg(name, label, reason string) error {
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "invalid arg '%s' for %s: %s", name, label, reason)
}

// CheckEqual compares the named arguments of a redeclare as RabbitMQ does:
// integers of any width are one type.
func CheckEqual(label string, received, current amqp.Table, names []string) error {
	for _, name := range names {
		r, hasR := received[name]
		c, hasC := current[name]
		if hasR == hasC && (!hasR || exchange.ArgsEqual(amqp.Table{name: r}, amqp.Table{name: c})) {
			continue
		}
		if name == "x-queue-type" && typeOrClassic(r) == typeOrClassic(c) {
			continue
		}
		if hasR && hasC {
			return Inequivalent(name, label, fmt.Sprint(r), fmt.Sprint(c))
		}
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "inequivalent arg '%s' for %s: received %s but current is %s",
			name, label, presenceText(r, hasR), presenceText(c, hasC))
	}
	return nil
}

// typeOrClassic is the type v, classic without one.
func typeOrClassic(v any) any {
	if v == nil {
		return Classic.String()
	}
	return v
}

// Inequivalent is RabbitMQ's error for a redeclare with a different value.
func Inequivalent(name, label, received, current string) error {
	return amqp.NewException(amqp.PreconditionFailed, 0, 0,
		"inequivalent arg '%s' for %s: received '%s' but current is '%s'", name, label, received, current)
}

func presenceText(v any, present bool) string {
	if !present {
		return "none"
	}
	return "the value '" + fmt.Sprint(v) + "' of type '" + amqp.TypeName(v) + "'"
}
