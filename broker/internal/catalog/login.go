package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"curfew/broker/access"
	"curfew/broker/deadline"
)

// ErrRefused is wrapped by every refusal of a login. Its text says why. It is for the log only; the
// client does not see it.
var ErrRefused = errors.New("login refused")

// Guest is the user whose password everybody knows.
const Guest = "guest"

// Guard decides who is let in. It is safe for concurrent use. The zero value is ready to use.
type Guard struct {
	GuestFromAnywhere bool // the user guest may log in from other machines, too

	mu       sync.Mutex // a leaf, and held for nothing but throttle
	throttle access.Throttle
}

// Authenticate says who logs in by name and password from an address; the zero address is a
// client on this machine. find returns the user of a name, and false if there is none. It takes
// as long for a user who does not exist. Where passwords are guessed, it waits before it looks
// at one, and before it says that one was wrong (access.Throttle); a wait ends with ctx. A right
// password is never refused for what others guessed. Errors: ErrRefused, or ctx's.
func (g *Guard) Authenticate(ctx context.Context, find func(name string) (access.User, bool), name, password string, from netip.Addr) (access.User, error) {
	attempt := g.begin(from)
	if attempt.Wait > 0 && !deadline.Sleep(ctx, attempt.Wait) {
		g.end(attempt, false)
		return access.User{}, ctx.Err()
	}
	u, known := find(name)
	asked := &u
	if !known {
		asked = nil
	}
	valid := access.Verify(asked, password)
	delay := g.end(attempt, !valid)
	if valid {
		return u, g.CheckAddress(name, from)
	}
	if delay > 0 && !deadline.Sleep(ctx, delay) {
		return access.User{}, ctx.Err()
	}
	return access.User{}, fmt.Errorf("%w: user '%s': invalid credentials", ErrRefused, name)
}

// CheckAddress keeps guest to clients on this machine (RabbitMQ: Access Control,
// loopback_users). Error: ErrRefused.
func (g *Guard) CheckAddress(name string, from netip.Addr) error {
	if name != Guest || g.GuestFromAnywhere || !from.IsValid() || from.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: user '%s' can only connect via localhost", ErrRefused, name)
}

func (g *Guard) begin(from netip.Addr) access.Attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.throttle.Begin(from, time.Now())
}

func (g *Guard) end(a access.Attempt, wrong bool) (delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.throttle.End(a, time.Now(), wrong)
}
