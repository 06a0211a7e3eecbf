package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// What outlives a restart beside the messages: virtual hosts, users and permissions,
// policies, durable exchanges and queues, save exclusive ones, and the bindings
// between them. Each is a definition of the store, JSON under a key that begins with
// its kind. Who changes something tells the store in a critical section, of all of it in
// one call: so the store hears of changes in the order in which they happened, and what a
// crash leaves fits together. A form of a definition that an older
// Curfew would misread needs a kind of its own.

type vhostDefinition struct {
	Name     string        `json:"name"`
	Metadata VHostMetadata `json:"metadata"`
	Limits   access.Limits `json:"limits,omitempty"`
}

type exchangeDefinition struct {
	VHost      string    `json:"vhost"`
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	AutoDelete bool      `json:"auto_delete,omitempty"`
	Internal   bool      `json:"internal,omitempty"`
	Args       savedArgs `json:"arguments,omitempty"`
	Transient  bool      `json:"-"` // it is not saved
}

type queueDefinition struct {
	VHost      string    `json:"vhost"`
	Name       string    `json:"name"`
	ID         uint64    `json:"id,string"` // incarnation: the journal names its messages by it
	AutoDelete bool      `json:"auto_delete,omitempty"`
	Delayed    bool      `json:"delayed,omitempty"`   // it is the virtual host's queue of delayed messages
	Recovered  bool      `json:"recovered,omitempty"` // it was made for messages whose queue's definition was not found
	Args       savedArgs `json:"arguments,omitempty"`
	Transient  bool      `json:"-"` // it is not saved
	Exclusive  bool      `json:"-"` // nor this
}

type bindingDefinition struct {
	VHost       string    `json:"vhost"`
	Source      string    `json:"source"`
	Destination string    `json:"destination"`
	ToExchange  bool      `json:"to_exchange,omitempty"`
	RoutingKey  string    `json:"routing_key"`
	Args        savedArgs `json:"arguments,omitempty"`
	Transient   bool      `json:"-"` // it is not saved
}

type policyDefinition struct {
	VHost    string `json:"vhost"`
	Operator bool   `json:"operator,omitempty"`
	policy.Policy
}

func (p *policyDefinition) kind() policy.Kind {
	if p.Operator {
		return policy.Operator
	}
	return policy.User
}

// savedArgs are arguments as AMQP writes them, in base64, so that every type
// comes back as it was.
type savedArgs []byte

func saveArgs(t amqp.Table) savedArgs {
	if len(t) == 0 {
		return nil
	}
	return amqp.AppendTable(nil, t)
}

func (a savedArgs) table() (amqp.Table, error) {
	if a == nil {
		return nil, nil
	}
	t, _, err := amqp.ParseTable(a, stored)
	return t, err
}

// The kinds of definitions, and what names one besides:
const (
	vhostKind      = "vhost"
	exchangeKind   = "exchange"          // virtual host, name
	queueKind      = "queue"             // virtual host, name
	delayedKind    = "delayed"           // virtual host
	bindingKind    = "binding"           // virtual host, source, kind of destination, destination, routing key, arguments
	policyKind     = "policy"            // virtual host, kind of policy, name
	globalKind     = "global_parameter"  // name; an object with the one parameter
	userKind       = "user"              // name
	configuredKind = "configured"        // nothing: name and hash of the configured user
	permissionKind = "permission"        // user, virtual host
	topicsKind     = "topic_permissions" // user, virtual host; those of all exchanges
	deletedKind    = "deleted"           // incarnation of a queue: its messages have gone with it
)

func keyOf(kind string, names ...string) string {
	key := []byte(kind)
	for _, name := range names {
		key = strconv.AppendQuote(append(key, ' '), name)
	}
	return string(key)
}

func (q *queueDefinition) key() string {
	if q.Delayed {
		return keyOf(delayedKind, q.VHost)
	}
	return keyOf(queueKind, q.VHost, q.Name)
}

func (x *exchangeDefinition) key() string { return keyOf(exchangeKind, x.VHost, x.Name) }

func (b *bindingDefinition) key() string {
	to := queueKind
	if b.ToExchange {
		to = exchangeKind
	}
	return keyOf(bindingKind, b.VHost, b.Source, to, b.Destination, b.RoutingKey, string(b.Args))
}

