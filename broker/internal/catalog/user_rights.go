package catalog

import (
	"bytes"
	"cmp"

	"curfew/broker/access"
	"curfew/broker/amqp"
)

// Rights are what a user may do in a virtual host. They remember what they have
// allowed until users or permissions change, so that another check of the same costs
// neither a match nor an allocation. For one goroutine.
type Rights struct {
	a           *Accounts // nil: nothing is refused (AllRights)
	who         UserIn
	version     uint64
	known       bool // version is set
	grant       *access.Grant
	impersonate bool
	allowed     map[string]struct{} // operation and name, or exchange and routing key
	key         []byte              // scratch
	published   bool                // last is valid
	last        []byte              // exchange of the publish before this one
}

// allowedKept bounds the memory for a user who always uses new names.
const allowedKept = 1024

// topicKey distinguishes the exchange and routing key of a topic check from a name.
const topicKey = 0x80

// RightsOf returns the rights of a user in a virtual host; neither needs to exist.
func RightsOf(a *Accounts, user, vhost string) *Rights {
	return &Rights{a: a, who: UserIn{User: user, VHost: vhost}, allowed: map[string]struct{}{}}
}

// all grants everything.
var all, _ = access.Compile(*everything(UserIn{}), nil)

// AllRights are those of the broker itself, and of a program that embeds it: nothing is refused.
func AllRights() *Rights {
	return &Rights{grant: all, impersonate: true, allowed: map[string]struct{}{}}
}

// Queue refuses an operation on the queue of that name with 403, unless it is
// granted.
func (r *Rights) Queue(op access.Operation, name string) error {
	return r.check(op, "queue '", name)
}

// Exchange refuses an operation on the exchange of that name with 403, unless it
// is granted. "" is the default exchange.
func (r *Rights) Exchange(op access.Operation, name string) error {
	return r.check(op, "exchange '", cmp.Or(name, "amq.default"))
}

func (r *Rights) check(op access.Operation, kind, name string) error {
	r.refresh()
	r.key = append(append(r.key[:0], byte(op)), name...)
	if r.remembers() {
		return nil
	}
	if !r.grant.Allows(op, name) {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "access to %s%s' in vhost '%s' refused for user '%s'", kind, name, r.who.VHost, r.who.User)
	}
	r.remember()
	return nil
}

// RestrictsTopics reports whether topic permissions restrict routing keys on the exchange, if it is a topic exchange.
func (r *Rights) RestrictsTopics(name []byte) bool {
	r.refresh()
	return r.grant.RestrictsTopics(name)
}

// Topic refuses an operation by a routing key on a topic exchange with 403 where topic permissions forbid it.
func (r *Rights) Topic(op access.Operation, name, key []byte) error {
	r.refresh()
	r.key = append(append(append(r.key[:0], topicKey|byte(op), byte(len(name))), name...), key...)
	if r.remembers() {
		return nil
	}
	if !r.grant.AllowsTopic(op, string(name), string(key)) {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "access to topic '%s' in exchange '%s' in vhost '%s' refused for user '%s'", key, name, r.who.VHost, r.who.User)
	}
	r.remember()
	return nil
}

// Publish is Exchange(Write, name) for names as they come off the wire, of which many in
// a row are equal.
func (r *Rights) Publish(name []byte) error {
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

// SpeaksFor refuses the user-id of another user (RabbitMQ: Validated User-ID).
func (r *Rights) SpeaksFor(user []byte) error {
	r.refresh()
	if string(user) == r.who.User || r.impersonate {
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "user_id property set to '%s' but authenticated user was '%s'", user, r.who.User)
}

// refresh clears what is remembered if users or permissions have changed.
func (r *Rights) refresh() {
	if r.a == nil || r.known && r.a.version.Load() == r.version {
		return
	}
	r.grant, r.impersonate, r.version = r.a.grant(r.who)
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
