package main

import (
	"context"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/queue"
	"curfew/monitor/dashboard"
)

// newDashboard makes the pages of a node.
func newDashboard(c *config, n *node, log *zap.Logger) (*dashboard.Dashboard, error) {
	b := &shownBroker{node: n, dataDir: c.DataDir, started: time.Now()}
	o := dashboard.Options{
		Broker: b, DeadLetters: shownLetters{b}, Alerts: n.alerts, Audit: n.audit,
		Instance: string(c.Instance), Version: versionText(), Log: log,
	}
	if n.monitor != nil {
		o.Monitor = n.monitor
	}
	return dashboard.New(o)
}

// shownBroker is the bundled broker as the dashboard sees it.
type shownBroker struct {
	*node
	dataDir string
	started time.Time
}

// Authenticate implements dashboard.Broker.
func (s *shownBroker) Authenticate(ctx context.Context, name, password string, from netip.Addr) (dashboard.User, error) {
	u, err := s.broker.Authenticate(ctx, name, password, from)
	if errors.Is(err, broker.ErrLogin) {
		return dashboard.User{}, dashboard.ErrLogin
	}
	if err != nil {
		return dashboard.User{}, err
	}
	if shown, ok := viewer(&u); ok {
		return shown, nil
	}
	return dashboard.User{}, dashboard.ErrForbidden
}

// User implements dashboard.Broker.
func (s *shownBroker) User(name string) (dashboard.User, bool) {
	u, ok := s.broker.User(name)
	if !ok {
		return dashboard.User{}, false
	}
	return viewer(&u)
}

// viewer is a user whose tags let him look.
func viewer(u *access.User) (dashboard.User, bool) {
	admin := u.Has(access.Administrator)
	stamp := hex.EncodeToString(u.PasswordHash) + " " + strings.Join(u.Tags, ",")
	return dashboard.User{Name: u.Name, Admin: admin, Stamp: stamp}, admin || u.Has(access.Monitoring)
}

// State implements dashboard.Broker.
func (s *shownBroker) State() dashboard.State {
	t := s.broker.Totals()
	blocked, _ := s.broker.Gate()
	state := dashboard.State{
		Now: s.broker.UnixMillis(s.broker.Now()), Started: s.started, DataDir: s.dataDir, Blocked: blocked,
		Memory: s.broker.MemoryInUse(), MemoryMax: s.broker.MemoryLimit(),
		Totals: dashboard.Totals{
			Published: t.Published, Delivered: t.Queues.AllDelivered(), Acked: t.Queues.Acked,
			Expired: t.ExpiredDropped + t.DeadLettered[queue.Expired], Unroutable: t.Unroutable,
		},
	}
	state.Connections, state.Channels = s.server.Counts()
	state.InFlow = s.server.InFlow()
	return state
}

// Hold implements dashboard.Broker. As in the management API, what takes more than half of all
// there is counts for half.
func (s *shownBroker) Hold(user string, bytes int64) (release func(), err error) {
	clients := s.broker.Clients()
	if most := clients.Most(); most > 0 {
		bytes = min(bytes, most/2)
	}
	a := clients.Open(user, func(error) {}) // a form is read within seconds, or cut off
	return a.Close, a.Take(bytes)
}

// Queues implements dashboard.Broker.
func (s *shownBroker) Queues() (all []dashboard.Queue) {
	for _, vh := range s.broker.VHosts() {
		for _, q := range vh.Queues() {
			i := q.Info()
			all = append(all, shownQueue(q, &i))
		}
	}
	return all
}

func shownQueue(q *broker.Queue, i *broker.QueueInfo) dashboard.Queue {
	shown := dashboard.Queue{
		VHost: i.VHost, Name: i.Name, Type: "classic", Ready: i.Ready, Unacked: i.Unacked, Bytes: i.ReadyBytes + i.UnackedBytes,
		Consumers: i.Consumers, TTLMillis: i.TTLMillis, DeadLetterTo: deadLettersTo(q),
	}
	if kind, ok := i.Args["x-queue-type"].(string); ok {
		shown.Type = kind
	}
	return shown
}

// deadLettersTo says in words where a queue's dead letters go.
func deadLettersTo(q *broker.Queue) string {
	exchange, key, ok := q.DeadLettersTo()
	switch {
	case !ok:
		return ""
	case exchange == "" && key != "":
		return key
	case exchange == "":
		return "the queue named by each message's key"
	case key == "":
		return "exchange " + exchange
	}
	return "exchange " + exchange + " with key " + key
}

// find is false for a queue or virtual host that is not there.
func (s *shownBroker) find(vhost, name string) (*broker.Queue, bool) {
	vh, ok := s.broker.VHost(vhost)
	if !ok {
		return nil, false
	}
	q, err := vh.Queue(name)
	return q, err == nil
}

// Queue implements dashboard.Broker.
func (s *shownBroker) Queue(vhost, name string) (d dashboard.QueueDetail, ok bool) {
	q, ok := s.find(vhost, name)
	if !ok {
		return d, false
	}
	i := q.Info()
	user, operator, effective := q.Policies()
	d = dashboard.QueueDetail{
		Queue: shownQueue(q, &i), Policy: user, OperatorPolicy: operator, Arguments: pairsOf(i.Args), Effective: pairsOf(effective),
		Published: i.Counts.Published, Delivered: i.Counts.AllDelivered(), Acked: i.Counts.Acked, Redelivered: i.Counts.Redelivered,
		ActiveConsumer: i.ActiveConsumer, PersistentBytes: i.PersistentBytes,
	}
	for _, f := range []struct {
		name string
		is   bool
	}{{"durable", i.Durable}, {"exclusive", i.Exclusive}, {"deleted with its last consumer", i.AutoDelete}} {
		if f.is {
			d.Features = append(d.Features, f.name)
		}
	}
	return d, true
}

// Peek implements dashboard.Broker.
func (s *shownBroker) Peek(u dashboard.User, vhost, name string, p dashboard.Peek) ([]dashboard.Message, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return nil, err
	}
	found, err := q.Browse(broker.Browse{FromTail: p.FromTail, Offset: p.Offset, Count: p.Count, BodyBytes: p.BodyBytes})
	if err != nil {
		return nil, dashboard.ErrGone
	}
	list := make([]dashboard.Message, len(found))
	for i := range found {
		list[i] = s.shownMessage(&found[i])
	}
	return list, nil
}
