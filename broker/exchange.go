package broker

import (
	"strings"
	"sync/atomic"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/policy"
)

// predeclared are the exchanges every virtual host has (AMQP 0-9-1 §3.1.3).
// The default exchange "" is not among them: it has no bindings to hold.
var predeclared = map[string]exchange.Kind{
	"amq.direct":  "direct",
	"amq.fanout":  "fanout",
	"amq.topic":   "topic",
	"amq.headers": "headers",
	"amq.match":   "headers",
}

// destination is what a binding leads to: a queue or another exchange.
type destination struct {
	queue    *Queue
	exchange *Exchange
}

// Exchange is a declared exchange. Its router is guarded by its virtual host's mu.
type Exchange struct {
	vh         *VHost
	name       string
	kind       exchange.Kind
	declared   ExchangeDeclare
	alternate  string // exchange for what this one routes nowhere; "" none
	ttlMillis  int64  // most that what it routes may live; <0 none
	idleMillis int64  // x-auto-delete-on-idle; 0 none
	router     exchange.Router[destination]
	sources    sources
	hadBound   bool // something was bound once: auto-delete may act
	policies   applied
	tally      exchangeTally
	usedAt     atomic.Int64 // Unix µs: x-auto-delete-on-idle counts from it
	alarmIndex int          // in the broker's alarms, by which it is guarded
}

// ExchangeDeclare is what exchange.declare carries besides the name.
type ExchangeDeclare struct {
	Kind                          string
	Durable, AutoDelete, Internal bool
	Args                          amqp.Table
}

func (vh *VHost) newExchange(name string, kind exchange.Kind, d ExchangeDeclare) *Exchange {
	if d.Kind == "" {
		d.Kind = string(kind)
	}
	x := &Exchange{vh: vh, name: name, kind: kind, declared: d, router: exchange.New[destination](kind), alarmIndex: notTimed}
	x.govern(applied{})
	return x
}

// DeclareExchange makes the exchange unless an equal one is there
// (AMQP 0-9-1 exchange.declare). Errors: 503 unknown type, 403 reserved name,
// 406 inequivalent argument.
func (vh *VHost) DeclareExchange(name string, d ExchangeDeclare) error {
	kind, err := checkExchange(name, d)
	if err != nil {
		return err
	}
	if err := vh.checkExchangeArgs(name, d.Args); err != nil {
		if !vh.restoring() {
			return err
		}
		vh.b.log.Warn("a saved exchange would be refused now, and is kept without what is wrong; delete it and declare it anew",
			zap.String("vhost", vh.name), zap.String("exchange", name), zap.Error(err))
	}
	for {
		var a applied
		var ruled uint64
		if vh.CheckExchange(name) != nil {
			if a, ruled, err = vh.ruleNew(policy.Thing{Class: policy.Exchange, Name: name}); err != nil {
				return err
			}
		}
		if err = vh.addExchange(vh.newExchange(name, kind, d), a, ruled); err != errRuledAnew {
			return err
		}
	}
}

// addExchange puts the exchange among the others once it is saved, unless an equal one
// is there.
func (vh *VHost) addExchange(made *Exchange, a applied, ruled uint64) error {
	name, d := made.name, made.declared
	key := keyOf(exchangeKind, vh.name, name)
	return vh.claimed(key, func() error {
		if x, ok := vh.exchanges[name]; ok {
			if err := vh.exchangeEquivalent(x, d); err != nil {
				return err
			}
			x.use()
			return nil
		}
		if strings.HasPrefix(name, "amq.") {
			return amqp.NewException(amqp.AccessRefused, 0, 0, "exchange name '%s' contains reserved prefix 'amq.*'", name)
		}
		if err := vh.checkExchangeLimit(name); err != nil {
			return err
		}
		if err := vh.holds(&a, ruled); err != nil {
			return err
		}
		if err := vh.declare(made.footprint(), vh.exchangeLabel(name), false); err != nil {
			return err
		}
		if err := vh.saveRuled(made.governed(), &a, ruled, d.Durable, key, vh.exchangeDefinition(made)); err != nil {
			vh.undeclare(made.footprint())
			return err
		}
		vh.placeExchange(made, a)
		return nil
	})
}

// placeExchange puts an exchange among the others; called with mu held.
func (vh *VHost) placeExchange(x *Exchange, a applied) {
	vh.exchanges[x.name] = x
	x.govern(a)
	x.use()
	vh.changed()
}

