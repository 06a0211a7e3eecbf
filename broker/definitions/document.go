package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/policy"
)

// Document is RabbitMQ's definitions document. The document of a single virtual host has no
// users, permissions, virtual hosts and global parameters.
type Document struct {
	RabbitVersion    string                   `json:"rabbit_version,omitempty"`
	RabbitMQVersion  string                   `json:"rabbitmq_version,omitempty"`
	ProductName      string                   `json:"product_name,omitempty"`
	ProductVersion   string                   `json:"product_version,omitempty"`
	Users            []User                   `json:"users,omitempty"`
	VHosts           []VHost                  `json:"vhosts,omitempty"`
	Permissions      []access.Permission      `json:"permissions,omitempty"`
	TopicPermissions []access.TopicPermission `json:"topic_permissions,omitzero"`
	Parameters       []Parameter              `json:"parameters"`
	GlobalParameters []GlobalParameter        `json:"global_parameters,omitzero"`
	Policies         []Policy                 `json:"policies"`
	Queues           []Queue                  `json:"queues"`
	Exchanges        []Exchange               `json:"exchanges"`
	Bindings         []Binding                `json:"bindings"`
}

// User is an account with a Password or a PasswordHash.
type User struct {
	Name         string        `json:"name"`
	PasswordHash []byte        `json:"password_hash"`
	Algorithm    string        `json:"hashing_algorithm,omitempty"`
	Tags         words         `json:"tags"`
	Limits       access.Limits `json:"limits"`
	Password     string        `json:"password,omitempty"`
}

// VHost is a virtual host. Metadata counts where the other fields are empty.
type VHost struct {
	Name             string        `json:"name"`
	Description      string        `json:"description,omitempty"`
	Tags             words         `json:"tags,omitempty"`
	DefaultQueueType string        `json:"default_queue_type,omitempty"`
	Metadata         vhostMetadata `json:"metadata"`
}

type vhostMetadata struct {
	Description      string `json:"description"`
	Tags             words  `json:"tags"`
	DefaultQueueType string `json:"default_queue_type,omitempty"`
	Protected        bool   `json:"protected_from_deletion,omitempty"`
}

// Parameter is a parameter of a virtual host.
type Parameter = broker.Parameter

// GlobalParameter is a named JSON value.
type GlobalParameter struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Policy is a policy of a virtual host. Its fields are checked when it is imported.
type Policy struct {
	VHost, Name string
	fields      map[string]any
}

// Queue is a queue that is not exclusive.
type Queue struct {
	Name       string    `json:"name"`
	VHost      string    `json:"vhost,omitempty"`
	Durable    bool      `json:"durable"`
	AutoDelete bool      `json:"auto_delete"`
	Arguments  Arguments `json:"arguments"`
}

// Exchange is an exchange that is not predeclared.
type Exchange struct {
	Name       string    `json:"name"`
	VHost      string    `json:"vhost,omitempty"`
	Type       string    `json:"type"`
	Durable    bool      `json:"durable"`
	AutoDelete bool      `json:"auto_delete"`
	Internal   bool      `json:"internal"`
	Arguments  Arguments `json:"arguments"`
}

// Binding binds a queue or an exchange to an exchange.
type Binding struct {
	Source          string    `json:"source"`
	VHost           string    `json:"vhost,omitempty"`
	Destination     string    `json:"destination"`
	DestinationType string    `json:"destination_type"` // queue or exchange
	RoutingKey      string    `json:"routing_key"`
	Arguments       Arguments `json:"arguments"`
}

// ErrNotJSON means that a document is not a JSON object.
var ErrNotJSON = errors.New("definitions: not a JSON object")

// Parse reads a document. Empty input is an empty document. The error is ErrNotJSON, or
// names what is invalid.
func Parse(b []byte) (*Document, error) {
	d := new(Document)
	b = bytes.TrimPrefix(b, []byte("\ufeff")) // some editors write a byte order mark
	if len(bytes.TrimSpace(b)) == 0 {
		return d, nil
	}
	if !json.Valid(b) {
		return nil, ErrNotJSON
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber() // keeps integers in the values of parameters
	err := decoder.Decode(d)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "" {
		return nil, ErrNotJSON
	} else if ok {
		return nil, fmt.Errorf("definitions: %s cannot be a %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("definitions: %w", err)
	}
	return d, nil
}

// UnmarshalJSON also accepts an invalid policy: the import reports what is wrong with it.
func (p *Policy) UnmarshalJSON(b []byte) error {
	v, err := policy.ParseJSON(b)
	if err != nil {
		return err
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return errors.New("a policy must be an object")
	}
	p.VHost, _ = fields["vhost"].(string)
	p.Name, _ = fields["name"].(string)
	p.fields = fields
	return nil
}

// MarshalJSON writes the policy with RabbitMQ's fields.
func (p Policy) MarshalJSON() ([]byte, error) { return policy.FormatJSON(p.fields, "") }

func makePolicy(vhost string, p *policy.Policy) Policy {
	return Policy{VHost: vhost, Name: p.Name, fields: map[string]any{
		"vhost": vhost, "name": p.Name, "pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition,
	}}
}

// words are written as a list. Older versions write one text with commas.
type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*w = access.ParseTags(text)
		return nil
	}
	return json.Unmarshal(b, (*[]string)(w))
}

func (w words) MarshalJSON() ([]byte, error) { return policy.FormatJSON(append([]string{}, w...), "") }
