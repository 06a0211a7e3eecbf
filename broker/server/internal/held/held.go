// Package held counts the memory that a client makes the broker hold.
package held

import (
	"fmt"
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/memory"
)

// step is how much is drawn from the budget at once. So a small message costs nothing, and
// most connections draw nothing.
const step = 16 << 10

// Bytes is the memory that one connection holds: its channels, consumers, unfinished publishes
// and transactions. It is drawn from the budget of all clients once per read (Update). The
// zero value is ready to count and draws nothing.
type Bytes struct {
	n       atomic.Int64
	drawn   int64           // from the account, for n
	account *memory.Account // nil until the client has logged in
}

// Add counts n bytes more, or fewer if n is negative. Any goroutine may call it.
func (b *Bytes) Add(n int64) { b.n.Add(n) }

// Open draws from an account from now on.
func (b *Bytes) Open(a *memory.Account) { b.account = a }

// Close gives back everything that was drawn. It may be called again.
func (b *Bytes) Close() {
	if b.account != nil {
		b.account.Close()
	}
}

// Update draws what is held in addition since the last call, or gives back what is no longer
// held. most is how many bytes may be held even if the budget is unlimited. An error is 506,
// which closes the connection.
func (b *Bytes) Update(most int64) error {
	if b.account == nil {
		return nil
	}
	holds := b.n.Load()
	due := holds - holds%step
	switch {
	case due == b.drawn:
		return nil
	case due < b.drawn:
		b.account.Give(b.drawn - due)
	default:
		if due > most {
			return OverBudget(fmt.Errorf("unfinished publishes, consumers and channels of this connection take more than %d bytes", most))
		}
		if err := b.account.Take(due - b.drawn); err != nil {
			return OverBudget(err)
		}
	}
	b.drawn = due
	return nil
}

// OverBudget is the exception that closes a connection because of the memory it holds.
func OverBudget(err error) *amqp.Exception {
	return amqp.NewException(amqp.ResourceError, 0, 0, "%s", err)
}
