package deliveries

import (
	"fmt"
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/memory"
)

// step is how much is drawn from the budget at once. So a small message costs nothing, and
// most connections draw nothing.
const step = 16 << 10

// Memory is what one connection uses: its channels, consumers, unfinished publishes
// and transactions. It is drawn from the budget of all clients once per read (Update). The
// zero value is ready to count and draws nothing.
type Memory struct {
	atomic.Int64                 // bytes in use. Any goroutine may add to it
	Account      *memory.Account // nil until the client has logged in
	drawn        int64           // from the account
}

// Close gives back everything that was drawn. It may be called again.
func (m *Memory) Close() {
	if m.Account != nil {
		m.Account.Close()
	}
}

// Update draws what is used in addition since the last call, or gives back what is no longer
// used. most is how many bytes may be used even if the budget is unlimited. An error is 506,
// which closes the connection.
func (m *Memory) Update(most int64) error {
	if m.Account == nil {
		return nil
	}
	used := m.Load()
	due := used - used%step
	switch {
	case due == m.drawn:
		return nil
	case due < m.drawn:
		m.Account.Give(m.drawn - due)
	default:
		if due > most {
			return OverBudget(fmt.Errorf("unfinished publishes, consumers and channels of this connection take more than %d bytes", most))
		}
		if err := m.Account.Take(due - m.drawn); err != nil {
			return OverBudget(err)
		}
	}
	m.drawn = due
	return nil
}

// OverBudget is the exception that closes a connection because of the memory it uses.
func OverBudget(err error) *amqp.Exception {
	return amqp.NewException(amqp.ResourceError, 0, 0, "%s", err)
}
