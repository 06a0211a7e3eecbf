package history

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Answer is a Read as JSON. Arrays have an entry for each point; null is a point of which nothing is known.
type Answer struct {
	From      int64      `json:"from"`                // Unix s, of the first point
	Step      int64      `json:"step"`                // s, from one point to the next
	Depth     []*int64   `json:"depth"`               // the most messages in that time
	AtRisk    []*int64   `json:"at_risk"`             // the most of them that were at risk
	Published []*int64   `json:"published,omitempty"` // messages in that time; absent beside RabbitMQ
	Delivered []*int64   `json:"delivered,omitempty"` // likewise
	Expired   []*int64   `json:"expired"`             // messages in that time
	Meant     []*int64   `json:"meant"`               // of these, how many were meant to, by what their queues were for
	Late      []*int64   `json:"late"`                // of these, how many were late
	Lateness  []*float64 `json:"lateness_p99_ms"`     // how late 99 in 100 of the expired messages were, in the worst second
	Marks     []Mark     `json:"marks,omitzero"`      // what happened in the whole time; absent: the same as in the answer that had this version
	Version   int64      `json:"marks_version"`       // for ?marks= of the next request
}

// Handler answers GET requests with the history in JSON: of all queues together, or with ?vhost= and ?queue= of one. ?span= is how far back it
// goes, from 1m to 24h, such as 6h; 1h if it is missing. ?points= is the most points that it has, 1 to 1440, which is also the default.
//
//	{"from": 1700000000, "step": 10,
//	 "depth": [12, null, 9], "at_risk": [...],
//	 "published": [...], "delivered": [...], "expired": [...], "meant": [...], "late": [...],
//	 "lateness_p99_ms": [...],
//	 "marks_version": 1700000012346, "marks": [{"at": 1700000012345, "kind": "alert", "text": "...", "vhost": "/", "queue": "orders", "about": "4f1c09a2b3d4", "page": "/incidents#incident-4f1c09a2b3d4"}]}
//
// Point n begins at from + n × step, in Unix seconds. depth and at_risk are the most in that time; published, delivered, expired and, of
// these, meant and late count the messages of that time; lateness_p99_ms is how late 99 in 100 of the expired messages were, in its worst second. null is a point of
// which nothing is known. Beside RabbitMQ there is no published and no delivered. A mark's kind is started, alert, alert_over, redis_lost,
// redis_back, policy, change, consumers_gone, consumers_back or deploy; page is the path of the dashboard's page about it. With ?marks= and the marks_version of an earlier answer for the same span and queue, marks are
// left out unless there are new ones since. The interval that has not ended is left out. 400 means a wrong parameter, 404 a queue without a history.
func (h *History) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		want, err := request(r)
		if err != nil {
			refuse(w, http.StatusBadRequest, "bad_request", err.Error())
			return
		}
		got := h.Read(want)
		switch {
		case got.Full:
			refuse(w, http.StatusNotFound, "not_found", fmt.Sprintf("%d queues have a history, and this is not one of them", maxQueues))
			return
		case !got.Known:
			refuse(w, http.StatusNotFound, "not_found", fmt.Sprintf("nothing has happened in a queue of that name in virtual host %q since Curfew started", want.VHost))
			return
		}
		_ = json.NewEncoder(w).Encode(h.answer(&got)) // it fails only if the client is gone
	})
}

func refuse(w http.ResponseWriter, status int, kind, reason string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": kind, "reason": reason})
}

// request reads the query.
func request(r *http.Request) (want Request, err error) {
	q := r.URL.Query()
	want = Request{VHost: q.Get("vhost"), Queue: q.Get("queue"), Span: time.Hour, Points: 0}
	if text := q.Get("span"); text != "" {
		if want.Span, err = time.ParseDuration(text); err != nil || want.Span < time.Minute || want.Span > keep {
			return want, fmt.Errorf("span: %q is invalid: want 1m to 24h, such as 6h", text)
		}
	}
	if text := q.Get("points"); text != "" {
		if want.Points, err = strconv.Atoi(text); err != nil || want.Points < 1 || want.Points > totalLengths[2] {
			return want, fmt.Errorf("points: %q is invalid: want 1 to %d", text, totalLengths[2])
		}
	}
	if text := q.Get("marks"); text != "" {
		if want.Marks, err = strconv.ParseInt(text, 10, 64); err != nil {
			return want, fmt.Errorf("marks: %q is invalid: want the marks_version of an earlier answer", text)
		}
	}
	if want.Queue != "" && want.VHost == "" {
		want.VHost = "/"
	}
	return want, nil
}

func (h *History) answer(r *Read) *Answer {
	column := func(of func(p *Point) int64) []*int64 {
		list := make([]*int64, len(r.Points))
		for i := range r.Points {
			if p := &r.Points[i]; p.Known {
				list[i] = new(of(p))
			}
		}
		return list
	}
	a := &Answer{
		From: r.From, Step: r.Step, Marks: r.Marks, Version: r.Version, Lateness: make([]*float64, len(r.Points)),
		Depth:   column(func(p *Point) int64 { return p.Depth }),
		AtRisk:  column(func(p *Point) int64 { return p.AtRisk }),
		Expired: column(func(p *Point) int64 { return p.Expired }),
		Meant:   column(func(p *Point) int64 { return p.Meant }),
		Late:    column(func(p *Point) int64 { return p.Late }),
	}
	if h.Traffic {
		a.Published = column(func(p *Point) int64 { return p.Published })
		a.Delivered = column(func(p *Point) int64 { return p.Delivered })
	}
	for i := range r.Points {
		if p := &r.Points[i]; p.Known {
			a.Lateness[i] = new(float64(p.Lateness.Microseconds()) / 1000)
		}
	}
	return a
}
