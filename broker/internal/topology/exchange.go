package topology

import (
	"strconv"
	"strings"
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/exchange"
	"curfew/broker/internal/catalog"
	"curfew/broker/policy"
)

// predeclared are the exchanges that every virtual host has (AMQP 0-9-1 §3.1.3).
// The default exchange "" is not among them: it stores no bindings.
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

// ExchangeStats count an exchange's messages. Publishers add to them once per batch. In are
// the messages published to it, Out the queues they went to, None those that reached no queue.
type ExchangeStats struct{ In, Out, None atomic.Uint64 }

// Exchanges holds the exchanges of a virtual host, and makes and deletes them. Guarded by the virtual host's mu.
type Exchanges struct {
	vh              *VHost
	exchanges       map[string]*Exchange
	defaultExchange *Exchange // "", for what is known about it; it is not in exchanges
}

func (t *Exchanges) init(vh *VHost) {
	t.vh, t.exchanges = vh, map[string]*Exchange{}
	t.defaultExchange = t.newExchange("", exchange.Direct, ExchangeDeclare{Durable: true})
	for name, kind := range predeclared {
		t.exchanges[name] = t.newExchange(name, kind, ExchangeDeclare{Durable: true})
	}
}

// noExchange is the error for an exchange that does not exist.
func noExchange(vhost, name string) error {
	return amqp.NewException(amqp.NotFound, 0, 0, "no %s", exchangeLabel(vhost, name))
}

// exchangeLabel names an exchange as RabbitMQ's error texts do.
func exchangeLabel(vhost, name string) string {
	return "exchange '" + name + "' in vhost '" + vhost + "'"
}

// Exchange is a declared exchange. Its router is guarded by its virtual host's mu.
type Exchange struct {
	vh         *VHost
	name       string
	kind       exchange.Kind
	declared   ExchangeDeclare
	alternate  string // the exchange for messages that this one does not route; "" none
	ttlMillis  int64  // the longest that messages it routes may live; <0 none
	idleMillis int64  // x-auto-delete-on-idle; 0 none
	router     exchange.Router[destination]
	sources    sources
	hadBound   bool // something has been bound, so auto-delete applies
	policies   *applied
	stats      ExchangeStats
	costly     atomic.Bool  // the last search for queues from here took long
	lastUsedAt atomic.Int64 // Unix µs: x-auto-delete-on-idle counts from it
	gone       bool         // it is deleted; what is left of its bindings leads nowhere
	expired    bool         // it was deleted because it was idle
	alarmIndex int32        // in the broker's timers, which guard it
}

// ExchangeDeclare is what exchange.declare carries besides the name.
type ExchangeDeclare struct {
	Kind                          string
	Durable, AutoDelete, Internal bool
	Args                          amqp.Table
}

func (t *Exchanges) newExchange(name string, kind exchange.Kind, d ExchangeDeclare) *Exchange {
	if d.Kind == "" {
		d.Kind = string(kind)
	}
	x := &Exchange{vh: t.vh, name: name, kind: kind, declared: d, router: exchange.New[destination](kind), alarmIndex: deadline.NoTimer}
	x.governLocked(ungoverned)
	return x
}

// Declare makes the exchange unless an equal one exists
// (AMQP 0-9-1 exchange.declare). Errors: 503 unknown type, 403 reserved name,
// 406 inequivalent argument.
func (t *Exchanges) Declare(name string, d ExchangeDeclare) error {
	kind, err := ReadExchange(name, d)
	if err == nil {
		err = policy.CheckName("an exchange", name)
	}
	if err == nil {
		err = policy.CheckExchange(t.vh.registry.defaults, exchangeLabel(t.vh.guard.name, name), d.Args)
	}
	if err != nil {
		return err
	}
	made := t.newExchange(name, kind, d)
	d = made.declared
	key := catalog.Key(catalog.ExchangeKind, t.vh.guard.name, name)
	return t.vh.guard.claimed(key, func() error {
		if x, ok := t.exchanges[name]; ok {
			if err := x.equivalent(d); err != nil {
				return err
			}
			x.useLocked()
			return nil
		}
		if strings.HasPrefix(name, "amq.") {
			return amqp.NewException(amqp.AccessRefused, 0, 0, "exchange name '%s' contains reserved prefix 'amq.*'", name)
		}
		most := t.vh.registry.ceilings.Exchanges
		if err := bound(len(t.exchanges)-len(predeclared)+1, most, "declare exchange '%s': exchange limit in vhost '%s'", name, t.vh.guard.name); err != nil {
			return err
		}
		if err := t.vh.memory.takeLocked(made.footprint(), exchangeLabel(t.vh.guard.name, name), false); err != nil {
			return err
		}
		a, err := t.vh.Policies.saveNewLocked(governed{exchange: made}, d.Durable, key, made.definition())
		if err != nil {
			t.vh.memory.giveLocked(made.footprint())
			return err
		}
		t.placeExchangeLocked(made, a)
		return nil
	})
}

