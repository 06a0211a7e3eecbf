package management

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/memory"
	"curfew/broker/policy"
)

// object is a JSON object.
type object = map[string]any

// problem is an answer that says no.
type problem struct {
	status int
	kind   string // the field error
	reason any    // a text, or a list as RabbitMQ has it
}

func (p *problem) Error() string {
	text, ok := p.reason.(string)
	if !ok {
		return p.kind
	}
	return p.kind + ": " + text
}

var (
	errNotFound      = &problem{http.StatusNotFound, "Object Not Found", "Not Found"}
	errNoVHost       = &problem{http.StatusNotFound, "not_found", "vhost_not_found"}
	errRefused       = &problem{http.StatusUnauthorized, "not_authorised", "Access refused."}
	errNotAcceptable = &problem{http.StatusNotAcceptable, "not_acceptable", "answers are application/json"}
	errNotJSON       = &problem{http.StatusBadRequest, "bad_request", "not_json"}
)

func bad(reason any) error { return &problem{http.StatusBadRequest, "bad_request", reason} }

func unauthorised(reason string) error {
	return &problem{http.StatusUnauthorized, "not_authorised", reason}
}

// asProblem finds RabbitMQ's words for an error of the broker's.
func asProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		return exceptionProblem(e)
	}
	if e, ok := errors.AsType[*policy.Invalid](err); ok {
		return &problem{http.StatusBadRequest, "bad_request", e.Error()}
	}
	if e, ok := errors.AsType[policy.MissingKeys](err); ok {
		return &problem{http.StatusBadRequest, "bad_request", e.Error()}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &problem{http.StatusRequestEntityTooLarge, "payload_too_large", err.Error()}
	}
	if e, ok := errors.AsType[*memory.Exceeded](err); ok {
		return &problem{http.StatusServiceUnavailable, "service_unavailable", e.Error() + "; try again"}
	}
	switch {
	case errors.Is(err, broker.ErrNoUser), errors.Is(err, broker.ErrNoVHost):
		return &problem{http.StatusBadRequest, "bad_request", "vhost_or_user_not_found"}
	case errors.Is(err, access.ErrInvalid), errors.Is(err, broker.ErrPolicyParameter):
		return &problem{http.StatusBadRequest, "bad_request", err.Error()}
	case errors.Is(err, broker.ErrFull):
		return &problem{http.StatusServiceUnavailable, "service_unavailable", "no room for persistent messages; consume messages or make room"}
	}
	return &problem{http.StatusInternalServerError, "internal_error", err.Error()}
}

// exceptionProblem answers what would have closed a channel.
func exceptionProblem(e *amqp.Exception) *problem {
	text := plainText(e)
	switch e.Code {
	case amqp.AccessRefused:
		return errRefused
	case amqp.NotFound:
		return &problem{http.StatusNotFound, "not_found", text}
	}
	return &problem{http.StatusBadRequest, "bad_request", text}
}

// plainText is an exception's text without the code's name.
func plainText(e *amqp.Exception) string {
	_, text, _ := strings.Cut(e.Text, " - ")
	return text
}

// answerError writes an error as RabbitMQ does.
func answerError(w http.ResponseWriter, err error) {
	p := asProblem(err)
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answerJSON(w, p.status, object{"error": p.kind, "reason": p.reason})
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // a client that is gone needs no answer
}

// answer is 200 with one value.
func (q *request) answer(body any) error {
	if !q.accepts() {
		return errNotAcceptable
	}
	answerJSON(q.w, http.StatusOK, body)
	return nil
}

// done is 204: there is nothing to say.
func (q *request) done() error {
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// put is the answer to a PUT: 201 where something is new, else 204.
func (q *request) put(created bool) error {
	if created {
		q.w.WriteHeader(http.StatusCreated)
		return nil
	}
	return q.done()
}
