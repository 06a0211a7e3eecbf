package letters

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"
	g "maragu.dev/gomponents"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// The paths of forms that may be larger than others, and their sizes in bytes.
const (
	ImportPath  = "/dead-letters/import" // takes a file
	MaxUpload   = 64 << 20
	EditPath    = "/dead-letter/edit"
	MaxEditForm = 2 << 20
)

const (
	listPath    = "/dead-letter"
	messagePath = "/dead-letters/message"
	bodyPath    = "/dead-letters/body"
	replayPath  = "/dead-letters/replay"
	purgePath   = "/dead-letters/purge"
	// queuePurgePath is for any queue.
	queuePurgePath = "/queue/purge"
	exportPath     = "/dead-letters/export"
	savePath       = "/dead-letters/filters"
	forgetPath     = "/dead-letters/filters/delete"
	runsPath       = "/runs"
)

// longRequest is how long a file, or a search of a large queue, may take.
const longRequest = 30 * time.Minute

// Pages of dead letters. All fields are required.
type Pages struct {
	Operations *operate.Operations
	Forecast   func(vhost, queue string) *deadline.Forecast // of a queue; nil: no deadlines wait there
	Site       ui.Site
	Log        *zap.Logger
}

// Group has the pages and their forms.
func (d Pages) Group() ui.Group {
	const tab = "/dead-letters"
	return ui.Group{
		Pages: map[string]ui.Page{
			"/dead-letters": {Title: "Dead letters", Tab: tab, Live: true, Build: d.queues},
			listPath: {Title: "Dead letters", Tab: tab, Build: func(r *http.Request, v ui.Visitor) (ui.View, error) {
				p, err := d.listPage(r.Context(), v.Actor, r.URL.Query())
				return p.draw, err
			}},
			messagePath:    {Title: "Dead letter", Tab: tab, Build: d.message},
			EditPath:       {Title: "Change", Tab: tab, Build: d.edit},
			queuePurgePath: {Title: "Purge", Tab: "/queues", Build: d.askPurge},
			purgePath:      {Title: "Delete", Tab: tab},
			"/replay":      {Title: "Replay", Tab: tab},
			"/review":      {Title: "Review", Tab: tab},
		},
		Changes: map[string]ui.Handler{
			replayPath: d.replay, purgePath: d.purge, queuePurgePath: d.purge, EditPath: d.change, savePath: d.changeFilter, forgetPath: d.changeFilter,
			exportPath: d.export,
		},
		Uploads: map[string]ui.Handler{ImportPath: d.importLetters},
		Files:   map[string]ui.Handler{exportPath: d.export, bodyPath: d.body},
	}
}

// URL is the page of a queue's dead letters that a filter selects; "": all.
func URL(vhost, name string, filter deadletters.Filter) string {
	return ui.With(listPath, nil, "vhost", vhost, "name", name, "filter", string(filter))
}

// takeTime gives a request more time than others have.
func takeTime(w http.ResponseWriter) {
	c, until := http.NewResponseController(w), time.Now().Add(longRequest)
	_ = c.SetWriteDeadline(until) // a writer without deadlines needs none
	_ = c.SetReadDeadline(until)
}

// chosen are the messages that a form is about.
type chosen struct {
	messages.DeadLetters
	None  bool // rows should have been selected, and none is
	Wrong error
}

// chosenBy reads a form: the rows that are selected in it, of those that were shown, or all that its filter matches.
func chosenBy(form url.Values) (c chosen) {
	c.VHost, c.Queue, c.Filter = form.Get("vhost"), form.Get("name"), deadletters.Filter(form.Get("filter"))
	position := form.Get("position")
	if form.Get("of") == "selected" {
		var seqs []operate.Seq
		for _, text := range form["pick"] {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				c.Wrong = operate.ErrMessageGone
			}
			seqs = append(seqs, operate.Seq(n))
		}
		c.None, c.Filter, position = len(seqs) == 0, deadletters.Numbered(seqs...), form.Get("shown")
	}
	if err := c.Position.UnmarshalText([]byte(position)); err != nil {
		c.Wrong = err
	} else if c.Wrong == nil {
		c.Wrong = c.Filter.Check()
	}
	return c
}

// fields are the hidden fields with which chosenBy reads the same again, as they were at a position.
func (c *chosen) fields(at deadletters.Position) g.Node {
	return g.Group{ui.Hidden("vhost", c.VHost), ui.Hidden("name", c.Queue), ui.HiddenIf("filter", string(c.Filter)), ui.HiddenIf("position", at.String())}
}

// facts say what was chosen.
func (c *chosen) facts() g.Group {
	which := ui.Faint("all that are ready now")
	if c.Filter != "" {
		which = ui.Code(string(c.Filter))
	}
	return g.Group{ui.Fact("Queue", ui.Name(c.Queue)), ui.Fact("Filter", which)}
}

// stopped answers a request about messages that cannot be chosen.
func (d Pages) stopped(w http.ResponseWriter, r *http.Request, v ui.Visitor, c *chosen) bool {
	switch {
	case c.None:
		page, err := d.listPage(r.Context(), v.Actor, listQuery(r.PostForm))
		if err != nil {
			d.Site.Refuse(w, r, err)
			return true
		}
		page.Problem = "Select messages first: tick their boxes."
		d.Site.Show(w, r, http.StatusOK, v, listPath, page.draw)
		return true
	case c.Wrong != nil:
		d.Site.Fail(w, r, http.StatusBadRequest, c.Wrong.Error())
		return true
	}
	return false
}

// listQuery is the query in the address of the list that a form is on.
func listQuery(form url.Values) url.Values {
	q := url.Values{}
	for _, name := range []string{"vhost", "name", "filter", "after", "order"} {
		if form.Get(name) != "" {
			q.Set(name, form.Get(name))
		}
	}
	return q
}

// long does what may take long as a run, which the page waits for: it can be seen and cancelled on the page of runs. done is the name of the result.
func (d Pages) long(r *http.Request, v ui.Visitor, op operate.Operation, at operate.QueueName, done string, do func(context.Context) (int, error)) (n int, err error) {
	run, err := d.Operations.Begin(v.Actor, op, at, func(ctx context.Context) (any, error) {
		var err error
		n, err = do(ctx)
		return map[string]int{done: n}, err
	})
	if err != nil {
		return 0, err
	}
	select {
	case <-run.Ended:
	case <-r.Context().Done():
		run.Cancel()
		<-run.Ended
	}
	return n, run.Err()
}
