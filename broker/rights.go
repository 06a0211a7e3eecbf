package broker

import (
	"bytes"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/store"
)

// Rights are what a user may do in a virtual host. They remember what they have
// allowed until users or permissions change, so that asking again costs neither a
// match nor an allocation. For one goroutine.
type Rights struct {
	b           *Broker
	who         inVHost
	version     uint64
	known       bool // there was a version
	grant       *access.Grant
	impersonate bool
	allowed     map[string]struct{} // operation and name, or exchange and routing key
	key         []byte              // scratch
	published   bool                // last is valid
	last        []byte              // exchange of the publish before this one
	putter      *store.Putter       // of all publishers with these rights: they are one goroutine's
	pacing      pacing              // likewise
}

// allowedKept bounds the memory of a user with ever new names.
const allowedKept = 1024

// topicKey tells the exchange and routing key of a topic check from a name.
const topicKey = 0x80

// RightsOf returns the rights of a user in a virtual host; neither needs to exist.
func (b *Broker) RightsOf(user, vhost string) *Rights {
	return &Rights{b: b, who: inVHost{user, vhost}, allowed: map[string]struct{}{}}
}

// Queue refuses an operation on the queue of that name with 403, unless it is
// granted.
func (r *Rights) Queue(op access.Operation, name string) error {
	return r.check(op, "queue '", name)
}

// Exchange refuses an operation on the exchange of that name with 403, unless it
// is granted. "" is the default exchange.
func (r *Rights) Exchange(op access.Operation, name string) error {
	if name == "" {
		name = "amq.default"
	}
	return r.check(op, "exchange '", name)
}

func (r *Rights) check(op access.Operation, kind, name string) error {
	r.refresh()
	r.key = append(append(r.key[:0], byte(op)), name...)
	if r.remembers() {
		return nil
	}
	if !r.grant.Allows(op, name) {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "access to %s%s' in vhost '%s' refused for user '%s'", kind, name, r.who.vhost, r.who.user)
	}
	r.remember()
	return nil
}

// Topic refuses an operation by a routing key on an exchange with 403 where it is
// a topic exchange and topic permissions forbid it.
func (r *Rights) Topic(op access.Operation, vh *VHost, name, key string) error {
	return r.topic(op, vh, []byte(name), []byte(key))
}

func (r *Rights) topic(op access.Operation, vh *VHost, name, key []byte) error {
	if r == nil {
		return nil
	}
	r.refresh()
	if !r.grant.RestrictsTopics(name) || !vh.isTopic(name) {
		return nil
	}
	r.key = append(append(append(r.key[:0], topicKey|byte(op), byte(len(name))), name...), key...)
	if r.remembers() {
		return nil
	}
	if !r.grant.AllowsTopic(op, string(name), string(key)) {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "access to topic '%s' in exchange '%s' in vhost '%s' refused for user '%s'", key, name, r.who.vhost, r.who.user)
	}
	r.remember()
	return nil
}

// publish is Exchange(Write, name) for names as they come off the wire, one like
// the next.
func (r *Rights) publish(name []byte) error {
	if r == nil {
		return nil
	}
	r.refresh()
	if r.published && bytes.Equal(name, r.last) {
		return nil
	}
	r.key = append(append(r.key[:0], byte(access.Write)), name...)
	if len(name) == 0 || !r.remembers() {
		if err := r.Exchange(access.Write, string(name)); err != nil {
			return err
		}
	}
	r.published, r.last = true, append(r.last[:0], name...)
	return nil
}

// speaksFor refuses a user-id that is another's (RabbitMQ: Validated User-ID).
func (r *Rights) speaksFor(user []byte) error {
	if r == nil {
		return nil
	}
	r.refresh()
	if string(user) == r.who.user || r.impersonate {
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "user_id property set to '%s' but authenticated user was '%s'", user, r.who.user)
}

// refresh forgets what it knows when users or permissions have changed.
func (r *Rights) refresh() {
	a := &r.b.accounts
	if r.known && a.version.Load() == r.version {
		return
	}
	r.grant, r.impersonate, r.version = a.grant(r.who)
	r.known, r.published = true, false
	clear(r.allowed)
}

func (r *Rights) remembers() bool {
	_, ok := r.allowed[string(r.key)]
	return ok
}

func (r *Rights) remember() {
	if len(r.allowed) >= allowedKept {
		clear(r.allowed)
	}
	r.allowed[string(r.key)] = struct{}{}
}

// isTopic says whether there is a topic exchange of that name.
func (vh *VHost) isTopic(name []byte) bool {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	x, ok := vh.exchanges[string(name)]
	return ok && x.kind == exchange.Topic
}
