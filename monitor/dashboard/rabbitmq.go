package dashboard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/dashboard/internal/ui"
	"curfew/monitor/rabbitmq"
)

// RabbitMQ is what the dashboard shows of a RabbitMQ whose deadlines are kept. *rabbitmq.Primary is one.
type RabbitMQ interface {
	Status() rabbitmq.Status
	Health() []string
	Allow(ctx context.Context, queue string) error
}

// rabbitmqPage is what the page of a RabbitMQ shows.
type rabbitmqPage struct {
	rabbitmq.Status
	Kept, Observed, Others []rabbitmq.Queue // kept or to be kept; observed; neither
	Here, Held             int              // queues kept here, messages held for them
	Next                   int64            // Unix ms; 0: none
	Now                    int64
}

// rabbitmqPages are the page of a RabbitMQ and what can be done there.
type rabbitmqPages struct{ *Dashboard }

func (d rabbitmqPages) build(*http.Request, ui.Visitor) (ui.View, error) {
	p := &rabbitmqPage{Status: d.RabbitMQ.Status(), Now: time.Now().UnixMilli()}
	for _, q := range p.Queues {
		switch {
		case q.Mode == "keep" && (q.State == "exact" || q.State == "not_worth"):
			p.Others = append(p.Others, q)
		case q.Mode == "keep":
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

// allow has a queue kept again that was let go of.
func (d rabbitmqPages) allow(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	queue := r.PostFormValue("queue")
	err := d.RabbitMQ.Allow(r.Context(), queue)
	if errors.Is(err, rabbitmq.ErrNotLetGo) {
		d.fail(w, r, http.StatusNotFound, "That queue is not let go of any more: look again.")
		return
	}
	if err != nil {
		d.fail(w, r, http.StatusServiceUnavailable, "The other Curfews could not be told: "+err.Error())
		return
	}
	d.record(v, zap.String("allowed_queue", queue))
	http.Redirect(w, r, "/rabbitmq", http.StatusSeeOther)
}
