package topology

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

const (
	tab       = "/connections"
	consumers = "/consumers"
	closePath = "/connection/close"
)

// connection is a row.
type connection struct {
	operate.Connection
	Client  operate.Client
	Rate    rates   // of all its channels
	Rates   []rates // of each
	Holders []operate.Consumer
	Past    int // messages that it holds past their deadlines
	Title   string
}

// rates are how fast a channel's counts rise, by their names.
type rates = map[string]operate.Rate

// title is the client's own name, or its product, or else what it is called otherwise.
func title(c *operate.Client, otherwise string) string {
	return cmp.Or(c.Name, strings.TrimSpace(c.Product+" "+c.Version), otherwise)
}

// gather lists the connections that the user may see.
func (p Pages) gather(ctx context.Context, v ui.Visitor) ([]connection, error) {
	found, err := p.Operations.ListConnections(ctx, v.Actor)
	if err != nil {
		return nil, err
	}
	holders, err := operate.Holders(p.Operations.Access, v.Actor, operate.QueueName{})
	if err != nil {
		return nil, err
	}
	of := map[string][]operate.Consumer{}
	for i := range holders {
		of[holders[i].Connection] = append(of[holders[i].Connection], holders[i])
	}
	rates := p.Operations.Rates
	rates.Refresh()
	list := make([]connection, len(found))
	for i, c := range found {
		one := connection{Connection: c, Client: operate.ClientOf(c.ClientProperties), Holders: of[c.Name]}
		one.Title = title(&one.Client, c.Name)
		sum, channels := operate.Counts{}, []any{}
		for j := range c.Channels {
			counts := operate.ChannelCounts(&c.Channels[j].Stats)
			one.Rates = append(one.Rates, rates.Of(counts, c.Channels[j].Identity))
			channels = append(channels, c.Channels[j].Identity)
			for name, n := range counts {
				sum[name] += n
			}
		}
		one.Rate = rates.Of(sum, channels...)
		for j := range one.Holders {
			one.Past += one.Holders[j].PastDeadline
		}
		list[i] = one
	}
	slices.SortStableFunc(list, func(x, y connection) int {
		return cmp.Or(cmp.Compare(y.Past, x.Past), cmp.Compare(y.Unacked(), x.Unacked()), cmp.Compare(x.Title, y.Title))
	})
	return list, nil
}

// listPage is the content of the page of connections.
type listPage struct {
	Find string
	List []connection
	Cut  ui.Cut // of those that match
	All  int
}

func (p Pages) connections(r *http.Request, v ui.Visitor) (ui.View, error) {
	all, err := p.gather(r.Context(), v)
	page := &listPage{Find: r.URL.Query().Get("q"), All: len(all)}
	for i := range all {
		c := &all[i]
		if contains(page.Find, c.Title, c.Name, c.User, c.VHost, c.State(), c.Client.Product) {
			page.List = append(page.List, *c)
		}
	}
	page.List, page.Cut = ui.CutOf(page.List, tab, r.URL.Query(), "page")
	return page.draw, err
}

// contains reports whether one of the texts contains what somebody searches for.
func contains(find string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(find)) })
}

// onePage is the content of the page of a connection.
type onePage struct {
	connection
	MayClose bool
	Now      int64
}

func (p Pages) connection(r *http.Request, v ui.Visitor) (ui.View, error) {
	name := r.URL.Query().Get("name")
	all, err := p.gather(r.Context(), v)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(c connection) bool { return c.Name == name })
	if i < 0 {
		return nil, operate.ErrNotFound
	}
	page := &onePage{connection: all[i], MayClose: all[i].User == v.Name || v.Has(operate.Administrator), Now: p.Operations.State().NowMillis}
	return page.draw, nil
}

// consumersPage is the content of the page of all consumers.
type consumersPage struct {
	Find    string
	List    []operate.Consumer
	Cut     ui.Cut
	All     int
	Now     int64
	Sharing map[channel]int   // consumers of each
	Waiting map[uint64]int    // ready messages, by queue
	Rates   map[channel]rates // of their channels
}

func (p Pages) consumers(r *http.Request, v ui.Visitor) (ui.View, error) {
	all, err := operate.Holders(p.Operations.Access, v.Actor, operate.QueueName{})
	page := &consumersPage{Find: r.URL.Query().Get("q"), All: len(all), Now: p.Operations.State().NowMillis}
	for i := range all {
		c := &all[i]
		if contains(page.Find, c.Queue.Name, c.Queue.VHost().Name(), c.Tag, c.Client.Name, c.Connection, c.User) {
			page.List = append(page.List, *c)
		}
	}
	page.List, page.Cut = ui.CutOf(page.List, consumers, r.URL.Query(), "page")
	if err == nil {
		err = p.work(r.Context(), v, page)
	}
	return page.draw, err
}

// work adds how much the consumers of a page do, and how many messages wait for them.
func (p Pages) work(ctx context.Context, v ui.Visitor, page *consumersPage) error {
	queues, err := p.Operations.ListQueues(ctx, v.Actor)
	if err != nil {
		return err
	}
	found, err := p.Operations.ListConnections(ctx, v.Actor)
	if err != nil {
		return err
	}
	page.Waiting, page.Rates, page.Sharing = map[uint64]int{}, map[channel]rates{}, map[channel]int{}
	for i := range page.List {
		c := &page.List[i]
		page.Waiting[c.Queue.ID] = 0
		page.Sharing[channel{c.Connection, c.Channel}]++
	}
	for _, q := range queues {
		if _, listed := page.Waiting[q.ID]; listed {
			page.Waiting[q.ID] = q.Ready
		}
	}
	p.Operations.Rates.Refresh()
	for i := range found {
		for j := range found[i].Channels {
			ch := &found[i].Channels[j]
			page.Rates[channel{found[i].Name, ch.Number}] = p.Operations.Rates.Of(operate.ChannelCounts(&ch.Stats), ch.Identity)
		}
	}
	return nil
}

// channel names a channel of a connection.
type channel struct {
	connection string
	number     uint16
}
