package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Has reports whether the user has the tag.
func (u *User) Has(tag string) bool { return slices.Contains(u.Tags, tag) }

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
	if digests[u.Algorithm] == nil {
		return fmt.Errorf("%w: hashing algorithm %q of user %q is not known", ErrInvalid, u.Algorithm, u.Name)
	}
	return u.Limits.check("user", MaxConnections, MaxChannels)
}