// bindingKey is that of the binding's definition.
func (vh *VHost) bindingKey(b *Binding) string {
	d := bindingDefinition{
		VHost: vh.name, Source: b.Source, Destination: b.Destination, ToExchange: b.ToExchange, RoutingKey: b.RoutingKey, Args: saveArgs(b.Args),
	}
	return d.key()
}

func (p *policyDefinition) key() string { return keyOf(policyKind, p.VHost, p.kind().String(), p.Name) }

// saving says whether changes are told to the store: not while what it holds is being
// restored.
func (b *Broker) saving() bool { return b.durable && b.recovered.Load() }

// define makes or replaces a definition that is in no virtual host. Called with the lock
// held that guards what it describes.
func (b *Broker) define(key string, value any) {
	if b.saving() {
		b.store.Define(definitionOf(key, value))
	}
}

// undefine removes definitions, all at once, in the same way.
func (b *Broker) undefine(keys ...string) {
	if !b.saving() {
		return
	}
	gone := make([]store.Definition, len(keys))
	for i, key := range keys {
		gone[i].Key = key
	}
	b.store.Define(gone...)
}

func definitionOf(key string, value any) store.Definition {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("broker: definition %s is no JSON: %v", key, err))
	}
	return store.Definition{Key: key, Value: text}
}

// saveFirst makes or replaces definitions, all at once, and returns when they are on
// disk; where they cannot be saved, it makes them what they were. The caller sees to it
// that nobody else changes them meanwhile.
func (b *Broker) saveFirst(now, were []store.Definition) error {
	if !b.saving() {
		return nil
	}
	b.store.Define(now...)
	err := b.saveDefinitions()
	if err != nil {
		b.store.Define(were...)
	}
	return err
}

// ErrNotSaved is wrapped by what is said of a change of definitions that could not be
// written to the disk. It may succeed later.
var ErrNotSaved = errors.New("save definitions")

// saveDefinitions returns when the definitions as they stand are on disk.
func (b *Broker) saveDefinitions() error {
	if err := b.store.SyncDefinitions(); err != nil {
		return fmt.Errorf("broker: %w: %w", ErrNotSaved, err)
	}
	return nil
}

// mutate runs fn with mu held and returns when what it did, or found done, is on
// disk. It is for what is not undone if it cannot be saved: then the caller is told, and
// the store tries again.
func (vh *VHost) mutate(fn func() error) error {
	if err := vh.locked(fn); err != nil {
		return err
	}
	return vh.b.saveDefinitions()
}

func (vh *VHost) locked(fn func() error) error {
	vh.mu.Lock()
	defer vh.unlock()
	if vh.deleted {
		return noVHost(vh.name)
	}
	return fn()
}

// What is not saved is not there: a queue or an exchange is among the others, and a policy
// in force, when its definition is on the disk. For that nobody holds mu. Instead whoever
// changes what has a key in the definitions claims the key, and others who would change it
// wait: they find it as it came out.

// claimed is locked for who changes what has the key, and may call save. It waits while
// definitions are imported.
func (vh *VHost) claimed(key string, fn func() error) error {
	vh.importing.RLock()
	defer vh.importing.RUnlock()
	return vh.claimedNow(key, fn)
}

// claimedNow is claimed for who cannot wait so long.
func (vh *VHost) claimedNow(key string, fn func() error) error {
	return vh.locked(func() error {
		if !vh.b.saving() {
			return fn()
		}
		for vh.claims[key] {
			vh.unclaimed.Wait()
		}
		if vh.deleted {
			return noVHost(vh.name)
		}
		vh.claims[key] = true
		defer func() {
			delete(vh.claims, key)
			vh.unclaimed.Broadcast()
		}()
		return fn()
	})
}

// save makes or replaces the definition of a claimed key, nil for none, and returns when
// it is on the disk; if it cannot be saved, it is again what it was, and the same if the
// virtual host was deleted meanwhile. mu, which is held, is released for that.
func (vh *VHost) save(key string, now, was any) error {
	if !vh.b.saving() {
		return nil
	}
	vh.note(key, now)
	vh.unlock()
	err := vh.b.saveDefinitions()
	vh.mu.Lock()
	if err != nil {
		vh.note(key, was)
	} else if vh.deleted {
		err = noVHost(vh.name)
	}
	return err
}

