package deadletters

import (
	"errors"
	"fmt"

	"curfew/broker"
	"curfew/broker/access"
)

// ErrOwner is wrapped by errors about a run whose owner may not do it (any more).
var ErrOwner = errors.New("the owner of the replay may not do it")

// mayHandle is the one rule about runs there are, for every face: the user who made a run
// may see, cancel and resume it, and so may an administrator. To anybody else there is no
// such run. What a program made in nobody's name is the administrators'.
func mayHandle(by *access.User, run *Run) bool {
	return by.Has(access.Administrator) || run.User != "" && run.User == by.Name
}

// ownerMay returns ErrOwner unless the owner exists and may read the queue. It is asked
// at the start, when a run is resumed or goes on after a restart, and for each message,
// as its publisher asks where it may go: a run has the rights its owner has at the moment,
// whoever resumes it.
func (o *Order) ownerMay(b *broker.Broker) error {
	if o.User == "" {
		return nil
	}
	if _, ok := b.User(o.User); !ok {
		return fmt.Errorf("%w: user '%s' is deleted; start another replay", ErrOwner, o.User)
	}
	if b.RightsOf(o.User, o.VHost).Queue(access.Read, o.Queue) != nil {
		return fmt.Errorf("%w: user '%s' may not read queue '%s' in vhost '%s'", ErrOwner, o.User, o.Queue, o.VHost)
	}
	return nil
}
