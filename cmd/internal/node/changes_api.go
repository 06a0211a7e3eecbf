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

// changeHandler handles a request that changes something. The body is written as JSON with the status, or the error with a status of its own.
type changeHandler func(c *changes.Changes, r *http.Request, by operate.Actor) (status int, body any, err error)

// of makes the handler of one node. The actor is in the request's context.
func (h changeHandler) of(n *Node, _ *opsEndpoints) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxChange)
		status, body, err := h(n.changes, r, operate.ActorFrom(r.Context()))
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

// maxChange bounds the body of a request, in bytes.
const maxChange = 64 << 10

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

// readBody reads a JSON object without unknown fields.
func readBody(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); err == nil || tooLong {
		return err
	}
	return rest.Bad(err.Error())
}

// testSinks sends a test to one sink or, without a body, to all.
func testSinks(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	var asked incident.TestRequest
	if r.ContentLength != 0 {
		if err := readBody(r, &asked); err != nil {
			return 0, nil, err
		}
	}
	tested, err := c.TestSinks(r.Context(), by, asked.Sink)
	results := incident.TestResults{Sinks: make(map[string]string)}
	for _, t := range tested {
		results.Sinks[t.Sink] = "ok"
		if t.Err != nil {
			results.Sinks[t.Sink] = t.Err.Error()
		}
	}
	return http.StatusOK, results, err
}

// acknowledge takes the incident over that the path names.
func acknowledge(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	var asked incident.AckRequest
	if r.ContentLength != 0 {
		if err := readBody(r, &asked); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusNoContent, nil, c.Acknowledge(by, r.PathValue("incident"), asked)
}

// unacknowledge ends that.
func unacknowledge(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	return http.StatusNoContent, nil, c.Unacknowledge(by, r.PathValue("incident"))
}

// addWindow adds a maintenance window.
func addWindow(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	var asked incident.WindowRequest
	if err := readBody(r, &asked); err != nil {
		return 0, nil, err
	}
	w, err := asked.WindowOf()
	if err != nil {
		return 0, nil, rest.Bad(err.Error())
	}
	made, err := c.AddWindow(by, w)
	return http.StatusCreated, made, err
}

// endWindow ends the maintenance window that the path names.
func endWindow(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	return http.StatusNoContent, nil, c.EndWindow(by, r.PathValue("id"))
}

// allowedQueue names a queue that is to be kept again.
type allowedQueue struct {
	Queue string `json:"queue"`
}

// allowQueue lets a queue be kept again that Curfew let go.
func allowQueue(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	var asked allowedQueue
	if err := readBody(r, &asked); err != nil {
		return 0, nil, err
	}
	if asked.Queue == "" {
		return 0, nil, rest.Bad("the field queue is missing")
	}
	return http.StatusOK, asked, c.AllowQueue(r.Context(), by, asked.Queue)
}

// pauseRabbitMQ has everything given back, and nothing kept.
func pauseRabbitMQ(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	return http.StatusNoContent, nil, c.PauseRabbitMQ(r.Context(), by)
}

// resumeRabbitMQ ends that.
func resumeRabbitMQ(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	return http.StatusNoContent, nil, c.ResumeRabbitMQ(r.Context(), by)
}
