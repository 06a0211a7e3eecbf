package letters

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// dryRunTime bounds a dry run. For a queue that takes longer there is the command.
const dryRunTime = 2 * time.Minute

// plan is the dry run of a replay, which the user is to confirm.
type plan struct {
	chosen
	Order operate.ReplayRequest
	Form  *ui.Form
	Run   deadletters.Replay
	// Forecast is that of a queue; nil: no deadlines wait there.
	Forecast func(vhost, queue string) *deadline.Forecast
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
		d.Site.Show(w, r, http.StatusBadRequest, v, "/replay", p.draw)
		return
	}
	takeTime(w)
	ctx, cancel := context.WithTimeout(r.Context(), dryRunTime)
	defer cancel()
	run, err := operate.StartReplay.Do(ctx, d.Operations, v.Actor, p.Order)
	switch {
	case err != nil && ctx.Err() != nil && r.Context().Err() == nil:
		d.Site.Fail(w, r, http.StatusServiceUnavailable, "The dry run took too long and was stopped. Narrow the filter, or use curfew dlq replay.")
	case errors.Is(err, deadletters.ErrRequest) && !errors.Is(err, deadletters.ErrRedeclared):
		p.Form.Wrong("to", err.Error())
		d.Site.Show(w, r, http.StatusBadRequest, v, "/replay", p.draw)
	case err != nil:
		d.Site.Refuse(w, r, err)
	case !confirmed:
		p.Run, p.Order.To = run, run.To // what is left to the operation depends on it
		p.Forecast = d.Forecast
		d.Site.Show(w, r, http.StatusOK, v, "/replay", p.draw)
	default:
		http.Redirect(w, r, runsPath, http.StatusSeeOther)
	}
}

// options are the fields of a replay that its form has.
func options() (list []operate.Field) {
	for _, f := range operate.StartReplay.Fields {
		if f.On("page") {
			list = append(list, f)
		}
	}
	return list
}

// read reads the options of a replay from its form.
func (p *plan) read() {
	values := map[string]any{}
	for _, o := range options() {
		if text := strings.TrimSpace(p.Form.Get(o.Name)); o.Kind == operate.Flag {
			values[o.Name] = text != ""
		} else if text != "" {
			values[o.Name] = text
		}
	}
	request, err := operate.StartReplay.Decode(values)
	if wrong, is := errors.AsType[*operate.Wrong](err); is {
		p.Form.Wrong(wrong.Field, ui.Sentence(wrong.Error()))
		return
	}
	p.Order = request.(operate.ReplayRequest)
	p.Order.VHost, p.Order.Queue, p.Order.Filter, p.Order.Position = p.VHost, p.Queue, p.Filter, p.Position
	if wrong, is := errors.AsType[*deadletters.OptionError](p.Order.Check()); is {
		p.Form.Wrong(wrong.Field, wrong.Text)
	}
}

// text is an option as text; "" is the default.
func (p *plan) text(o *operate.Field) string {
	v := o.Of(p.Order)
	if reflect.ValueOf(v).IsZero() {
		return ""
	}
	return operate.Plain(v)
}

func crumbs(vhost, queue string) g.Node {
	return h.P(h.Class("crumbs"), ui.Link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), ui.Link(URL(vhost, queue, ""), ui.Name(queue)), g.Text(" · virtual host "), ui.Name(vhost))
}

func (p *plan) draw(s *ui.Info) ui.Drawing {
	n, back := p.Run.Replayed, "Cancel"
	title := "Nothing would be replayed"
	switch {
	case !p.Form.OK():
		title = "Replay"
	case n > 0:
		title = "Replay " + ui.Plural(n, "message") + "?"
	}
	return ui.Drawing{Live: g.Group{
		crumbs(p.VHost, p.Queue),
		h.H1(g.Text(title)),
		g.If(p.Form.OK(), g.Group{
			g.Map(p.warnings(), func(text string) g.Node { return h.P(h.Class("problem"), g.Text(text)) }),
			s.Change(replayPath, "doing", ui.Hidden("confirmed", "1"), p.order(),
				g.If(n > 0, h.Button(h.Class("primary"), h.AutoFocus(), g.Text("Replay "+ui.Plural(n, "message")))),
				ui.Link(URL(p.VHost, p.Queue, ""), g.Text(back))),
			h.Div(h.Class("columns"),
				ui.Card("what", "What", nil, ui.Facts(
					p.chosen.facts(),
					ui.Fact("Examined", g.Text(ui.Number(p.Run.Scanned))),
					ui.Fact("Match", g.Text(ui.Number(p.Run.Matched))),
					ui.Fact("Would go", ui.Bold(ui.Number(p.Run.Replayed))),
					g.Map(slices.Sorted(maps.Keys(p.Run.Skipped)), func(why deadletters.SkipReason) g.Node {
						return ui.Fact("Would stay", g.Text(ui.Number(p.Run.Skipped[why])), g.Text(" "), ui.Faint(skippedWords(string(why))))
					}))),
				ui.Card("where", "Where they go", nil, drawTargets(p.VHost, p.Run.Targets))),
		}),
		ui.Card("how", "How", nil, p.options(s)),
	}}
}

// warnings are the reasons why a replay may be useless.
func (p *plan) warnings() (list []string) {
	for _, t := range p.Run.Targets[:min(len(p.Run.Targets), 10)] {
		name := ui.Visible(t.Queue)
		switch {
		case t.Consumers > 0 && t.Expiring == 0:
			continue
		case t.Consumers > 0 && t.FirstMillis < time.Minute.Milliseconds():
			list = append(list, "Messages that are not consumed in "+name+" within "+ui.Millis(t.FirstMillis)+" expire again"+backWords(&t, " and come")+"."+p.likely(&t))
		case t.Consumers > 0:
		case t.Expiring > 0:
			list = append(list, name+" has no consumers: "+ui.Plural(t.Expiring, "message")+" would expire there again from "+ui.Millis(t.FirstMillis)+" on"+backWords(&t, " and come")+".")
		default:
			list = append(list, name+" has no consumers: the messages would wait there.")
		}
	}
	return list
}

