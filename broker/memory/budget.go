package memory

import (
	"fmt"
	"sync"
)

// Budget bounds what all accounts hold together. Its lock is a leaf. Safe for concurrent
// use.
type Budget struct {
	most int64 // bytes; 0: no bound

	mu       sync.Mutex
	used     int64
	accounts map[*Account]struct{}
	users    map[string]int64
	refused  uint64
	evicted  uint64
}

// New makes a budget of that many bytes; 0 for one without a bound.
func New(most int64) *Budget {
	return &Budget{most: most, accounts: map[*Account]struct{}{}, users: map[string]int64{}}
}

// Account is what one connection or one request holds. Safe for concurrent use.
type Account struct {
	b     *Budget
	user  string
	evict func(error)

	// Guarded by the budget's mu.
	held int64
	gone error // why it gave way; nil: it has not
}

// Exceeded says that a budget is used up.
type Exceeded struct{ Most int64 }

// Error implements error.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("clients' unfinished requests, consumers and channels take more than %d bytes; this one holds most", e.Most)
}

// Open makes an account for a user. evict is called, at most once and with no lock of the
// budget held, when the account has to give way; it must not block. Close is to follow.
func (b *Budget) Open(user string, evict func(error)) *Account {
	a := &Account{b: b, user: user, evict: evict}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a] = struct{}{}
	return a
}

// Take adds n bytes to what the account holds. The error is an *Exceeded: this account is
// the one to give way, now or since an earlier call, and nothing was added.
func (a *Account) Take(n int64) error {
	for {
		victim, err := a.take(n)
		if victim == nil {
			return err
		}
		victim.evict(err)
	}
}

// take returns who has given way, if anybody but a itself had to; then it is to be
// called again.
func (a *Account) take(n int64) (victim *Account, err error) {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.gone != nil {
		return nil, a.gone
	}
	a.add(n)
	if b.most == 0 || b.used <= b.most {
		return nil, nil
	}
	exceeded := &Exceeded{b.most}
	victim = b.largest(a)
	a.add(-n)
	if victim == a || victim == nil {
		b.refused++
		return nil, exceeded
	}
	victim.add(-victim.held)
	victim.gone = exceeded
	b.evicted++
	return victim, exceeded
}

// Try is Take for what can do without: nobody gives way for it.
func (a *Account) Try(n int64) bool {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.gone != nil || b.most > 0 && b.used+n > b.most {
		b.refused++
		return false
	}
	a.add(n)
	return true
}

// Give takes n bytes off what the account holds.
func (a *Account) Give(n int64) {
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	if a.gone == nil {
		a.add(-n)
	}
}

// Close gives back all that the account holds. Nothing is added to it any more. Safe to
// repeat.
func (a *Account) Close() {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	a.add(-a.held)
	if a.gone == nil {
		a.gone = &Exceeded{b.most}
	}
	delete(b.accounts, a)
}

// add changes what the account, its user and all hold; called with the budget's mu held.
func (a *Account) add(n int64) {
	b := a.b
	a.held += n
	b.used += n
	if b.users[a.user] += n; b.users[a.user] == 0 {
		delete(b.users, a.user)
	}
}

// largest is the account that holds most among those of the user who holds most; of equal
// ones the one that asks. Called with mu held.
func (b *Budget) largest(asks *Account) (most *Account) {
	user := asks.user
	for name, held := range b.users {
		if held > b.users[user] {
			user = name
		}
	}
	if user == asks.user {
		most = asks
	}
	for a := range b.accounts {
		if a.user == user && (most == nil || a.held > most.held) {
			most = a
		}
	}
	return most
}

// Most is the budget's.
func (a *Account) Most() int64 { return a.b.most }

// Most is how many bytes there are; 0: no bound.
func (b *Budget) Most() int64 { return b.most }

// Stats are how a budget stands.
type Stats struct {
	Used    int64  // bytes
	Refused uint64 // demands, since the start
	Evicted uint64 // accounts that gave way to others, since the start
}

// Stats returns how the budget stands.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{b.used, b.refused, b.evicted}
}
