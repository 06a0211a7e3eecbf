package deadletters

import (
	"cmp"
	"context"
	"slices"
	"time"

	"curfew/broker"
)

// Group is the dead letters that died last of one reason in one queue, published to
// one exchange.
type Group struct {
	Reason   string    `json:"reason"` // "" with the queue and exchange: they never died
	Queue    string    `json:"queue"`
	Exchange string    `json:"exchange"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"` // of the bodies
	Oldest   time.Time `json:"oldest,omitzero"`
	Newest   time.Time `json:"newest,omitzero"`
	// Ages counts them by how long ago they died: below a minute, an hour, a day, older.
	Ages [4]int `json:"ages"`
}

// ages are the bounds of Group.Ages.
var ages = [...]time.Duration{time.Minute, time.Hour, 24 * time.Hour}

// maxGroups bounds the memory of Groups. What is in no group then is in one without
// names.
const maxGroups = 1000

// Groups sorts the ready messages of q that f matches by what they died of, the largest
// group first. now is the present instant.
func Groups(ctx context.Context, q *broker.Queue, f *Filter, now time.Time) ([]Group, error) {
	m, err := f.compile()
	if err != nil {
		return nil, err
	}
	type key struct{ reason, queue, exchange string }
	groups := map[key]*Group{}
	err = walk(ctx, q, 0, m, noBody, func(l *Letter) bool {
		d, _ := l.Last()
		k := key{d.Reason, d.Queue, d.Exchange}
		if groups[k] == nil && len(groups) >= maxGroups {
			k = key{reason: "other"}
		}
		g := groups[k]
		if g == nil {
			g = &Group{Reason: k.reason, Queue: k.queue, Exchange: k.exchange}
			groups[k] = g
		}
		g.add(l, d.Time, now)
		return true
	}, nil)
	list := make([]Group, 0, len(groups))
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Exchange, b.Exchange))
	})
	return list, err
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
