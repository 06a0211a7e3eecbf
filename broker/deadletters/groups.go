package deadletters

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Group is a group of dead letters whose last death has the same reason, queue and exchange, and which have the same type if that is asked for.
type Group struct {
	Reason   string    `json:"reason"`         // empty, as are queue and exchange: they never died
	Queue    string    `json:"queue"`          // in which they died
	Exchange string    `json:"exchange"`       // to which they were published
	Type     *string   `json:"type,omitempty"` // the message property; nil: they are not grouped by it
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`           // of the bodies
	Oldest   time.Time `json:"oldest,omitzero"` // the first of their last deaths
	Newest   time.Time `json:"newest,omitzero"` // the last of them
	// Toward is the exchange by which parked messages could not be routed; empty for others.
	Toward string `json:"toward,omitempty"`
	Key    string `json:"routing_key,omitempty"` // of parked messages: the routing key of one of them
	Why    Cause  `json:"why,omitempty"`         // of parked messages: no_exchange, no_queue, or mended: they could be routed now
	Advice string `json:"advice,omitempty"`      // of parked messages: why they are parked, and what to do about it
	// Ages is how many died less than a minute ago, less than an hour, less than a day, and earlier.
	Ages [4]int `json:"ages"`
}

// GroupList is some groups, the largest first.
type GroupList []Group

// Words implements operate.Effect.
func (l GroupList) Words() (sentences []string, harm, more bool) {
	for i := range l {
		if l[i].Advice != "" {
			sentences = append(sentences, l[i].Advice)
		}
	}
	return sentences, false, false
}

// Cells implements operate.Rowed.
func (g Group) Cells(at func(time.Time) string) (heads, cells []string) {
	heads = []string{"REASON", "QUEUE", "EXCHANGE?", "MESSAGES", "<1M", "<1H", "<1D", "OLDER", "OLDEST", "NEWEST?"}
	cells = []string{g.Reason + ReasonWords(g.Reason), g.Queue, g.Exchange, strconv.Itoa(g.Messages)}
	for _, n := range g.Ages {
		cells = append(cells, strconv.Itoa(n))
	}
	if cells = append(cells, at(g.Oldest), at(g.Newest)); g.Type != nil {
		heads, cells = slices.Insert(heads, 3, "TYPE"), slices.Insert(cells, 3, *g.Type)
	}
	return heads, cells
}

// advice explains why the messages of a group are parked in a virtual host, and what to do about it.
func (g *Group) advice(vhost string) string {
	exchange := "exchange " + strconv.Quote(g.Toward)
	if g.Toward == "" {
		exchange = "the default exchange"
	}
	from := cmp.Or(g.Queue, "-")
	says := map[Cause]string{
		CauseNoExchange: "because " + exchange + " does not exist. Declare it and bind a queue, then",
		CauseNoQueue:    "because no queue is bound to " + exchange + " for key " + strconv.Quote(g.Key) + ". Bind one, then",
		CauseMended:     "but " + exchange + " leads to a queue now",
	}[g.Why]
	if g.Why == CauseNoQueue && g.Toward == "" {
		says = "because there is no queue " + strconv.Quote(g.Key) + ". Declare it, then"
	}
	return fmt.Sprintf("%d from %s are parked %s: %s", g.Messages, from, says, g.Filter().Onward(vhost))
}

// Filter matches the messages of the group.
func (g *Group) Filter() Filter {
	f := Equals("reason", g.Reason).And(Equals("queue", g.Queue)).And(Equals("exchange", g.Exchange))
	if g.Type != nil {
		f = f.And(Equals("type", *g.Type))
	}
	if g.Why != "" {
		f = f.And(Equals("via", g.Toward))
	}
	return f
}

// Onward is the command that sends on what is parked in a virtual host and matches f ("": all of it).
func (f Filter) Onward(vhost string) string {
	flags := []string{"--vhost", vhost, "--to", ToOnward}
	if f != "" {
		flags = append(flags, "--filter", string(f))
	}
	return deadline.Command("curfew dlq replay", []string{policy.UndeliverableQueue}, flags...)
}

// Cause is why messages are parked, as far as can be seen now: exchanges and bindings may have changed since they were.
type Cause string

// The causes.
const (
	CauseNoExchange Cause = "no_exchange" // the exchange does not exist
	CauseNoQueue    Cause = "no_queue"    // no queue is bound to it for their key
	CauseMended     Cause = "mended"      // they could be routed to a queue now
)

// ages are the bounds of Group.Ages.
var ages = [...]time.Duration{time.Minute, time.Hour, 24 * time.Hour}

// maxGroups bounds the memory of Groups. All further messages are in one group without names.
const maxGroups = 1000

// Groups groups the ready messages of q that f matches by what they died of, and byType by their types, the largest group
// first. now is the present instant. When ctx ends it returns the groups of the newest
// messages, with ctx's error; seen is how many it has examined.
func Groups(ctx context.Context, q *broker.Queue, f Filter, byType bool, now time.Time) (list []Group, seen int, err error) {
	upTo := PositionOf(q, now)
	m, err := upTo.on(q, f)
	if err != nil {
		return nil, 0, err
	}
	type key struct{ reason, queue, exchange, toward, kind string }
	groups, parked := map[key]*Group{}, q.Name == policy.UndeliverableQueue
	err = walk(ctx, q, Look{Newest: true, Position: upTo, brief: true}, m, func(l *Letter) bool {
		d := l.last()
		k := key{reason: d.Reason, queue: d.Queue, exchange: d.Exchange}
		if byType {
			k.kind = l.Properties.Type
		}
		if parked {
			k.toward = string(l.Message.Exchange)
		}
		if groups[k] == nil && len(groups) >= maxGroups {
			k = key{reason: "other"}
		}
		g := groups[k]
		if g == nil {
			g = &Group{Reason: k.reason, Queue: k.queue, Exchange: k.exchange}
			if byType {
				g.Type = &k.kind
			}
			if parked && k.reason != "other" {
				g.Toward, g.Key, g.Why = k.toward, string(l.Message.RoutingKey), causeOf(q, l)
			}
			groups[k] = g
		}
		g.add(l, d.Time, now)
		return true
	}, func(_ queue.Seq, n int) { seen += n })
	list = make([]Group, 0, len(groups))
	for _, g := range groups {
		if g.Why != "" {
			g.Advice = g.advice(q.VHost().Name())
		}
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Exchange, b.Exchange),
			cmp.Compare(a.Toward, b.Toward))
	})
	return list, seen, err
}

// causeOf returns why a message is parked. A parked message keeps the exchange and the key by which it was to be routed.
func causeOf(q *broker.Queue, l *Letter) Cause {
	exchange := string(l.Message.Exchange)
	_, missing := q.VHost().Exchanges.Get(exchange)
	switch {
	case missing != nil:
		return CauseNoExchange
	case len(q.VHost().Destinations(exchange, string(l.Message.RoutingKey))) == 0:
		return CauseNoQueue
	}
	return CauseMended
}

func (g *Group) add(l *Letter, died, now time.Time) {
	g.Messages++
	g.Bytes += int64(l.BodyBytes)
	if died.IsZero() {
		return
	}
	if g.Oldest.IsZero() || died.Before(g.Oldest) {
		g.Oldest = died
	}
	if died.After(g.Newest) {
		g.Newest = died
	}
	age, old := 0, now.Sub(died)
	for age < len(ages) && old >= ages[age] {
		age++
	}
	g.Ages[age]++
}
