package letters

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/monitor/dashboard/internal/content"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

const (
	// searchTime bounds the search of one page, and countTime the count of its groups unless all are asked for.
	searchTime = 10 * time.Second
	countTime  = 60 * time.Millisecond
	// listRows is how many messages one page shows, and rowBody how many bytes of each body are read for its first line.
	listRows = 50
	rowBody  = 2 << 10
	// maxLine is how many characters of a body's first line are shown.
	maxLine = 160
)

// listPage is what the page of a queue's dead letters shows.
type listPage struct {
	VHost, Queue string
	Query        deadletters.Query
	Wrong        map[string]error // by field of the query
	Groups       []group
	Counted      int  // messages that are in the groups
	Partly       bool // only the newest are counted
	Saved        []operate.SavedFilter
	Rows         []row
	Refused      bool // the user may not read the queue
	TooLong      bool
	Oldest       bool // first
	All          bool // rows are selected at first
	After        string
	First        string // URL of the first page; "": this is it
	At           url.Values
	Now          int64
	QueueID      uint64
	May          rights
	Done         string // what was just done; "": nothing
	Problem      string // what could not be done; "": nothing
}

// rights are what the user may do with a queue's dead letters.
type rights struct{ replay, resend, purge, fill, save bool }

func rightsOf(o *operate.Operations, by operate.Actor, at operate.QueueName) rights {
	may := func(op operate.Operation) bool { return o.May(by, op, at) }
	return rights{may(operate.StartReplay), may(operate.ResendDeadLetter), may(operate.PurgeDeadLetters), may(operate.ImportDeadLetters), may(operate.SaveFilter)}
}

// group is a group with the link that shows it alone.
type group struct {
	deadletters.Group
	URL   string
	Share int // of 100, of the largest group
}

// row is a dead letter in the list.
type row struct {
	Seq       uint64
	URL       string
	Unacked   bool
	ID        string // message-id
	Type, Key string
	Line      string // the first of its body
	Bytes     int
	Last      *deadletters.Death // nil: it never died
	Replays   int64
}

func (d Pages) list(r *http.Request, v ui.Visitor) (ui.View, error) {
	return d.listPage(r.Context(), v.Actor(), r.URL.Query())
}

func (d Pages) listPage(ctx context.Context, by operate.Actor, q url.Values) (*listPage, error) {
	p := &listPage{
		VHost: q.Get("vhost"), Queue: q.Get("name"), Query: deadletters.QueryOf(q), Oldest: q.Get("order") == "oldest", All: q.Get("all") == "1",
		Now: d.Operations.State().NowMillis, Done: doneWords(q),
	}
	delete(p.Query, "queue_id") // of rows that were selected
	p.At = listQuery(q)
	at := ui.Named(q)
	p.May = rightsOf(d.Operations, by, at)
	var filter deadletters.Filter
	filter, p.Wrong = p.Query.Filter(time.UnixMilli(p.Now))
	err := d.count(ctx, by, p, q.Get("count") == "all")
	if operate.Refused(err) {
		p.Refused = true
		return p, nil
	}
	if err == nil {
		p.Saved, err = d.Operations.ListFilters(ctx, by, at)
	}
	if err == nil && len(p.Wrong) == 0 {
		err = d.search(ctx, by, p, filter, q.Get("after"))
	}
	return p, err
}

// doneWords describe what was done before the redirect to this page.
func doneWords(q url.Values) string {
	for _, did := range []string{"deleted", "imported", "replayed"} {
		if n, err := strconv.Atoi(q.Get(did)); err == nil {
			return format.Plural(n, "message") + " " + did + "."
		}
	}
	return ""
}

// count groups the messages of the queue: the newest, or all of them.
func (d Pages) count(ctx context.Context, by operate.Actor, p *listPage, all bool) error {
	limited, cancel := context.WithTimeout(ctx, map[bool]time.Duration{false: countTime, true: searchTime}[all])
	defer cancel()
	groups, seen, err := d.Operations.GroupDeadLetters(limited, by, operate.DeadLetters{Queue: operate.QueueName{VHost: p.VHost, Name: p.Queue}})
	p.Counted, p.Partly = seen, err != nil && limited.Err() != nil
	if p.Partly && ctx.Err() == nil {
		err = nil
	}
	const most = 50
	link := url.Values{"vhost": {p.VHost}, "name": {p.Queue}}
	for _, g := range groups[:min(len(groups), most)] {
		p.Groups = append(p.Groups, group{
			Group: g, URL: ui.With(listPath, link, "reason", g.Reason, "died_in", g.Queue, "exchange", g.Exchange),
			Share: max(g.Messages*100/max(groups[0].Messages, 1), 1),
		})
	}
	return err
}

