package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/deadletters"
	"curfew/broker/queue"
	"curfew/monitor/dashboard"
)

// shownLetters are the dead letters of the bundled broker as the dashboard sees them.
type shownLetters struct{ *shownBroker }

// Holders implements dashboard.DeadLetters.
func (s shownLetters) Holders() (all []dashboard.Holder) {
	for _, vh := range s.broker.VHosts() {
		for _, h := range deadletters.Queues(vh) {
			all = append(all, dashboard.Holder{VHost: h.VHost, Queue: h.Queue, Ready: h.Ready, Unacked: h.Held, Bytes: h.Bytes, From: h.From, Parked: h.Parked})
		}
	}
	slices.SortStableFunc(all, func(a, b dashboard.Holder) int { return b.Ready + b.Unacked - a.Ready - a.Unacked })
	return all
}

// readable is a queue that the user may read.
func (s *shownBroker) readable(u dashboard.User, vhost, name string) (*broker.Queue, error) {
	if s.broker.RightsOf(u.Name, vhost).Queue(access.Read, name) != nil {
		return nil, dashboard.ErrForbidden
	}
	q, ok := s.find(vhost, name)
	if !ok {
		return nil, dashboard.ErrGone
	}
	return q, nil
}

func filterOf(f dashboard.LetterFilter) deadletters.Filter {
	return deadletters.Filter{Reason: f.Reason, Queue: f.Queue, Exchange: f.Exchange, MessageID: f.MessageID, Body: f.Body}
}

// Groups implements dashboard.DeadLetters.
func (s shownLetters) Groups(ctx context.Context, u dashboard.User, vhost, name string, f dashboard.LetterFilter) ([]dashboard.Group, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return nil, err
	}
	filter := filterOf(f)
	groups, err := deadletters.Groups(ctx, q, &filter, time.Now())
	list := make([]dashboard.Group, len(groups))
	for i, g := range groups {
		list[i] = dashboard.Group{Reason: g.Reason, Queue: g.Queue, Exchange: g.Exchange, Messages: g.Messages, Bytes: g.Bytes, Oldest: g.Oldest, Newest: g.Newest}
	}
	return list, err
}

// Search implements dashboard.DeadLetters.
func (s shownLetters) Search(ctx context.Context, u dashboard.User, vhost, name string, f dashboard.LetterFilter, after uint64, count, bodyBytes int) ([]dashboard.Letter, uint64, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return nil, 0, err
	}
	filter := filterOf(f)
	found, next, err := deadletters.Search(ctx, q, &filter, queue.Seq(after), count, bodyBytes)
	list := make([]dashboard.Letter, len(found))
	for i := range found {
		list[i] = s.shownLetter(&found[i])
	}
	return list, uint64(next), err
}

func (s shownLetters) shownLetter(l *deadletters.Letter) dashboard.Letter {
	shown := dashboard.Letter{
		Message: dashboard.Message{
			Seq: uint64(l.Seq), Unacked: l.State == queue.Unacked, Redelivered: l.Redelivered, Persistent: l.Persistent, Deadline: s.broker.UnixMillis(l.Deadline),
			Exchange: l.Exchange, RoutingKey: l.RoutingKey, Properties: propertiesOf(&l.Properties), Headers: pairsOf(l.Properties.Headers),
			BodyBytes: l.BodyBytes, Body: l.Body,
		},
		Replays: l.Replays,
	}
	for _, d := range l.Deaths {
		shown.Deaths = append(shown.Deaths, dashboard.Death{Queue: d.Queue, Reason: d.Reason, Exchange: d.Exchange, Count: d.Count, Time: d.Time})
	}
	return shown
}

// Purge implements dashboard.DeadLetters.
func (s shownLetters) Purge(ctx context.Context, u dashboard.User, vhost, name string, f dashboard.LetterFilter, confirmed int) (int, bool, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return 0, false, err
	}
	filter := filterOf(f)
	deleted, err := deadletters.Purge(ctx, s.broker, q, &filter, confirmed)
	if unconfirmed, ok := errors.AsType[*deadletters.Unconfirmed](err); ok {
		return unconfirmed.Matched, false, nil
	}
	if err == nil {
		err = s.safe(ctx)
	}
	return deleted, true, err
}

