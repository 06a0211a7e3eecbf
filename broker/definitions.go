package broker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/policy"
)

// definitionsVersion is the version of the saved form; another is refused.
const definitionsVersion = 1

// definitions are what outlives a restart beside the messages: virtual hosts,
// users and permissions, durable exchanges and queues, save exclusive ones, and
// the bindings between them.
type definitions struct {
	found     bool                 // there was a file
	Version   int                  `json:"version"`
	VHosts    []vhostDefinition    `json:"vhosts"`
	Accounts  accountDefinitions   `json:"accounts"`
	Exchanges []exchangeDefinition `json:"exchanges"`
	Queues    []queueDefinition    `json:"queues"`
	Bindings  []bindingDefinition  `json:"bindings"`
	Policies  []policyDefinition   `json:"policies,omitempty"`
	Global    policy.Definition    `json:"global_parameters,omitempty"`
}

type vhostDefinition struct {
	Name     string        `json:"name"`
	Metadata VHostMetadata `json:"metadata"`
	Limits   access.Limits `json:"limits,omitempty"`
}

type accountDefinitions struct {
	Configured       *access.User             `json:"configured,omitempty"` // name and hash of the configured user
	Users            []access.User            `json:"users"`
	Permissions      []access.Permission      `json:"permissions"`
	TopicPermissions []access.TopicPermission `json:"topic_permissions"`
}

type exchangeDefinition struct {
	VHost      string    `json:"vhost"`
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	AutoDelete bool      `json:"auto_delete,omitempty"`
	Internal   bool      `json:"internal,omitempty"`
	Args       savedArgs `json:"arguments,omitempty"`
}

type queueDefinition struct {
	VHost      string    `json:"vhost"`
	Name       string    `json:"name"`
	ID         uint64    `json:"id,string"` // incarnation: the journal names its messages by it
	AutoDelete bool      `json:"auto_delete,omitempty"`
	Delayed    bool      `json:"delayed,omitempty"` // it is the virtual host's queue of delayed messages
	Args       savedArgs `json:"arguments,omitempty"`
}

type bindingDefinition struct {
	VHost       string    `json:"vhost"`
	Source      string    `json:"source"`
	Destination string    `json:"destination"`
	ToExchange  bool      `json:"to_exchange,omitempty"`
	RoutingKey  string    `json:"routing_key"`
	Args        savedArgs `json:"arguments,omitempty"`
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

// saver writes the definitions after changes. Whoever changed them, or found them
// as he wanted them, is answered once they are on disk as they stand; those that
// wait share a save, and one that failed is tried again by the next.
type saver struct {
	changes atomic.Uint64 // of durable definitions, counted under VHost.mu
	saved   atomic.Uint64 // changes up to this one are on disk
	mu      sync.Mutex    // held while saving
}

// saveDefinitions returns when the definitions as they stand are on disk. While
// they are being restored, what is on disk is more than what stands.
func (b *Broker) saveDefinitions() error {
	s := &b.saver
	want := s.changes.Load() // what others change while this one waits is theirs to save
	if !b.durable || !b.recovered.Load() || s.saved.Load() >= want {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved.Load() >= want {
		return nil
	}
	upTo := s.changes.Load()
	data, err := json.Marshal(b.definitions()) // indented, it would take nine times as long
	if err == nil {
		err = b.store.SaveDefinitions(data)
	}
	if err != nil {
		return fmt.Errorf("broker: save definitions: %w", err)
	}
	s.saved.Store(upTo)
	return nil
}

// mutate runs fn with mu held and returns when what it did, or found done, is on
// disk.
func (vh *VHost) mutate(fn func() error) error {
	if err := vh.locked(fn); err != nil {
		return err
	}
	return vh.b.saveDefinitions()
}

func (vh *VHost) locked(fn func() error) error {
	vh.mu.Lock()
	defer vh.mu.Unlock()
	if vh.deleted {
		return noVHost(vh.name)
	}
	return fn()
}

// definitions lists what is to be saved, in a stable order.
func (b *Broker) definitions() *definitions {
	d := &definitions{Version: definitionsVersion, Accounts: accountDefinitions{
		Users: b.Users(), Permissions: b.Permissions(), TopicPermissions: b.TopicPermissions(),
	}}
	b.accounts.mu.RLock()
	d.Accounts.Configured = b.accounts.configured
	b.accounts.mu.RUnlock()
	for _, vh := range b.VHosts() {
		vh.mu.RLock()
		vh.define(d)
		vh.mu.RUnlock()
	}
	d.Global = b.GlobalParameters()
	d.sort()
	return d
}

func (d *definitions) sort() {
	slices.SortFunc(d.Exchanges, func(a, b exchangeDefinition) int {
		return cmp.Or(strings.Compare(a.VHost, b.VHost), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(d.Queues, func(a, b queueDefinition) int {
		return cmp.Or(strings.Compare(a.VHost, b.VHost), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(d.Bindings, func(a, b bindingDefinition) int {
		return cmp.Or(strings.Compare(a.VHost, b.VHost), strings.Compare(a.Source, b.Source), strings.Compare(a.Destination, b.Destination),
			strings.Compare(a.RoutingKey, b.RoutingKey), bytes.Compare(a.Args, b.Args))
	})
	slices.SortFunc(d.Policies, func(a, b policyDefinition) int {
		return cmp.Or(strings.Compare(a.VHost, b.VHost), strings.Compare(a.Name, b.Name), cmp.Compare(a.kind(), b.kind()))
	})
}

func (vh *VHost) define(d *definitions) {
	d.VHosts = append(d.VHosts, vhostDefinition{Name: vh.name, Metadata: vh.about, Limits: vh.limits})
	for name, x := range vh.exchanges {
		if _, always := predeclared[name]; x.declared.Durable && !always {
			d.Exchanges = append(d.Exchanges, exchangeDefinition{
				VHost: vh.name, Name: name, Type: x.declared.Kind, AutoDelete: x.declared.AutoDelete,
				Internal: x.declared.Internal, Args: saveArgs(x.declared.Args),
			})
		}
		if x.declared.Durable {
			x.router.Each(func(b exchange.Binding[destination]) bool {
				if b.Destination.durable() {
					d.Bindings = append(d.Bindings, defineBinding(vh, x, b))
				}
				return true
			})
		}
	}
	for k := range vh.policies {
		for _, p := range vh.policies[k] {
			d.Policies = append(d.Policies, policyDefinition{VHost: vh.name, Operator: policy.Kind(k) == policy.Operator, Policy: *p})
		}
	}
	if q := vh.waiting.Load(); q != nil {
		d.Queues = append(d.Queues, queueDefinition{VHost: vh.name, Name: q.name, ID: q.id, Delayed: true})
	}
	for name, q := range vh.queues {
		if q.durable() {
			d.Queues = append(d.Queues, queueDefinition{
				VHost: vh.name, Name: name, ID: q.id, AutoDelete: q.declared.AutoDelete, Args: saveArgs(q.declared.Args),
			})
		}
	}
}

func defineBinding(vh *VHost, x *Exchange, b exchange.Binding[destination]) bindingDefinition {
	return bindingDefinition{
		VHost: vh.name, Source: x.name, Destination: b.Destination.name(), ToExchange: b.Destination.exchange != nil,
		RoutingKey: b.Key, Args: saveArgs(b.Args),
	}
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
