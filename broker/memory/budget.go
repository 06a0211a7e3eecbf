package memory

import (
	"fmt"
	"sync"
)

// Budget bounds what all accounts hold together. Its lock is a leaf. It is safe for
// concurrent use.
type Budget struct {
	Limit int64 // bytes; 0: unlimited; not to be changed

	mu       sync.Mutex
	used     int64
	accounts map[*Account]struct{}
	users    map[string]int64
}

// New returns a budget of that many bytes; 0 means unlimited.
func New(limit int64) *Budget {
	return &Budget{Limit: limit, accounts: map[*Account]struct{}{}, users: map[string]int64{}}
}

// Account is what one connection or one request holds. It is safe for concurrent use.
type Account struct {
	Budget *Budget // what it is of

	user  string
	evict func(error)

	// Guarded by the budget's mu.
	used    int64
	evicted error // why it had to give way; nil: it did not
}

// Exceeded reports that a budget is used up.
type Exceeded struct{ Limit int64 }

// Error implements error.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("clients' unfinished requests, consumers and channels take more than %d bytes; this one holds most", e.Limit)
}

// Open opens an account for a user, who must close it with Close. evict is called when the
// account has to give way, at most once and without a lock of the budget. It must not
// block.
func (b *Budget) Open(user string, evict func(error)) *Account {
	a := &Account{Budget: b, user: user, evict: evict}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a] = struct{}{}
	return a
}

// Take adds n bytes to what the account holds. An error is an *Exceeded and means that this
// account has to give way, now or since an earlier call. Nothing was added then.
func (a *Account) Take(n int64) error {
	for {
		victim, err := a.take(n)
		if victim == nil {
			return err
		}
		victim.evict(err)
	}
}

// take returns the account that had to give way, unless it is a itself. take must then be
// called again.
func (a *Account) take(n int64) (victim *Account, err error) {
	b := a.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.evicted != nil {
		return nil, a.evicted
	}
	a.addLocked(n)
	if b.Limit == 0 || b.used <= b.Limit {
		return nil, nil
	}
	exceeded := &Exceeded{b.Limit}
	victim = b.largestLocked(a)
	a.addLocked(-n)
	if victim == a || victim == nil {
		return nil, exceeded
	}
	victim.addLocked(-victim.used)
	victim.evicted = exceeded
	return victim, exceeded
}

// Try is Take for memory that is not essential: no account gives way for it.
func (a *Account) Try(n int64) bool {
	b := a.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.evicted != nil || b.Limit > 0 && b.used+n > b.Limit {
		return false
	}
	a.addLocked(n)
	return true
}

// Give subtracts n bytes from what the account holds.
func (a *Account) Give(n int64) {
	a.Budget.mu.Lock()
	defer a.Budget.mu.Unlock()
	if a.evicted == nil {
		a.addLocked(-n)
	}
}

// Close gives back everything that the account holds. Nothing can be added to it
// afterwards. Close may be called again.
func (a *Account) Close() {
	b := a.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	a.addLocked(-a.used)
	if a.evicted == nil {
		a.evicted = &Exceeded{b.Limit}
	}
	delete(b.accounts, a)
}

// addLocked changes what the account, its user and all accounts hold. It needs the budget's
// mu.
func (a *Account) addLocked(n int64) {
	b := a.Budget
	a.used += n
	b.used += n
	if b.users[a.user] += n; b.users[a.user] == 0 {
		delete(b.users, a.user)
	}
}

// largestLocked returns the largest account of the user who holds most. Among equal users
// it prefers the one that asks.
func (b *Budget) largestLocked(asks *Account) (most *Account) {
	user := asks.user
	for name, used := range b.users {
		if used > b.users[user] {
			user = name
		}
	}
	if user == asks.user {
		most = asks
	}
	for a := range b.accounts {
		if a.user == user && (most == nil || a.used > most.used) {
			most = a
		}
	}
	return most
}

// Used returns what all accounts together have drawn, in bytes.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
