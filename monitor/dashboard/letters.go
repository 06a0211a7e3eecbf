package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/monitor/dashboard/internal/content"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

// lettersTime bounds the time for the groups and the search of one page.
const lettersTime = 10 * time.Second

// letterPage is what the page of a queue's dead letters shows.
type letterPage struct {
	VHost, Queue string
	Filter       letterFilter
	Filtered     bool
	Groups       []letterGroup
	Letters      []letterView
	Refused      bool // the user may not read the queue
	TooLong      bool
	After        string // URL of the next page
	First        string // URL of the first page; "" this is it
	Bodies       bool
	Toggle       string
	Now          int64
	Reasons      []string
	Export       string // URL of all that match, as a file
	May          letterRights
	Done         string // what was just done; "" for nothing
}

// letterRights is what the user may do with a queue's dead letters.
type letterRights struct{ replay, resend, purge, fill bool }

func letterRightsOf(o *operate.Operations, by operate.Actor, at operate.QueueName) letterRights {
	may := func(op operate.Operation) bool { return o.May(by, op, at) }
	return letterRights{may(operate.StartReplay), may(operate.ResendDeadLetter), may(operate.PurgeDeadLetters), may(operate.ImportDeadLetters)}
}

// letterGroup is a group with the link that shows it alone.
type letterGroup struct {
	deadletters.Group
	URL   string
	Share int // of 100, of the largest group
}

// letterView is a dead letter as the pages show it.
type letterView struct {
	messageView
	Deaths  []deadletters.Death // the latest first
	Last    *deadletters.Death  // nil: it never died
	Edit    string              // URL of the page to change and replay it; "" if this user may not
	Replays int64
}

// plan is the dry run of a replay, to be confirmed.
type plan struct {
	Order  deadletters.Request
	Filter letterFilter
	Run    deadletters.Replay
}

// letterFilter selects dead letters by the fields of a form. An empty field matches all.
type letterFilter struct{ Reason, Queue, Exchange, MessageID, Body string }

func readFilter(v url.Values) letterFilter {
	return letterFilter{Reason: v.Get("reason"), Queue: v.Get("died_in"), Exchange: v.Get("exchange"), MessageID: v.Get("message_id"), Body: v.Get("body")}
}

// filter is the letterFilter as operations take it.
func (f *letterFilter) filter() deadletters.Filter {
	return deadletters.Filter{Reason: f.Reason, Queue: f.Queue, Exchange: f.Exchange, MessageID: f.MessageID, Body: f.Body}
}

// some are the dead letters that a query or a form selects.
func some(v url.Values) operate.DeadLetters {
	f := readFilter(v)
	return operate.DeadLetters{Queue: ui.Named(v), Filter: f.filter()}
}

func (d *Dashboard) letters(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	p, err := d.letterPage(r.Context(), v.Actor(), q)
	if operate.Refused(err) {
		p.Refused = true
		return p, nil
	}
	return p, err
}

