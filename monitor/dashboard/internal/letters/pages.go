package letters

import (
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/monitor"
	"curfew/monitor/dashboard/internal/ui"
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
	exportPath  = "/dead-letters/export"
	savePath    = "/dead-letters/filters"
	forgetPath  = "/dead-letters/filters/delete"
	cancelPath  = "/dead-letters/cancel"
)

// longRequest is how long a file, or a search of a large queue, may take.
const longRequest = 30 * time.Minute

// Pages of dead letters. All fields are required.
type Pages struct {
	Operations *operate.Operations
	Forecasts  func() []monitor.Forecast // of the queues in which deadlines wait
	Site       ui.Site
	Log        *zap.Logger
}

// Group has the pages and their forms.
func (d Pages) Group() ui.Group {
	const tab = "/dead-letters"
	return ui.Group{
		Pages: map[string]ui.Page{
			"/dead-letters": {Title: "Dead letters", Tab: tab, Live: true, Build: d.queues},
			listPath:        {Title: "Dead letters", Tab: tab, Build: d.list},
			messagePath:     {Title: "Dead letter", Tab: tab, Build: d.message},
			EditPath:        {Title: "Change", Tab: tab, Build: d.edit},
			"/purge":        {Title: "Delete", Tab: tab},
			"/replay":       {Title: "Replay", Tab: tab},
			"/review":       {Title: "Review", Tab: tab},
		},
		Changes: map[string]ui.Handler{
			replayPath: d.replay, purgePath: d.purge, EditPath: d.change, cancelPath: d.cancelReplay, savePath: d.saveFilter, forgetPath: d.deleteFilter,
			exportPath: d.exportChosen,
		},
		Uploads: map[string]ui.Handler{ImportPath: d.importLetters},
		Files:   map[string]ui.Handler{exportPath: d.exportLetters, bodyPath: d.body},
	}
}

// URL is the page of a queue's dead letters.
func URL(vhost, name string) string { return ui.At(listPath, "vhost", vhost, "name", name) }

// FindURL is the page of a queue's dead letters that a query selects.
func FindURL(vhost, name string, q deadletters.Query) string {
	return ui.With(listPath, url.Values(q), "vhost", vhost, "name", name)
}

// takeTime gives a request more time than others have.
func takeTime(w http.ResponseWriter) {
	c, until := http.NewResponseController(w), time.Now().Add(longRequest)
	_ = c.SetWriteDeadline(until) // a writer without deadlines needs none
	_ = c.SetReadDeadline(until)
}

// chosen are the messages that a form is about.
type chosen struct {
	VHost, Queue string
	Query        deadletters.Query
	Filter       deadletters.Filter
	None         bool // rows should have been selected, and none is
	Wrong        error
}

// chosenBy reads a form: the rows that are selected in it, or all that its filter matches.
func chosenBy(form url.Values) chosen {
	c := chosen{VHost: form.Get("vhost"), Queue: form.Get("name"), Query: deadletters.QueryOf(form)}
	if form.Get("of") == "selected" {
		c.Query = deadletters.Query{}
		if c.None = len(form["pick"]) == 0; !c.None {
			c.Query["seq"], c.Query["queue_id"] = form["pick"], form["queue_id"]
		}
	}
	filter, wrong := c.Query.Filter(time.Now())
	c.Filter = filter
	for field, err := range wrong {
		c.Wrong = &fieldError{field, err}
	}
	return c
}

// fieldError is a mistake in a field.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }

func (c *chosen) at() operate.QueueName { return operate.QueueName{VHost: c.VHost, Name: c.Queue} }

func (c *chosen) letters() operate.DeadLetters {
	return operate.DeadLetters{Queue: c.at(), Filter: c.Filter}
}

// stopped answers a request about messages that cannot be chosen.
func (d Pages) stopped(w http.ResponseWriter, r *http.Request, v ui.Visitor, c *chosen) bool {
	switch {
	case c.None:
		form := r.PostForm
		page, err := d.listPage(r.Context(), v.Actor(), listQuery(form))
		if err != nil {
			d.Site.Refuse(w, r, err)
			return true
		}
		page.Problem = "Select messages first: tick their boxes."
		d.Site.Show(w, r, http.StatusOK, v, listPath, page)
		return true
	case c.Wrong != nil:
		d.Site.Fail(w, r, http.StatusBadRequest, c.Wrong.Error())
		return true
	}
	return false
}

// listQuery is the query in the address of the list that a form is on.
func listQuery(form url.Values) url.Values {
	q := url.Values(deadletters.QueryOf(form))
	delete(q, "queue_id")
	for _, name := range []string{"vhost", "name", "after", "order"} {
		if form.Get(name) != "" {
			q.Set(name, form.Get(name))
		}
	}
	return q
}