// note is define or, without a value, undefine.
func (vh *VHost) note(key string, value any) {
	if value == nil {
		vh.undefine(key)
	} else {
		vh.define(key, value)
	}
}

// define and undefine note what is to be told the store when mu is unlocked; called with
// mu held. Nothing is told of a virtual host that is deleted: there may be another of
// its name.
func (vh *VHost) define(key string, value any) {
	if vh.b.saving() && !vh.deleted {
		vh.changes = append(vh.changes, definitionOf(key, value))
	}
}

func (vh *VHost) undefine(key string) {
	if vh.b.saving() && !vh.deleted {
		vh.changes = append(vh.changes, store.Definition{Key: key})
	}
}

// unlock unlocks mu after changes.
func (vh *VHost) unlock() {
	if len(vh.changes) > 0 {
		vh.b.store.Define(vh.changes...)
		vh.changes = nil
	}
	vh.mu.Unlock()
}

func (vh *VHost) definition() *vhostDefinition {
	return &vhostDefinition{Name: vh.name, Metadata: vh.about, Limits: vh.limits}
}

func (vh *VHost) exchangeDefinition(x *Exchange) *exchangeDefinition {
	return &exchangeDefinition{
		VHost: vh.name, Name: x.name, Type: x.declared.Kind, AutoDelete: x.declared.AutoDelete,
		Internal: x.declared.Internal, Args: saveArgs(x.declared.Args), Transient: !x.declared.Durable,
	}
}

func (q *Queue) definition() *queueDefinition {
	return &queueDefinition{
		VHost: q.vh.name, Name: q.name, ID: q.id, AutoDelete: q.declared.AutoDelete,
		Delayed: q.delays != nil, Recovered: q.recovered, Args: saveArgs(q.declared.Args),
		Transient: !q.durable(), Exclusive: q.declared.Exclusive,
	}
}

func (vh *VHost) bindingDefinition(x *Exchange, b exchange.Binding[destination]) *bindingDefinition {
	return &bindingDefinition{
		VHost: vh.name, Source: x.name, Destination: b.Destination.name(), ToExchange: b.Destination.exchange != nil,
		RoutingKey: b.Key, Args: saveArgs(b.Args), Transient: !x.declared.Durable || !b.Destination.durable(),
	}
}

func (vh *VHost) policyDefinition(k policy.Kind, p policy.Policy) *policyDefinition {
	p.NotInForce = "" // a start finds out
	return &policyDefinition{VHost: vh.name, Operator: k == policy.Operator, Policy: p}
}

// definitionKeys lists the keys of the virtual host and all in it, or about to be; called
// with mu held.
func (vh *VHost) definitionKeys() []string {
	keys := append([]string{keyOf(vhostKind, vh.name)}, slices.Collect(maps.Keys(vh.claims))...)
	for _, x := range vh.exchanges {
		if !x.declared.Durable {
			continue
		}
		keys = append(keys, vh.exchangeDefinition(x).key())
		x.router.Each(func(b exchange.Binding[destination]) bool {
			if b.Destination.durable() {
				keys = append(keys, vh.bindingDefinition(x, b).key())
			}
			return true
		})
	}
	for k := range vh.policies {
		for _, p := range vh.policies[k] {
			keys = append(keys, vh.policyDefinition(policy.Kind(k), *p).key())
		}
	}
	if q := vh.waiting.Load(); q != nil {
		keys = append(keys, q.definition().key())
	}
	for _, q := range vh.queues {
		if q.durable() {
			keys = append(keys, q.definition().key())
		}
	}
	return keys
}

// durable says whether the queue, by what it was declared as, outlives a
// restart.
func (q *Queue) durable() bool { return q.declared.Durable && !q.declared.Exclusive }

func (d destination) durable() bool {
	if d.queue != nil {
		return d.queue.durable()
	}
	return d.exchange.declared.Durable
}

func (d destination) name() string {
	if d.queue != nil {
		return d.queue.name
	}
	return d.exchange.name
}