// likely estimates whether the messages for a queue will be consumed in time if its consumers keep their rate.
func (p *plan) likely(t *deadletters.Target) string {
	f := p.Forecast(p.VHost, t.Queue)
	if f == nil || f.Ready == 0 {
		return ""
	}
	text := " " + ui.Plural(f.Ready, "message") + " are already waiting there, "
	if f.Ready == 1 {
		text = " 1 message is already waiting there, "
	}
	if f.Rate == 0 {
		return text + "and none is consumed at present: expect them back."
	}
	takes := func(n int) int64 { return int64(float64(n) / f.Rate * 1000) }
	text += "and " + ui.PerSecond(f.Rate) + " a second are consumed. At that rate it takes " + ui.Millis(takes(f.Ready+t.Messages))
	switch {
	case takes(f.Ready+t.Messages) <= t.FirstMillis:
		return text + ": that is in time."
	case takes(f.Ready) >= t.LastMillis:
		return text + ": that is too late, so add consumers or let the messages live longer."
	}
	return text + ": for some of them that is too late."
}

// backWords are how the warning goes on if messages come back from a target.
func backWords(t *deadletters.Target, come string) string {
	if t.Back {
		return come + " back here"
	}
	return ""
}

// drawTargets lists where messages would go.
func drawTargets(vhost string, targets []deadletters.Target) g.Node {
	if len(targets) == 0 {
		return ui.Empty(g.Text("Nowhere."))
	}
	const most = 50
	return g.Group{
		ui.Table([]string{"Queue", "#Messages", "#Consumers", "Expire again"}, g.Map(targets[:min(len(targets), most)], func(t deadletters.Target) g.Node { return drawTarget(vhost, &t) })),
		g.If(len(targets) > most, h.P(h.Class("faint"), g.Text("and "+ui.Plural(len(targets)-most, "other queue")))),
	}
}

func drawTarget(vhost string, t *deadletters.Target) g.Node {
	consumers := ui.Class("tag warn", g.Text("none"))
	if t.Consumers > 0 {
		consumers = g.Text(ui.Number(t.Consumers))
	}
	expire := ui.Faint("no")
	if t.Expiring > 0 {
		text := ui.Number(t.Expiring) + " in " + ui.Millis(t.FirstMillis)
		if t.LastMillis-t.FirstMillis > 999 {
			text += " to " + ui.Millis(t.LastMillis)
		}
		expire = g.Group{ui.Class("warn", g.Text(text)), g.If(t.Back, ui.Faint(", then back here"))}
	}
	return h.Tr(h.Td(ui.Link(ui.QueueURL(vhost, t.Queue), ui.Name(t.Queue))), ui.Amount(g.Text(ui.Number(t.Messages))), ui.Amount(consumers), h.Td(expire))
}

// options is the form for another dry run with other options.
func (p *plan) options(s *ui.Info) g.Node {
	f, fields := p.Form, g.Group{}
	for _, o := range options() {
		if f.OK() {
			f.Values.Set(o.Name, p.text(&o))
		}
		fields = append(fields, option(f, &o))
	}
	return s.Change(replayPath, "filter",
		p.chosen.fields(p.chosen.Position), fields,
		ui.Button("Dry run again"),
		h.P(h.Class("faint"), g.Text("A dry run moves nothing. A message leaves this queue only when another queue has it; messages that arrive after the dry run stay.")))
}

// option is the field of an option. Its words are offered; where they are all that it may be, one of them is chosen.
func option(f *ui.Form, o *operate.Field) g.Node {
	var words []string
	for i, word := range o.OneOf {
		words = append(words, word, o.Texts[i])
	}
	switch {
	case o.Kind == operate.Flag:
		return f.Check(o.Label, o.Name)
	case o.Name == "to":
		return f.Choose(o.Label, o.Name, "", words...)
	}
	list := g.Group{g.Attr("size", strconv.Itoa(max(14, len(o.Faint)+2))), h.MaxLength("255"), h.Placeholder(o.Faint)}
	hint := ""
	if words != nil {
		list = append(list, g.Attr("list", "of-"+o.Name))
		hint = strings.Join(o.OneOf, ", ") + " or a time such as 10m"
	}
	offered := g.Group{}
	for i := 0; i < len(words); i += 2 {
		offered = append(offered, h.Option(h.Value(words[i]), g.Text(words[i+1])))
	}
	return g.Group{f.Field(o.Label, o.Name, hint, list...), g.If(words != nil, h.DataList(h.ID("of-"+o.Name), offered))}
}

// order are the hidden fields of the confirmed request.
func (p *plan) order() g.Node {
	fields := g.Group{p.chosen.fields(p.Run.Position)}
	for _, o := range options() {
		fields = append(fields, ui.HiddenIf(o.Name, p.text(&o)))
	}
	return fields
}

// skippedReasons are, in words, why a replay leaves a message where it is.
var skippedReasons = map[string]string{
	"replayed_too_often": "were replayed too often", "no_origin": "never died, so their origin is unknown",
	"no_time_left": "have no time left: choose a new time to live", "unroutable": "would reach no queue", "target_full": "found their queue full",
	"leads_back": "would come back here", "gone": "were taken or have expired", "refused": "were refused",
}

func skippedWords(reason string) string {
	if words, ok := skippedReasons[reason]; ok {
		return words
	}
	return ui.Visible(reason)
}
