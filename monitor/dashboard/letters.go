package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"
)

// lettersTime bounds the groups and the search of one page.
const lettersTime = 10 * time.Second

// letterPage is what the page of a queue's dead letters shows.
type letterPage struct {
	VHost, Queue string
	Filter       LetterFilter
	Filtered     bool
	Groups       []letterGroup
	Letters      []shownLetter
	Refused      bool // the user may not read the queue
	TooLong      bool
	After        string // URL of the next page
	First        string // URL of the first page; "" this is it
	Bodies       bool
	Toggle       string
	Now          int64
	Reasons      []string
	Export       string // URL of what fits, as a file
	Done         string // what was just done; "" nothing
}

// letterGroup is a group with the link that shows it alone.
type letterGroup struct {
	Group
	URL   string
	Share int // of 100, of the largest group
}

// shownLetter is a dead letter with its body as text.
type shownLetter struct {
	shownMessage
	Deaths  []Death
	Last    *Death // nil: it never died
	Edit    string // where it is changed and replayed; "" not by this user
	Replays int64
}

// plan is a replay that was tried: what it would do, to be confirmed.
type plan struct {
	Order ReplayOrder
	Run   Replay
}

func letterFilter(v url.Values) LetterFilter {
	return LetterFilter{Reason: v.Get("reason"), Queue: v.Get("died_in"), Exchange: v.Get("exchange"), MessageID: v.Get("message_id"), Body: v.Get("body")}
}

func (d *Dashboard) letters(r *http.Request, v visitor) (view, error) {
	q := r.URL.Query()
	p, err := d.letterPage(r.Context(), v.User, q)
	if errors.Is(err, ErrForbidden) {
		p.Refused = true
		return p, nil
	}
	return p, err
}

func (d *Dashboard) letterPage(ctx context.Context, u User, q url.Values) (*letterPage, error) {
	p := &letterPage{
		VHost: q.Get("vhost"), Queue: q.Get("name"), Filter: letterFilter(q), Bodies: q.Get("bodies") == "1",
		Now: d.Broker.State().Now, Reasons: []string{"expired", "rejected", "maxlen", "delivery_limit"},
	}
	p.Filtered = p.Filter != LetterFilter{}
	p.Done = doneWords(q)
	q.Del("deleted") // links need not say it again
	q.Del("imported")
	q.Del("replayed")
	p.Export = with("/dead-letters/export", q, "after", "", "bodies", "")
	ctx, cancel := context.WithTimeout(ctx, lettersTime)
	defer cancel()
	groups, err := d.DeadLetters.Groups(ctx, u, p.VHost, p.Queue, LetterFilter{})
	if err == nil {
		p.group(groups, q)
		err = p.search(ctx, d.DeadLetters, u, q)
	}
	if ctx.Err() != nil {
		p.TooLong = true
		return p, nil
	}
	return p, err
}

// doneWords say what the redirect to this page comes from.
func doneWords(q url.Values) string {
	for _, did := range []string{"deleted", "imported", "replayed"} {
		if n, err := strconv.Atoi(q.Get(did)); err == nil {
			return plural(n, "message") + " " + did + "."
		}
	}
	return ""
}

// group links each group to its letters.
func (p *letterPage) group(groups []Group, q url.Values) {
	const most = 50
	for _, g := range groups[:min(len(groups), most)] {
		link := url.Values{"vhost": q["vhost"], "name": q["name"]}
		p.Groups = append(p.Groups, letterGroup{
			Group: g, URL: with("/dead-letter", link, "reason", g.Reason, "died_in", g.Queue, "exchange", g.Exchange),
			Share: max(g.Messages*100/max(groups[0].Messages, 1), 1),
		})
	}
}

func (p *letterPage) search(ctx context.Context, from DeadLetters, u User, q url.Values) error {
	after, _ := strconv.ParseUint(q.Get("after"), 10, 64)
	bodyBytes := 0
	if p.Bodies {
		bodyBytes = peekBody
	}
	list, next, err := from.Search(ctx, u, p.VHost, p.Queue, p.Filter, after, peekRows, bodyBytes)
	if err != nil {
		return err
	}
	for i := range list {
		l := shownLetter{shownMessage: showMessage(list[i].Message, i+1), Deaths: list[i].Deaths, Replays: list[i].Replays}
		if len(l.Deaths) > 0 {
			l.Last = &l.Deaths[0]
		}
		if u.Admin && !l.Unacked {
			l.Edit = editURL(p.VHost, p.Queue, l.Seq)
		}
		p.Letters = append(p.Letters, l)
	}
	if next != 0 {
		p.After = with("/dead-letter", q, "after", strconv.FormatUint(next, 10))
	}
	if after != 0 {
		p.First = with("/dead-letter", q, "after", "")
	}
	toggled := "1"
	if p.Bodies {
		toggled = ""
	}
	p.Toggle = with("/dead-letter", q, "bodies", toggled)
	return nil
}

// replay tries a replay and shows what it would do, or, confirmed, begins it.
func (d *Dashboard) replay(w http.ResponseWriter, r *http.Request, v visitor) {
	o, err := replayOrder(r)
	if err != nil {
		d.fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	run, err := d.DeadLetters.Replay(r.Context(), v.User, o)
	switch {
	case errors.Is(err, ErrForbidden):
		d.fail(w, r, http.StatusForbidden, "This user may not read that queue, or not publish where its messages go.")
	case errors.Is(err, ErrGone):
		d.fail(w, r, http.StatusNotFound, "The queue is not there any more.")
	case err != nil:
		d.fail(w, r, http.StatusBadRequest, err.Error())
	case o.DryRun:
		d.pages["/replay"].write(w, r, http.StatusOK, v, &plan{o, run})
	default:
		d.log.Info("replay begun", zap.String("user", v.Name), zap.String("vhost", o.VHost), zap.String("queue", o.Queue), zap.String("id", run.ID))
		http.Redirect(w, r, "/dead-letters", http.StatusSeeOther)
	}
}

func replayOrder(r *http.Request) (ReplayOrder, error) {
	if err := r.ParseForm(); err != nil {
		return ReplayOrder{}, fmt.Errorf("the form cannot be read: %w", err)
	}
	f := r.PostForm
	o := ReplayOrder{
		VHost: f.Get("vhost"), Queue: f.Get("name"), Filter: letterFilter(f), TTL: f.Get("ttl"), To: f.Get("to"),
		KeepDeaths: f.Get("keep_deaths") == "1", DryRun: f.Get("confirmed") != "1",
	}
	var err error
	if text := f.Get("limit"); text != "" {
		if o.Limit, err = strconv.Atoi(text); err != nil || o.Limit < 0 {
			return o, fmt.Errorf("at most: %q is no number of messages", text)
		}
	}
	if text := f.Get("rate"); text != "" {
		if o.Rate, err = strconv.ParseFloat(text, 64); err != nil || !(o.Rate >= 0) {
			return o, fmt.Errorf("a second: %q is no rate", text)
		}
	}
	return o, nil
}
