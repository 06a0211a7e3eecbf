package catalog

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/internal/message"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// VHost is the definition of a virtual host itself.
type VHost struct {
	Name     string        `json:"name"`
	Metadata VHostMetadata `json:"metadata"`
	Limits   access.Limits `json:"limits,omitempty"`
	Ended    bool          `json:"ended,omitempty"` // it is deleted; other definitions in it may not be removed yet
}

// Exchange is the definition of an exchange. A durable one is saved.
type Exchange struct {
	VHost      string `json:"vhost"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	AutoDelete bool   `json:"auto_delete,omitempty"`
	Internal   bool   `json:"internal,omitempty"`
	Args       Args   `json:"arguments,omitempty"`
	Transient  bool   `json:"-"` // it is not saved
}

// Queue is the definition of a queue. A durable one is saved unless it is exclusive.
type Queue struct {
	VHost      string `json:"vhost"`
	Name       string `json:"name"`
	ID         uint64 `json:"id,string"` // incarnation: the journal names its messages by it
	AutoDelete bool   `json:"auto_delete,omitempty"`
	Delayed    bool   `json:"delayed,omitempty"`   // the virtual host's queue of delayed messages
	Recovered  bool   `json:"recovered,omitempty"` // made for messages whose queue's definition was not found
	Consumed   bool   `json:"consumed,omitempty"`  // a client has consumed it
	Args       Args   `json:"arguments,omitempty"`
	Transient  bool   `json:"-"` // the queue is not saved
	Exclusive  bool   `json:"-"` // this field is not saved
}

// Binding is the definition of a binding. It is saved if both its ends are.
type Binding struct {
	VHost       string `json:"vhost"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
	ToExchange  bool   `json:"to_exchange,omitempty"`
	RoutingKey  string `json:"routing_key"`
	Args        Args   `json:"arguments,omitempty"`
	Transient   bool   `json:"-"` // it is not saved
}

// Policy is the definition of a policy or an operator policy.
type Policy struct {
	VHost    string `json:"vhost"`
	Operator bool   `json:"operator,omitempty"`
	policy.Policy
}

func (p *Policy) PolicyKind() policy.Kind {
	if p.Operator {
		return policy.Operator
	}
	return policy.User
}

// Args are arguments as AMQP encodes them, in base64 in JSON, so that every type is preserved.
type Args []byte

func SaveArgs(t amqp.Table) Args {
	if len(t) == 0 {
		return nil
	}
	return amqp.AppendTable(nil, t)
}

func (a Args) Table() (amqp.Table, error) {
	if a == nil {
		return nil, nil
	}
	t, _, err := amqp.ParseTable(a, message.StoredLimits)
	return t, err
}

// The kinds of definitions, and the names that follow in a key.
const (
	VHostKind      = "vhost"
	ExchangeKind   = "exchange"          // virtual host, name
	queueKind      = "queue"             // virtual host, name
	delayedKind    = "delayed"           // virtual host
	bindingKind    = "binding"           // virtual host, source, kind of destination, destination, routing key, arguments
	PolicyKind     = "policy"            // virtual host, kind of policy, name
	GlobalKind     = "global_parameter"  // name; an object with the one parameter
	UserKind       = "user"              // name
	ConfiguredKind = "configured"        // none; the name and password hash of the configured user
	PermissionKind = "permission"        // user, virtual host
	TopicsKind     = "topic_permissions" // user, virtual host; topic permissions of all exchanges
	DeletedKind    = "deleted"           // incarnation of a queue that was deleted with its messages
)

// Key is the key of a definition: its kind and its names, quoted.
func Key(kind string, names ...string) string {
	key := []byte(kind)
	for _, name := range names {
		key = strconv.AppendQuote(append(key, ' '), name)
	}
	return string(key)
}

func (v *VHost) Key() string { return Key(VHostKind, v.Name) }

func (q *Queue) Key() string {
	if q.Delayed {
		return Key(delayedKind, q.VHost)
	}
	return Key(queueKind, q.VHost, q.Name)
}

func (x *Exchange) Key() string { return Key(ExchangeKind, x.VHost, x.Name) }

func (b *Binding) Key() string {
	to := queueKind
	if b.ToExchange {
		to = ExchangeKind
	}
	return Key(bindingKind, b.VHost, b.Source, to, b.Destination, b.RoutingKey, string(b.Args))
}

func (p *Policy) Key() string { return Key(PolicyKind, p.VHost, p.PolicyKind().String(), p.Name) }

// VHostMetadata is the metadata of a virtual host, as in RabbitMQ's definitions. A queue
// declared without x-queue-type has DefaultQueueType if it can be of that type; "" is none.
type VHostMetadata struct {
	Description      string   `json:"description"`
	Tags             []string `json:"tags"`
	DefaultQueueType string   `json:"default_queue_type,omitempty"`
	Protected        bool     `json:"protected_from_deletion,omitempty"` // DeleteVHost refuses
}

// UserIn is a user in a virtual host.
type UserIn struct{ User, VHost string }

// Permissions are the permissions of a user in a virtual host, as a copy.
type Permissions struct {
	Granted *access.Permission                // nil: none
	Topics  map[string]access.TopicPermission // by exchange
}

// Definitions are the definitions of the permissions. One without a value removes permissions that the
// user does not have.
func (p *Permissions) Definitions(k UserIn) []store.Definition {
	granted, topics := store.Definition{Key: Key(PermissionKind, k.User, k.VHost)}, store.Definition{Key: Key(TopicsKind, k.User, k.VHost)}
	if p.Granted != nil {
		granted = Definition(granted.Key, p.Granted)
	}
	if len(p.Topics) > 0 {
		topics = Definition(topics.Key, p.List())
	}
	return []store.Definition{granted, topics}
}

// List returns the topic permissions by exchange.
func (p *Permissions) List() []access.TopicPermission {
	return slices.SortedFunc(maps.Values(p.Topics), func(x, y access.TopicPermission) int { return strings.Compare(x.Exchange, y.Exchange) })
}
