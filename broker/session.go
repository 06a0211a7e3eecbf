package broker

import (
	"sync"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/topology"
)

// Session is a user's connection to a virtual host. It counts against the limits of both and ends with either. Safe for concurrent
// use.
type Session struct {
	VHost    *VHost // that it is in
	user     string
	end      func(*amqp.Exception)
	channels int // guarded by sessions.mu
}

// sessions are the open ones. Its lock is a leaf.
type sessions struct {
	mu       sync.Mutex
	open     map[*Session]struct{}
	ofUser   map[string]int
	ofVHost  map[*VHost]int
	channels map[string]int // by user
}

// OpenSession admits a user who has logged in to a virtual host. end is called,
// by any goroutine and perhaps more than once, when the connection has to be
// closed because the user or the virtual host is deleted; it must not block. The
// session must be closed. Errors are those of connection.open: 530 for a virtual
// host that does not exist or that the user has no access to, or for a limit that is reached.
func (b *Broker) OpenSession(user, vhost string, end func(*amqp.Exception)) (*Session, error) {
	vh, ok := b.VHost(vhost)
	if !ok {
		return nil, topology.NoVHost(vhost)
	}
	s := &Session{VHost: vh, user: user, end: end}
	if err := b.sessions.add(s, b.userLimits(user), vh.Limits()); err != nil {
		return nil, err
	}
	err := catalog.CheckVHostAccess(b.Accounts, user, vhost)
	if again, _ := b.VHost(vhost); err == nil && again != vh { // deleted since
		err = topology.NoVHost(vhost)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (b *Broker) userLimits(name string) access.Limits {
	u, _ := b.Accounts.User(name)
	return u.Limits
}

func (t *sessions) add(s *Session, ofUser, ofVHost access.Limits) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit, reached := ofVHost.Reached(access.MaxConnections, t.ofVHost[s.VHost]); reached {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "access to vhost '%s' refused for user '%s': connection limit (%d) is reached", s.VHost.Name(), s.user, limit)
	}
	if limit, reached := ofUser.Reached(access.MaxConnections, t.ofUser[s.user]); reached {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "connection refused for user '%s': user connection limit (%d) is reached", s.user, limit)
	}
	t.open[s] = struct{}{}
	t.ofUser[s.user]++
	t.ofVHost[s.VHost]++
	return nil
}

// end tells the chosen sessions' connections to close.
func (t *sessions) end(chosen func(*Session) bool, reason string) {
	t.mu.Lock()
	var ending []*Session
	for s := range t.open {
		if chosen(s) {
			ending = append(ending, s)
		}
	}
	t.mu.Unlock()
	for _, s := range ending {
		s.end(amqp.NewException(amqp.ConnectionForced, 0, 0, "%s", reason))
	}
}

// Rights are what the user may do in the virtual host.
func (s *Session) Rights() *Rights { return s.VHost.b.RightsOf(s.user, s.VHost.Name()) }

// Close ends the session. Safe to repeat.
func (s *Session) Close() {
	t := &s.VHost.b.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.open[s]; !open {
		return
	}
	delete(t.open, s)
	countDown(t.ofUser, s.user, 1)
	countDown(t.ofVHost, s.VHost, 1)
	countDown(t.channels, s.user, s.channels)
}

// OpenChannel counts one more channel. Error: 530, the user has as many as they may.
func (s *Session) OpenChannel() error {
	limits := s.VHost.b.userLimits(s.user)
	t := &s.VHost.b.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit, reached := limits.Reached(access.MaxChannels, t.channels[s.user]); reached {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "number of channels opened for user '%s' has reached the maximum allowed user limit of (%d)", s.user, limit)
	}
	s.channels++
	t.channels[s.user]++
	return nil
}

// CloseChannel counts one channel less.
func (s *Session) CloseChannel() {
	t := &s.VHost.b.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.open[s]; !open {
		return
	}
	s.channels--
	countDown(t.channels, s.user, 1)
}

// countDown keeps no zeros, since names come and go.
func countDown[K comparable](counts map[K]int, k K, n int) {
	if counts[k] -= n; counts[k] <= 0 {
		delete(counts, k)
	}
}