// DelayedMessageKind is the type of exchanges for delayed messages; how they route
// the argument x-delayed-type says (RabbitMQ: Delayed Message Plugin). Any exchange
// delays by x-delay here, so that is all it means.
const DelayedMessageKind = "x-delayed-message"

func (vh *VHost) checkExchangeArgs(name string, args amqp.Table) error {
	p := argParser{vh: vh, label: vh.exchangeLabel(name), args: args}
	p.exchange("alternate-exchange")
	p.span("x-message-ttl", -1, 0)
	p.idle()
	p.onlyMeant(meaninglessArgs)
	p.onlyMeant(queueArgs)
	return p.err
}

// CheckExchange is the passive declare: nil if the exchange exists, else 404. It counts as
// use.
func (vh *VHost) CheckExchange(name string) error {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	if x, ok := vh.exchanges[name]; ok {
		x.use()
	} else if name != "" {
		return vh.noExchange(name)
	}
	return nil
}

// DeleteExchange removes the exchange and its bindings; one that does not exist
// is deleted already. Error: 406 in use, when ifUnused and something is bound.
func (vh *VHost) DeleteExchange(name string, ifUnused bool) error {
	if err := vh.checkDeletable(name); err != nil {
		return err
	}
	return vh.mutate(func() error {
		x, ok := vh.exchanges[name]
		if !ok {
			return nil
		}
		if ifUnused && x.router.Len() > 0 {
			return amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s in use", vh.exchangeLabel(name))
		}
		vh.removeExchange(x)
		return nil
	})
}

func (vh *VHost) checkDeletable(name string) error {
	if strings.HasPrefix(name, "amq.") {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "deletion of system %s not allowed", vh.exchangeLabel(name))
	}
	return checkDefaultExchange(name)
}

// removeExchange forgets x and what was bound to or from it.
func (vh *VHost) removeExchange(x *Exchange) {
	delete(vh.exchanges, x.name)
	vh.charge(&x.policies, &applied{})
	vh.undeclare(x.footprint())
	vh.changed()
	if x.declared.Durable {
		vh.undefine(vh.exchangeDefinition(x).key())
	}
	vh.unbindEnd(destination{exchange: x})
	x.router.Each(func(b exchange.Binding[destination]) bool {
		vh.unbound(x, b)
		return true
	})
	vh.b.alarms.drop(x)
}

// autoDeleteExchange removes an auto-delete exchange whose last binding went.
func (vh *VHost) autoDeleteExchange(x *Exchange) {
	if x.declared.AutoDelete && x.hadBound && x.router.Len() == 0 && vh.exchanges[x.name] == x {
		vh.removeExchange(x)
	}
}

// checkExchange is what is asked of a declare before anything else. It returns how
// the exchange routes.
func checkExchange(name string, d ExchangeDeclare) (exchange.Kind, error) {
	routes := d.Kind
	if routes == DelayedMessageKind {
		var ok bool
		if routes, ok = d.Args["x-delayed-type"].(string); !ok || routes == DelayedMessageKind {
			return "", amqp.NewException(amqp.PreconditionFailed, 0, 0, "Invalid argument, 'x-delayed-type' must be an existing exchange type")
		}
	}
	kind, ok := exchange.ParseKind(routes)
	if !ok {
		return "", amqp.NewException(amqp.CommandInvalid, 0, 0, "unknown exchange type '%s'", routes)
	}
	return kind, checkDefaultExchange(name)
}

func checkDefaultExchange(name string) error {
	if name == "" {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "operation not permitted on the default exchange")
	}
	return nil
}

func (vh *VHost) exchangeEquivalent(x *Exchange, d ExchangeDeclare) error {
	label, cur := vh.exchangeLabel(x.name), x.declared
	if d.Kind != cur.Kind {
		return inequivalent("type", label, d.Kind, cur.Kind)
	}
	for _, p := range []struct {
		name          string
		received, has bool
	}{{"durable", d.Durable, cur.Durable}, {"auto_delete", d.AutoDelete, cur.AutoDelete}, {"internal", d.Internal, cur.Internal}} {
		if p.received != p.has {
			return inequivalent(p.name, label, boolText(p.received), boolText(p.has))
		}
	}
	return equalArgs(label, d.Args, cur.Args, []string{"alternate-exchange", "x-delayed-type", "x-message-ttl", "x-auto-delete-on-idle"})
}