// search finds the rows of a page. A search that takes too long shows what it has found, and the next page goes on from there.
func (d Pages) search(ctx context.Context, by operate.Actor, p *listPage, filter deadletters.Filter, after string) error {
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	from, _ := strconv.ParseUint(after, 10, 64)
	list, next, err := d.Operations.SearchDeadLetters(limited, by, operate.SearchRequest{
		DeadLetters: operate.DeadLetters{Queue: operate.QueueName{VHost: p.VHost, Name: p.Queue}, Filter: filter},
		After:       operate.Seq(from), Newest: !p.Oldest, Count: listRows, BodyBytes: rowBody,
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		p.TooLong, err = true, nil
	}
	for i := range list {
		p.QueueID = list[i].QueueID
		p.Rows = append(p.Rows, p.row(&list[i]))
	}
	if next != 0 {
		p.After = ui.With(listPath, p.At, "after", strconv.FormatUint(uint64(next), 10))
	}
	if from != 0 {
		p.First = ui.With(listPath, p.At, "after", "")
	}
	return err
}

func (p *listPage) row(l *operate.DeadLetter) row {
	one := row{
		Seq: uint64(l.Seq), URL: ui.MessageURL(messagePath, p.VHost, p.Queue, uint64(l.Seq)), Unacked: l.Unacked(), ID: l.Properties.MessageID, Type: l.Properties.Type,
		Key: l.RoutingKey, Line: firstLine(&l.Properties, l.Body, l.BodyBytes), Bytes: l.BodyBytes, Replays: l.Replays,
	}
	if len(l.Deaths) > 0 {
		one.Last = &l.Deaths[0]
		if len(one.Last.Keys) > 0 {
			one.Key = one.Last.Keys[0]
		}
	}
	return one
}

// firstLine is the first line with text of a body, unpacked; body is its beginning.
func firstLine(p *amqp.Properties, body []byte, whole int) string {
	cut := len(body) < whole
	if deadletters.IsPacked(p.ContentEncoding) {
		plain, more, err := deadletters.Unpack(p.ContentEncoding, body, rowBody)
		if len(plain) == 0 && err != nil {
			return "(" + p.ContentEncoding + " that cannot be unpacked)"
		}
		body, cut = plain, more || err != nil
	}
	text, dumped := content.Body(body, cut)
	if dumped {
		return "(binary)"
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		text = content.Unescaped(text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) > 1 || line != "" && !strings.ContainsAny(line, "{[") { // JSON on many lines begins with a bracket
			return cutTo(line, maxLine)
		}
	}
	return cutTo(strings.TrimSpace(text), maxLine)
}

func cutTo(line string, most int) string {
	n := 0
	for i := range line {
		if n++; n > most {
			return line[:i] + "…"
		}
	}
	return line
}

// saveFilter saves the filter of a list under a name.
func (d Pages) saveFilter(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	c := chosenBy(r.PostForm)
	delete(c.Query, "queue_id")
	err := d.Operations.SaveFilter(r.Context(), v.Actor(), c.at(), operate.SavedFilter{Name: strings.TrimSpace(r.PostForm.Get("as")), Query: c.Query.String()})
	d.back(w, r, &c, err)
}

// deleteFilter deletes a saved filter.
func (d Pages) deleteFilter(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	c := chosenBy(r.PostForm)
	d.back(w, r, &c, d.Operations.DeleteFilter(r.Context(), v.Actor(), c.at(), r.PostForm.Get("filter")))
}

// back redirects to the list after a change of its filters.
func (d Pages) back(w http.ResponseWriter, r *http.Request, c *chosen, err error) {
	if err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, FindURL(c.VHost, c.Queue, c.Query), http.StatusSeeOther)
}
