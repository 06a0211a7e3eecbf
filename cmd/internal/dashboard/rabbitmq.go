package dashboard

import (
	"net/http"
	"time"

	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/changes"
	"curfew/monitor/rabbitmq"
)

// RabbitMQ is what the dashboard shows of a RabbitMQ whose deadlines are kept. *rabbitmq.Primary is one.
type RabbitMQ interface {
	Status() rabbitmq.Status
	Health() []string
}

// rabbitmqPage is what the page of a RabbitMQ shows.
type rabbitmqPage struct {
	rabbitmq.Status
	Kept, Observed, Others []rabbitmq.Queue // kept, or to be kept; observed; neither
	Here, Held             int              // queues kept here, messages held for them
	Next                   int64            // Unix ms; 0: none
	Now                    int64
}

// rabbitmqPages are the page of a RabbitMQ and its form.
type rabbitmqPages struct{ *Dashboard }

func (d rabbitmqPages) build(*http.Request, ui.Visitor) (ui.View, error) {
	p := &rabbitmqPage{Status: d.RabbitMQ.Status(), Now: time.Now().UnixMilli()}
	for _, q := range p.Queues {
		switch {
		case q.Mode == "keep" && (q.State == "exact" || q.State == "not_worth"):
			p.Others = append(p.Others, q)
		case q.Mode == "keep", q.Mode == "delay", q.Mode == "retry":
			p.Kept = append(p.Kept, q)
			p.Held += q.Held
			if q.Here {
				p.Here++
			}
			if q.NextDue != 0 && (p.Next == 0 || q.NextDue < p.Next) {
				p.Next = q.NextDue
			}
		default:
			p.Observed = append(p.Observed, q)
		}
	}
	return p, nil
}

// allow lets a queue be kept again that Curfew let go.
func (d rabbitmqPages) allow(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	if _, err := changes.Do(r.Context(), d.Changes, v.Actor(), changes.AllowQueue, changes.Kept{Queue: r.PostFormValue("queue")}); err != nil {
		d.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, ui.At("/rabbitmq", "said", "kept"), http.StatusSeeOther)
}
