package broker

import (
	"sync"
	"sync/atomic"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// VHost is a virtual host: a name space of exchanges and queues. Safe for
// concurrent use.
type VHost struct {
	b    *Broker
	name string

	// topology is raised by each change of exchanges, queues or bindings, so
	// that a cached route knows when it is stale.
	topology atomic.Uint64

	defaultExchange exchangeTally
	replies         replies
	idlers          idlers
	waiting         atomic.Pointer[Queue] // of the delayed messages; nil until there are
	letters         atomic.Int64          // in all lines of its queues
	sources         []*Queue              // with letters, in turns; guarded by the forwarder's mu

	// importing is held for reading while something is made or changed until it is saved,
	// and for writing by an import, in which nothing else does. Taken before governing.
	importing sync.RWMutex

	governing sync.Mutex // one change of policies at a time; before mu

	mu        sync.RWMutex
	about     VHostMetadata
	limits    access.Limits
	deleted   bool
	exchanges map[string]*Exchange
	queues    map[string]*Queue
	owned     map[Owner]map[*Queue]struct{} // exclusive queues, by connection
	policies  [2]policy.Set                 // by policy.Kind
	ruled     uint64                        // raised by each change of policies
	spent     [2]int                        // steps of policy.Budget that all there is takes, by policy.Kind
	change    *change                       // of policies, under way: is told what is declared meanwhile
	changes   []store.Definition            // made since mu was locked
	claims    map[string]bool               // keys of definitions that somebody changes
	unclaimed sync.Cond                     // on mu: one of them no longer
	coming    int                           // queues that are being saved
	parkAgain atomic.Int64                  // Unix µs: before, UndeliverableQueue cannot be made
	footprint int64                         // of what is declared, in bytes
}

func newVHost(b *Broker, name string) *VHost {
	vh := &VHost{
		b: b, name: name, exchanges: map[string]*Exchange{}, queues: map[string]*Queue{},
		owned: map[Owner]map[*Queue]struct{}{}, claims: map[string]bool{},
	}
	vh.unclaimed.L = &vh.mu
	for name, kind := range predeclared {
		vh.exchanges[name] = vh.newExchange(name, kind, ExchangeDeclare{Durable: true})
	}
	return vh
}

// Name is the virtual host's name, "/" by default.
func (vh *VHost) Name() string { return vh.name }

// Broker is the broker it belongs to.
func (vh *VHost) Broker() *Broker { return vh.b }

// Queue returns the queue of that name, or a 404 exception.
func (vh *VHost) Queue(name string) (*Queue, error) {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	if q, ok := vh.queues[name]; ok {
		return q, nil
	}
	return nil, vh.noQueue(name)
}

// QueueFor returns the queue of that name if the connection may use it: an
// exclusive queue answers only to its owner (405 RESOURCE_LOCKED).
func (vh *VHost) QueueFor(owner Owner, name string) (*Queue, error) {
	q, err := vh.Queue(name)
	if err != nil {
		return nil, err
	}
	return q, q.checkOwner(owner)
}

// gone says whether it has been deleted.
func (vh *VHost) gone() bool {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	return vh.deleted
}

// changed marks the topology as changed; called with mu held.
func (vh *VHost) changed() { vh.topology.Add(1) }

func (vh *VHost) noQueue(name string) error {
	return amqp.NewException(amqp.NotFound, 0, 0, "no %s", vh.queueLabel(name))
}

func (vh *VHost) noExchange(name string) error {
	return amqp.NewException(amqp.NotFound, 0, 0, "no %s", vh.exchangeLabel(name))
}

// queueLabel and exchangeLabel name a thing as RabbitMQ's error texts do.
func (vh *VHost) queueLabel(name string) string {
	return "queue '" + name + "' in vhost '" + vh.name + "'"
}

func (vh *VHost) exchangeLabel(name string) string {
	return "exchange '" + name + "' in vhost '" + vh.name + "'"
}
