package letters

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// runsPage lists the operations that take long.
type runsPage struct {
	Runs []operate.Run
	Cut  ui.Cut
}

func (d Pages) runs(r *http.Request, v ui.Visitor) (ui.View, error) {
	list, err := d.listRuns(r, v)
	p := &runsPage{}
	p.Runs, p.Cut = ui.CutOf(list, runsPath, r.URL.Query(), "page")
	return p, err
}

// listRuns returns the runs that the visitor may see: those that run, and then the others, the newest first.
func (d Pages) listRuns(r *http.Request, v ui.Visitor) ([]operate.Run, error) {
	list, err := d.Operations.ListRuns(r.Context(), v.Actor())
	slices.SortStableFunc(list, func(a, b operate.Run) int {
		if aRuns := a.State == deadletters.Running; aRuns != (b.State == deadletters.Running) {
			return map[bool]int{true: -1, false: 1}[aRuns]
		}
		return b.Started.Compare(a.Started)
	})
	return list, err
}

func (d Pages) cancelRun(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	if _, err := d.Operations.CancelRun(r.Context(), v.Actor(), r.PostFormValue("id")); err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, runsPath, http.StatusSeeOther)
}

func (p *runsPage) Draw(s *ui.Info) ui.Drawing {
	top := g.Group{h.H1(g.Text("Runs")), h.P(h.Class("faint"), g.Text("Replays, purges and imports that run, and the last that have ended."))}
	if len(p.Runs) == 0 {
		return ui.Drawing{Top: top, Live: g.Group{ui.Only(g.Text("Nothing runs, and nothing has ended since the start."))}}
	}
	return ui.Drawing{Top: top, Live: g.Group{drawRuns(s, p.Runs, nil), p.Cut.DrawIfCut("run")}}
}

func drawRuns(s *ui.Info, runs []operate.Run, aside g.Node) g.Node {
	return ui.Card("runs", "Runs", aside,
		ui.Table([]string{"What", "Queue", "State", "Progress", "#Done", "Left", "By", "Started (UTC)", ""}, g.Map(runs, func(r operate.Run) g.Node { return drawRun(s, &r) })))
}

// kinds are the operations that are runs, in words.
var kinds = map[operate.Operation]string{
	operate.StartReplay: "Replay", operate.PurgeDeadLetters: "Purge", operate.PurgeQueue: "Purge", operate.ImportDeadLetters: "Import", operate.ImportDefinitions: "Definitions",
}

func drawRun(s *ui.Info, r *operate.Run) g.Node {
	done, left, percent := ui.Number(r.Done), ui.Faint("none"), 100
	if replay, is := r.Result.(*deadletters.Replay); is {
		done = ui.Number(replay.Replayed) + " of " + ui.Number(replay.Matched)
		left, percent = stayed(replay.Skipped), int(100*replay.Share())
	} else if r.Total > 0 {
		done += " of " + ui.Number(r.Total)
		percent = min(r.Done*100/r.Total, 100)
	}
	share := strconv.Itoa(percent)
	progress := h.Progress(h.Max("100"), h.Value(share), h.Aria("label", share+" of 100"), g.Text(share+" %"))
	if r.State == deadletters.Running && r.Total == 0 {
		progress = h.Progress(h.Aria("label", "not known"))
	}
	class := map[deadletters.State]string{deadletters.Running: "tag warn", deadletters.Done: "tag good"}[r.State]
	if class == "" {
		class = "tag bad"
	}
	return h.Tr(
		h.Td(g.Text(kinds[r.Operation])), h.Td(g.If(r.Queue != "", ui.Link(URL(r.VHost, r.Queue), ui.Name(r.Queue)))),
		h.Td(ui.Class(class, g.Text(string(r.State))), g.If(r.Err != nil, g.Group{g.Text(" "), ui.Class("bad", ui.Name(problem(r.Err)))})),
		h.Td(progress), ui.Amount(g.Text(done)), h.Td(left),
		h.Td(g.If(r.User != "", ui.Name(r.User))), h.Td(h.Time(g.Text(ui.Instant(r.Started)))),
		h.Td(g.If(r.State == deadletters.Running, s.Change(cancelPath, "", ui.Hidden("id", r.ID), ui.Button("Cancel")))))
}

// problem is the text of an error; nil has none.
func problem(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// stayed shows how many messages were skipped, and why.
func stayed(skipped map[deadletters.SkipReason]int) g.Node {
	if len(skipped) == 0 {
		return ui.Faint("none")
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		reasons = append(reasons, strconv.Itoa(skipped[why])+" "+skippedWords(string(why)))
	}
	return g.Text(strings.Join(reasons, ", "))
}
