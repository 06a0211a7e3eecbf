package node

import (
	"encoding/json"
	"errors"
	"net/http"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/monitor/changes"
	"curfew/monitor/incident"
)

// change is a request that changes something. Body is what it has as JSON, which may be nothing.
type change[Q any] struct {
	*http.Request
	c    *changes.Changes
	by   operate.Actor
	body Q
}

// none is the body of a request without one.
type none = struct{}

// maxChange bounds the body of a request, in bytes.
const maxChange = 64 << 10

// changing makes the handler of a change, for apiRoutes. What do returns is written as JSON with the status, or the error with a status of its own.
func changing[Q any](do func(*change[Q]) (status int, body any, err error)) func(*Node, *opsEndpoints) http.Handler {
	return func(n *Node, _ *opsEndpoints) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxChange)
			asked := &change[Q]{Request: r, c: n.changes, by: operate.ActorFrom(r.Context())}
			status, body, err := http.StatusNoContent, any(nil), asked.read()
			if err == nil {
				status, body, err = do(asked)
			}
			if err != nil {
				p := problemOf(err)
				status, body = p.Status, map[string]any{"error": p.Kind, "reason": p.Reason}
			}
			if status == http.StatusNoContent {
				w.WriteHeader(status)
				return
			}
			answer(w, status, body)
		})
	}
}

// read reads the body, a JSON object without unknown fields.
func (c *change[Q]) read() error {
	if c.ContentLength == 0 {
		return nil
	}
	decoder := json.NewDecoder(c.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&c.body)
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); err == nil || tooLong {
		return err
	}
	return rest.Bad(err.Error())
}

// problemOf is the answer for an error of a change.
func problemOf(err error) *rest.Problem {
	if missing, ok := errors.AsType[*changes.NotFound](err); ok {
		return rest.NewProblem(http.StatusNotFound, "not_found", missing.Error())
	}
	if away, ok := errors.AsType[*changes.Unavailable](err); ok {
		return rest.NewProblem(http.StatusServiceUnavailable, "service_unavailable", away.Error())
	}
	return rest.AsProblem(err)
}

// doing is changing for a change that answers nothing.
func doing[Q any](do func(*change[Q]) error) func(*Node, *opsEndpoints) http.Handler {
	return changing(func(r *change[Q]) (int, any, error) { return http.StatusNoContent, nil, do(r) })
}

// testSinks sends a test to one sink or, without a body, to all.
func testSinks(r *change[incident.TestRequest]) (int, any, error) {
	tested, err := r.c.TestSinks(r.Context(), r.by, r.body.Sink)
	results := incident.TestResults{Sinks: make(map[string]string)}
	for _, t := range tested {
		results.Sinks[t.Sink] = "ok"
		if t.Err != nil {
			results.Sinks[t.Sink] = t.Err.Error()
		}
	}
	return http.StatusOK, results, err
}

// addWindow adds a maintenance window.
func addWindow(r *change[incident.WindowRequest]) (int, any, error) {
	w, err := r.body.WindowOf()
	if err != nil {
		return 0, nil, rest.Bad(err.Error())
	}
	made, err := r.c.AddWindow(r.by, w)
	return http.StatusCreated, made, err
}

// allowedQueue names a queue that is to be kept again.
type allowedQueue struct {
	Queue string `json:"queue"`
}

// allowQueue lets a queue be kept again that Curfew let go.
func allowQueue(r *change[allowedQueue]) (int, any, error) {
	if r.body.Queue == "" {
		return 0, nil, rest.Bad("the field queue is missing")
	}
	return http.StatusOK, r.body, r.c.AllowQueue(r.Context(), r.by, r.body.Queue)
}
