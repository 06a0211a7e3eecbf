package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid is wrapped by every error that says a given value cannot be.
var ErrInvalid = errors.New("invalid")

// User is an account, in the form RabbitMQ's definitions have it. A user is a
// value: nobody changes its slices and map after it was handed over.
type User struct {
	Name         string   `json:"name"`
	PasswordHash []byte   `json:"password_hash"`     // salt and hash; empty: no login by password
	Algorithm    string   `json:"hashing_algorithm"` // one of the constants; "": MD5, as in RabbitMQ
	Tags         []string `json:"tags"`
	Limits       Limits   `json:"limits"` // max-connections, max-channels
}

// Tags that mean something to the broker or its management (RabbitMQ: Management
// Plugin, Permissions).
const (
	Administrator = "administrator"
	Monitoring    = "monitoring"
	Policymaker   = "policymaker"
	Management    = "management"
	Impersonator  = "impersonator" // may set user-id to another's name
)

// Has says whether the user has the tag.
func (u *User) Has(tag string) bool { return slices.Contains(u.Tags, tag) }

// ParseTags splits tags as they are written in one text, by commas.
func ParseTags(text string) (tags []string) {
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// Check says whether the user can be kept: a name, a known algorithm, known
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