// Export implements dashboard.DeadLetters.
func (s shownLetters) Export(ctx context.Context, u dashboard.User, vhost, name string, f dashboard.LetterFilter, w io.Writer) error {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return err
	}
	filter := filterOf(f)
	_, err = deadletters.Export(ctx, q, &filter, w)
	return err
}

// Import implements dashboard.DeadLetters.
func (s shownLetters) Import(ctx context.Context, u dashboard.User, vhost, name string, r io.Reader) (int, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return 0, err
	}
	return deadletters.Import(ctx, s.broker, q.VHost().NewPublisher(u.Name), name, r)
}

// Draft implements dashboard.DeadLetters.
func (s shownLetters) Draft(u dashboard.User, vhost, name string, seq uint64) (dashboard.Draft, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return dashboard.Draft{}, err
	}
	d, ok, err := deadletters.DraftOf(q, queue.Seq(seq))
	if err == nil && !ok {
		err = dashboard.ErrGone
	}
	return dashboard.Draft{Queue: q.ID(), Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: string(d.Properties), Body: d.Body}, err
}

// Resend implements dashboard.DeadLetters.
func (s shownLetters) Resend(ctx context.Context, u dashboard.User, vhost, name string, seq uint64, d dashboard.Draft) (string, error) {
	q, err := s.readable(u, vhost, name)
	if err == nil && q.ID() != d.Queue {
		err = dashboard.ErrGone
	}
	if err != nil {
		return "", err
	}
	draft := deadletters.Draft{Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: []byte(d.Properties), Body: d.Body}
	left, err := deadletters.Resend(ctx, s.broker, q.VHost().NewPublisher(u.Name), q, queue.Seq(seq), &draft)
	return string(left), err
}

// Replay implements dashboard.DeadLetters.
func (s shownLetters) Replay(ctx context.Context, u dashboard.User, o dashboard.ReplayOrder) (dashboard.Replay, error) {
	if _, err := s.readable(u, o.VHost, o.Queue); err != nil {
		return dashboard.Replay{}, err
	}
	run, err := s.replays.Start(ctx, deadletters.Order{
		VHost: o.VHost, Queue: o.Queue, User: u.Name, Filter: filterOf(o.Filter), DryRun: o.DryRun,
		Options: deadletters.Options{To: o.To, TTL: o.TTL, KeepDeaths: o.KeepDeaths, Limit: o.Limit, Rate: o.Rate},
	})
	return shownReplay(&run), err
}

// actor is a user of the dashboard to those who know what users may; one who is gone may
// nothing.
func (s *shownBroker) actor(u dashboard.User) *access.User {
	user, _ := s.broker.User(u.Name)
	return &user
}

// Replays implements dashboard.DeadLetters.
func (s shownLetters) Replays(u dashboard.User) (all []dashboard.Replay) {
	for _, run := range s.replays.List(s.actor(u)) {
		all = append(all, shownReplay(&run))
	}
	slices.SortStableFunc(all, func(a, b dashboard.Replay) int { return b.Started.Compare(a.Started) })
	return all
}

// CancelReplay implements dashboard.DeadLetters.
func (s shownLetters) CancelReplay(u dashboard.User, id string) error {
	_, err := s.replays.Cancel(s.actor(u), id)
	if errors.Is(err, deadletters.ErrNoRun) {
		return dashboard.ErrGone
	}
	return err
}

func shownReplay(run *deadletters.Run) dashboard.Replay {
	r := dashboard.Replay{
		ID: run.ID, VHost: run.VHost, Queue: run.Queue, User: run.User, State: string(run.State), Error: run.Error, Started: run.Started,
		Ended: run.Ended, Total: run.Total, Scanned: run.Scanned, Matched: run.Matched, Replayed: run.Replayed,
	}
	for reason, n := range run.Left {
		r.Left = append(r.Left, dashboard.Pair{Name: string(reason), Value: strconv.Itoa(n)})
	}
	slices.SortFunc(r.Left, func(a, b dashboard.Pair) int { return strings.Compare(a.Name, b.Name) })
	return r
}
