package letters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"curfew/broker/deadletters"
	"curfew/monitor"
	"curfew/monitor/dashboard/internal/ui"
)

// dryRunTime bounds a dry run. For a queue that takes longer there is the command.
const dryRunTime = 2 * time.Minute

// plan is the dry run of a replay, which the user is to confirm.
type plan struct {
	chosen
	Order deadletters.Request
	Form  *ui.Form
	Run   deadletters.Replay
	// Forecasts are those of the virtual host's queues in which deadlines wait, by name.
	Forecasts map[string]monitor.Forecast
}

// replay makes a dry run and shows its result, or starts the replay if it is confirmed.
func (d Pages) replay(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	c := chosenBy(r.PostForm)
	if d.stopped(w, r, v, &c) {
		return
	}
	p := &plan{chosen: c, Form: ui.NewForm(r.PostForm)}
	p.read()
	confirmed := r.PostFormValue("confirmed") == "1"
	p.Order.DryRun = !confirmed
	if !p.Form.OK() {
		d.Site.Show(w, r, http.StatusBadRequest, v, "/replay", p)
		return
	}
	takeTime(w)
	ctx, cancel := context.WithTimeout(r.Context(), dryRunTime)
	defer cancel()
	run, err := d.Operations.StartReplay(ctx, v.Actor(), p.Order)
	switch {
	case err != nil && ctx.Err() != nil && r.Context().Err() == nil:
		d.Site.Fail(w, r, http.StatusServiceUnavailable, "The dry run took too long and was stopped. Narrow the filter, or use curfew dlq replay.")
	case errors.Is(err, deadletters.ErrRequest) && !errors.Is(err, deadletters.ErrRedeclared):
		p.Form.Wrong("to", err.Error())
		d.Site.Show(w, r, http.StatusBadRequest, v, "/replay", p)
	case err != nil:
		d.Site.Refuse(w, r, err)
	case !confirmed:
		p.Run, p.Order = run, run.Request
		p.Forecasts = make(map[string]monitor.Forecast)
		for _, f := range d.Forecasts() {
			if f.VHost == p.VHost {
				p.Forecasts[f.Queue] = f
			}
		}
		d.Site.Show(w, r, http.StatusOK, v, "/replay", p)
	default:
		http.Redirect(w, r, "/dead-letters", http.StatusSeeOther)
	}
}

// read reads the options of a replay from its form.
func (p *plan) read() {
	f := p.Form
	p.Order = deadletters.Request{
		VHost: p.VHost, Queue: p.Queue, Filter: p.Filter,
		Options: deadletters.Options{To: f.Get("to"), TTL: f.Get("ttl"), KeepDeaths: f.Get("keep_deaths") == "1"},
	}
	o := &p.Order
	if o.To == deadletters.ToExchange {
		o.Exchange, o.Key = f.Get("to_exchange"), f.Get("to_key")
	}
	if err := o.Position.UnmarshalText([]byte(f.Get("position"))); err != nil {
		f.Wrong("to", err.Error())
	}
	var err error
	if text := strings.TrimSpace(f.Get("ttl_of")); o.TTL == deadletters.TTLMillis {
		lasts, err := time.ParseDuration(text)
		if err != nil || lasts < time.Millisecond {
			f.Wrong("ttl_of", fmt.Sprintf("write a time such as 10m, not %q", text))
		}
		o.Millis = lasts.Milliseconds()
	}
	if o.Limit, err = strconv.Atoi(cmp.Or(strings.TrimSpace(f.Get("limit")), "0")); err != nil || o.Limit < 0 {
		f.Wrong("limit", fmt.Sprintf("%q is not a number of messages", f.Get("limit")))
	}
	if o.Rate, err = strconv.ParseFloat(cmp.Or(strings.TrimSpace(f.Get("rate")), "0"), 64); err != nil || !(o.Rate >= 0) {
		f.Wrong("rate", fmt.Sprintf("%q is not a rate", f.Get("rate")))
	}
}
