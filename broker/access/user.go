package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is wrapped by every error about an invalid value.
var ErrInvalid = errors.New("invalid")

// User is an account, in the form of RabbitMQ's definitions. A User is a value: nobody
// changes its slices and map once it was passed on.
type User struct {
	Name         string   `json:"name"`
	PasswordHash []byte   `json:"password_hash"`     // salt and hash; empty: no login with a password
	Algorithm    string   `json:"hashing_algorithm"` // one of the constants; "": MD5, as in RabbitMQ
	Tags         []string `json:"tags"`
	Limits       Limits   `json:"limits"` // max-connections, max-channels
}

// The tags that the broker or its management gives a meaning to (RabbitMQ: Management
// Plugin, Permissions).
const (
	Administrator = "administrator"
	Monitoring    = "monitoring"
	Policymaker   = "policymaker"
	Management    = "management"
	Impersonator  = "impersonator" // may set user-id to another user's name
)

// ParseTags splits tags that are written in one text, separated by commas.
func ParseTags(text string) (tags []string) {
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// Check reports whether the user is valid: it needs a name, a known algorithm and known
// limits. The error wraps ErrInvalid.
func (u *User) Check() error {
	if u.Name == "" {
		return fmt.Errorf("%w: a user without a name", ErrInvalid)
	}
	if !utf8.ValidString(u.Name) {
		return fmt.Errorf("%w: the name of a user, %q, is not UTF-8", ErrInvalid, u.Name)
	}
	if digests[u.Algorithm] == nil {
		return fmt.Errorf("%w: hashing algorithm %q of user %q is not known", ErrInvalid, u.Algorithm, u.Name)
	}
	return u.Limits.check("user", MaxConnections, MaxChannels)
}

// Limits holds the limits of a user or a virtual host by RabbitMQ's names. A negative value
// means no limit, like an absent one.
type Limits map[string]int

// UnmarshalJSON accepts the empty list that Erlang writes for no limits.
func (l *Limits) UnmarshalJSON(b []byte) error {
	if *l = nil; string(b) == "[]" {
		return nil
	}
	return json.Unmarshal(b, (*map[string]int)(l))
}

// What can be limited: connections of users and of virtual hosts, channels of users, queues
// of virtual hosts.
const (
	MaxConnections = "max-connections"
	MaxChannels    = "max-channels"
	MaxQueues      = "max-queues"
)

// Of returns the limit of that name, or false if there is none.
func (l Limits) Of(name string) (int, bool) {
	n, ok := l[name]
	return n, ok && n >= 0
}

// Reached reports whether one more would exceed the limit, if there are count now.
func (l Limits) Reached(name string, count int) (limit int, reached bool) {
	limit, ok := l.Of(name)
	return limit, ok && count >= limit
}

// CheckVHost reports whether a virtual host may have these limits. The error wraps
// ErrInvalid.
func (l Limits) CheckVHost() error { return l.check("vhost", MaxConnections, MaxQueues) }

func (l Limits) check(of string, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: %s limit %q is not known", ErrInvalid, of, name)
		}
	}
	return nil
}