// placeExchangeLocked adds an exchange to the table.
func (t *Exchanges) placeExchangeLocked(x *Exchange, a *applied) {
	t.exchanges[x.name] = x
	x.governLocked(a)
	x.useLocked()
	t.vh.changedLocked()
}

// DelayedMessageKind is the type of exchanges for delayed messages. Their argument
// x-delayed-type says how they route (RabbitMQ: Delayed Message Plugin). Here every
// exchange delays by x-delay, so the type means nothing else.
const DelayedMessageKind = "x-delayed-message"

// Check is the passive declare: nil if the exchange exists, else 404. It counts as
// use.
func (t *Exchanges) Check(name string) error {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	if x, ok := t.exchanges[name]; ok {
		x.useLocked()
	} else if name != "" {
		return noExchange(t.vh.guard.name, name)
	}
	return nil
}

// Delete deletes the exchange and its bindings. An exchange that does not exist is
// not an error. Error: 406 in use, with ifUnused if something is bound.
func (t *Exchanges) Delete(name string, ifUnused bool) error {
	if err := t.CheckDeletable(name); err != nil {
		return err
	}
	return t.vh.mutateAndSweep(func() error {
		x, ok := t.exchanges[name]
		if !ok {
			return nil
		}
		if ifUnused && x.router.Len() > 0 {
			return amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s in use", exchangeLabel(t.vh.guard.name, name))
		}
		x.removeLocked()
		return nil
	})
}

// CheckDeletable refuses to delete an exchange that every virtual host has.
func (t *Exchanges) CheckDeletable(name string) error { return t.checkSystem(name, "deletion") }

func (t *Exchanges) checkSystem(name, what string) error {
	if strings.HasPrefix(name, "amq.") {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "%s of system %s not allowed", what, exchangeLabel(t.vh.guard.name, name))
	}
	return CheckDefaultExchange(name)
}

// removeLocked removes x. The bindings to and from it lead nowhere from now on; they are removed by a sweep.
func (x *Exchange) removeLocked() {
	vh := x.vh
	delete(vh.Exchanges.exchanges, x.name)
	x.gone = true
	vh.memory.giveLocked(x.footprint())
	vh.changedLocked()
	if x.declared.Durable {
		vh.guard.noteLocked(x.definition().Key(), nil)
	}
	vh.registry.env.Timers.Drop(x)
	vh.sweeps.addLocked(destination{exchange: x})
}

// autoDeleteLocked removes an auto-delete exchange that has lost its last binding.
func (x *Exchange) autoDeleteLocked() {
	if x.declared.AutoDelete && x.hadBound && x.router.Len() == 0 && x.vh.Exchanges.exchanges[x.name] == x {
		x.removeLocked()
	}
}

// federationKind is what RabbitMQ's federation declares at an upstream. It takes a fanout exchange instead if the answer is that of
// RabbitMQ before version 4, which closes the connection.
const federationKind = "x-federation-upstream"

// ReadExchange checks the type and the name in a declare, before anything else. It returns
// the kind of routing.
func ReadExchange(name string, d ExchangeDeclare) (exchange.Kind, error) {
	routes := d.Kind
	if routes == DelayedMessageKind {
		var ok bool
		if routes, ok = d.Args["x-delayed-type"].(string); !ok || routes == DelayedMessageKind {
			return "", amqp.NewException(amqp.PreconditionFailed, 0, 0, "Invalid argument, 'x-delayed-type' must be an existing exchange type")
		}
	}
	kind, ok := exchange.ParseKind(routes)
	if routes == federationKind {
		return "", amqp.NewException(amqp.CommandInvalid, 0, 0, "unknown exchange type '%s'", routes)
	}
	if !ok {
		return "", amqp.NewException(amqp.PreconditionFailed, 0, 0, "unknown exchange type '%s'", routes)
	}
	return kind, CheckDefaultExchange(name)
}

// CheckDefaultExchange refuses the default exchange, for operations that nobody may do with it.
func CheckDefaultExchange(name string) error {
	if name == "" {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "operation not permitted on the default exchange")
	}
	return nil
}

func (x *Exchange) equivalent(d ExchangeDeclare) error {
	label, cur := exchangeLabel(x.vh.guard.name, x.name), x.declared
	if d.Kind != cur.Kind {
		return policy.Inequivalent("type", label, d.Kind, cur.Kind)
	}
	for _, p := range []struct {
		name          string
		received, has bool
	}{{"durable", d.Durable, cur.Durable}, {"auto_delete", d.AutoDelete, cur.AutoDelete}, {"internal", d.Internal, cur.Internal}} {
		if p.received != p.has {
			return policy.Inequivalent(p.name, label, strconv.FormatBool(p.received), strconv.FormatBool(p.has))
		}
	}
	return policy.CheckEqual(label, d.Args, cur.Args, []string{"alternate-exchange", "x-delayed-type", "x-message-ttl", "x-auto-delete-on-idle"})
}
