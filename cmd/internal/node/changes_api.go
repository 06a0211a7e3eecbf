package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/monitor/alert"
	"curfew/monitor/changes"
)

// openChanges makes the recorder, and the changes besides the broker's that the node's API and dashboard share.
func openChanges(n *Node) {
	n.recorder = operate.NewRecorder(operate.RecorderOptions{Log: n.log, Registerer: n.metrics, Changed: changesOf(n)})
	o := changes.Options{Alerts: n.alerts, Recorder: n.recorder}
	if n.rabbitmq != nil {
		o.RabbitMQ = n.rabbitmq
	}
	n.changes = changes.New(o)
}

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
	var asked alert.TestRequest
	if r.ContentLength != 0 {
		if err := readBody(r, &asked); err != nil {
			return 0, nil, err
		}
	}
	tested, err := c.TestSinks(r.Context(), by, asked.Sink)
	results := alert.TestResults{Sinks: make(map[string]string)}
	for _, t := range tested {
		results.Sinks[t.Sink] = "ok"
		if t.Err != nil {
			results.Sinks[t.Sink] = t.Err.Error()
		}
	}
	return http.StatusOK, results, err
}

// addSilence adds a silence.
func addSilence(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	var asked alert.SilenceRequest
	if err := readBody(r, &asked); err != nil {
		return 0, nil, err
	}
	if asked.Duration != "" {
		d, err := time.ParseDuration(asked.Duration)
		if err != nil {
			return 0, nil, rest.Bad(fmt.Sprintf("duration: %q is invalid: want a duration such as 30m or 8h", asked.Duration))
		}
		asked.ExpiresAt = time.Now().Add(d)
	}
	made, err := c.AddSilence(by, asked.Silence)
	return http.StatusCreated, made, err
}

// endSilence ends the silence that the path names.
func endSilence(c *changes.Changes, r *http.Request, by operate.Actor) (int, any, error) {
	return http.StatusNoContent, nil, c.EndSilence(by, r.PathValue("id"))
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