func (d *Dashboard) letterPage(ctx context.Context, by operate.Actor, q url.Values) (*letterPage, error) {
	p := &letterPage{
		VHost: q.Get("vhost"), Queue: q.Get("name"), Filter: readFilter(q), Bodies: q.Get("bodies") == "1",
		Now: d.state().NowMillis, Reasons: []string{"expired", "rejected", "maxlen", "delivery_limit"},
	}
	p.Filtered = p.Filter != letterFilter{}
	p.Done = doneWords(q)
	q.Del("deleted") // links do not repeat it
	q.Del("imported")
	q.Del("replayed")
	p.Export = ui.With("/dead-letters/export", q, "after", "", "bodies", "")
	ctx, cancel := context.WithTimeout(ctx, lettersTime)
	defer cancel()
	p.May = letterRightsOf(d.Operations, by, ui.Named(q))
	groups, err := d.Operations.GroupDeadLetters(ctx, by, operate.DeadLetters{Queue: ui.Named(q)})
	if err == nil {
		p.group(groups, q)
		err = p.search(ctx, d.Operations, by, q)
	}
	if ctx.Err() != nil {
		p.TooLong = true
		return p, nil
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

// group links each group to its letters.
func (p *letterPage) group(groups []deadletters.Group, q url.Values) {
	const most = 50
	for _, g := range groups[:min(len(groups), most)] {
		link := url.Values{"vhost": q["vhost"], "name": q["name"]}
		p.Groups = append(p.Groups, letterGroup{
			Group: g, URL: ui.With("/dead-letter", link, "reason", g.Reason, "died_in", g.Queue, "exchange", g.Exchange),
			Share: max(g.Messages*100/max(groups[0].Messages, 1), 1),
		})
	}
}

func (p *letterPage) search(ctx context.Context, from *operate.Operations, by operate.Actor, q url.Values) error {
	after, _ := strconv.ParseUint(q.Get("after"), 10, 64)
	bodyBytes := 0
	if p.Bodies {
		bodyBytes = peekBody
	}
	list, next, err := from.SearchDeadLetters(ctx, by, operate.SearchRequest{DeadLetters: some(q), After: operate.Seq(after), Count: peekRows, BodyBytes: bodyBytes})
	if err != nil {
		return err
	}
	for i := range list {
		l := viewLetter(&list[i], i+1)
		if p.May.resend && !l.Unacked {
			l.Edit = editURL(p.VHost, p.Queue, l.Seq)
		}
		p.Letters = append(p.Letters, l)
	}
	if next != 0 {
		p.After = ui.With("/dead-letter", q, "after", strconv.FormatUint(uint64(next), 10))
	}
	if after != 0 {
		p.First = ui.With("/dead-letter", q, "after", "")
	}
	p.Toggle = ui.With("/dead-letter", q, "bodies", map[bool]string{false: "1"}[p.Bodies])
	return nil
}

func viewLetter(l *operate.DeadLetter, place int) letterView {
	s := letterView{messageView: messageView{
		Seq: uint64(l.Seq), Unacked: l.Unacked(), Redelivered: l.Redelivered, Persistent: l.Persistent, Deadline: l.DeadlineMillis,
		Exchange: l.Exchange, RoutingKey: l.RoutingKey, Properties: content.Properties(&l.Properties), Headers: content.Fields(l.Properties.Headers),
		BodyBytes: l.BodyBytes, Body: l.Body, Place: place,
	}.withText(), Deaths: l.Deaths, Replays: l.Replays}
	if len(l.Deaths) > 0 {
		s.Last = &s.Deaths[0]
	}
	return s
}

// replay makes a dry run and shows its result, or starts the replay if it is confirmed.
func (d *Dashboard) replay(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	o, err := replayRequest(r.PostForm)
	if err != nil {
		d.fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	run, err := d.Operations.StartReplay(r.Context(), v.Actor(), o)
	switch {
	case err != nil:
		d.refuse(w, r, err)
	case o.DryRun:
		d.pages["/replay"].write(w, r, http.StatusOK, v, &plan{o, readFilter(r.PostForm), run})
	default:
		http.Redirect(w, r, "/dead-letters", http.StatusSeeOther)
	}
}

func replayRequest(f url.Values) (deadletters.Request, error) {
	o := deadletters.Request{
		VHost: f.Get("vhost"), Queue: f.Get("name"), Filter: some(f).Filter, DryRun: f.Get("confirmed") != "1",
		Options: deadletters.Options{TTL: f.Get("ttl"), To: f.Get("to"), KeepDeaths: f.Get("keep_deaths") == "1"},
	}
	err := o.Position.UnmarshalText([]byte(f.Get("position")))
	if err != nil {
		return o, err
	}
	if o.Limit, err = strconv.Atoi(cmp.Or(f.Get("limit"), "0")); err != nil || o.Limit < 0 {
		return o, fmt.Errorf("at most: %q is not a number of messages", f.Get("limit"))
	}
	if o.Rate, err = strconv.ParseFloat(cmp.Or(f.Get("rate"), "0"), 64); err != nil || !(o.Rate >= 0) {
		return o, fmt.Errorf("a second: %q is not a rate", f.Get("rate"))
	}
	return o, nil
}

func lettersURL(vhost, name string) string {
	return "/dead-letter?" + url.Values{"vhost": {vhost}, "name": {name}}.Encode()
}
