package access

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"curfew/broker/policy"
)

// Operation is what a permission is needed for.
type Operation uint8

const (
	Configure Operation = iota
	Write
	Read
	operations
)

var operationNames = [operations]string{"configure", "write", "read"}

// Permission is what a user may do in a virtual host, in the form of RabbitMQ's
// definitions: one regular expression over names for each operation.
type Permission struct {
	User      string `json:"user"`
	VHost     string `json:"vhost"`
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// TopicPermission restricts the routing keys that a user may publish with (Write) and bind
// with (Read) on one topic exchange.
type TopicPermission struct {
	User     string `json:"user"`
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange"`
	Write    string `json:"write"`
	Read     string `json:"read"`
}

// maxPattern bounds the length of a regular expression, in octets.
const maxPattern = 1024

// Grant is the compiled form of what a user may do in a virtual host. It is immutable and
// safe for concurrent use.
type Grant struct {
	names  [operations]*policy.Pattern            // nil: not valid, and grants nothing
	topics map[string][operations]*policy.Pattern // by exchange
}

// Compile compiles a permission and the topic permissions of the same user and virtual
// host. The error wraps ErrInvalid and names the first expression that is not valid. The grant
// that comes with it is without those that are not.
func Compile(p Permission, topics []TopicPermission) (g *Grant, err error) {
	g = &Grant{topics: map[string][operations]*policy.Pattern{}}
	add := func(to *[operations]*policy.Pattern, op Operation, text string) {
		compiled, wrong := compile(text, op)
		if to[op] = compiled; err == nil {
			err = wrong
		}
	}
	for op, text := range [operations]string{p.Configure, p.Write, p.Read} {
		add(&g.names, Operation(op), text)
	}
	// In topic permissions the names of the user and of the virtual host are inserted, quoted so that they match
	// only themselves, even inside a character class.
	quote := func(name string) string { return strings.ReplaceAll(regexp.QuoteMeta(name), "-", `\-`) }
	names := strings.NewReplacer("{username}", quote(p.User), "{vhost}", quote(p.VHost))
	for _, t := range topics {
		var patterns [operations]*policy.Pattern
		add(&patterns, Write, names.Replace(t.Write))
		add(&patterns, Read, names.Replace(t.Read))
		g.topics[t.Exchange] = patterns
	}
	return g, err
}

func compile(text string, op Operation) (*policy.Pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("%w: %s permission is longer than %d octets", ErrInvalid, operationNames[op], maxPattern)
	}
	compiled, err := policy.CompilePattern(cmp.Or(text, "^$"))
	if err != nil {
		return nil, fmt.Errorf("%w: %s permission: %w", ErrInvalid, operationNames[op], err)
	}
	return compiled, nil
}

// Allows reports whether the operation on that name is granted. A nil Grant grants nothing.
func (g *Grant) Allows(op Operation, name string) bool {
	return g != nil && g.names[op].Match(name)
}

// RestrictsTopics reports whether the exchange has topic permissions.
func (g *Grant) RestrictsTopics(exchange []byte) bool {
	if g == nil {
		return false
	}
	_, ok := g.topics[string(exchange)]
	return ok
}

// AllowsTopic reports whether the operation with that routing key is granted. Without topic
// permissions for the exchange every key is.
func (g *Grant) AllowsTopic(op Operation, exchange, key string) bool {
	if g == nil {
		return false
	}
	patterns, restricted := g.topics[exchange]
	return !restricted || patterns[op].Match(key)
}
