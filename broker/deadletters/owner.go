package deadletters

import (
	"errors"
	"fmt"

	"curfew/broker"
	"curfew/broker/access"
)

// ErrOwner is wrapped by errors about a replay that its owner may not do, or may no longer do.
var ErrOwner = errors.New("the owner of the replay is not allowed to do it")

// checkOwner returns ErrOwner unless the owner exists and may read the queue. It is
// called at the start, when a replay is resumed or continues after a restart, and for each
// message, whose publisher in turn checks where it may go: a replay has the rights that its
// owner has at the moment, whoever resumes it.
func (o *Request) checkOwner(b *broker.Broker) error {
	if o.User == "" {
		return nil
	}
	if _, ok := b.Accounts.User(o.User); !ok {
		return fmt.Errorf("%w: user '%s' is deleted; start another replay", ErrOwner, o.User)
	}
	if b.RightsOf(o.User, o.VHost).Queue(access.Read, o.Queue) != nil {
		return fmt.Errorf("%w: user '%s' may not read queue '%s' in vhost '%s'", ErrOwner, o.User, o.Queue, o.VHost)
	}
	return nil
}
