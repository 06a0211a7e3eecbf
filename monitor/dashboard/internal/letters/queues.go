package letters

import (
	"net/http"
	"slices"
	"strings"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/ui"
)

// queuesPage is the content of the page of dead letters.
type queuesPage struct {
	Find    string
	Queues  []*deadletters.Queue
	Cut     ui.Cut
	All     int // queues
	Total   int // messages
	Replays []deadletters.Replay
}

const maxReplays = 10 // that the page lists

func (d Pages) queues(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	l := &queuesPage{Find: q.Get("q")}
	all, err := d.Operations.ListDeadLetterQueues(r.Context(), v.Actor(), "")
	if err != nil {
		return nil, err
	}
	if l.Replays, err = d.Operations.ListReplays(r.Context(), v.Actor()); err != nil {
		return nil, err
	}
	find := strings.ToLower(l.Find)
	for _, q := range all {
		l.Total += q.Ready + q.Unacked
		if strings.Contains(strings.ToLower(q.Queue), find) {
			l.Queues = append(l.Queues, q)
		}
	}
	l.All = len(all)
	l.Queues, l.Cut = ui.CutOf(l.Queues, "/dead-letters", q, "page")
	slices.Reverse(l.Replays)
	l.Replays = l.Replays[:min(len(l.Replays), maxReplays)]
	return l, nil
}

// share is how much of a replay is done, of 100.
func share(r *deadletters.Replay) int {
	if r.Total == 0 || r.State == deadletters.Done {
		return 100
	}
	return min(r.Scanned*100/r.Total, 100)
}

func (d Pages) cancelReplay(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	if _, err := d.Operations.CancelReplay(r.Context(), v.Actor(), r.PostFormValue("id")); err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, "/dead-letters", http.StatusSeeOther)
}
