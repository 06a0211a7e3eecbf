package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/memory"
	"curfew/broker/operate"
	"curfew/broker/policy"
)

// Object is a JSON object.
type Object = map[string]any

// Problem is an answer that refuses a request or reports an error.
type Problem struct {
	Status int
	Kind   string // the field error
	Reason any    // a text, or a list as RabbitMQ has it
}

// NewProblem is an answer with a status, a kind and a reason.
func NewProblem(status int, kind string, reason any) *Problem { return &Problem{status, kind, reason} }

// Error implements error.
func (p *Problem) Error() string {
	text, ok := p.Reason.(string)
	if !ok {
		return p.Kind
	}
	return p.Kind + ": " + text
}

// Frequent problems.
var (
	ErrNotFound      = &Problem{http.StatusNotFound, "Object Not Found", "Not Found"}
	ErrNoVHost       = &Problem{http.StatusNotFound, "not_found", "vhost_not_found"}
	errRefused       = &Problem{http.StatusUnauthorized, "not_authorised", "Access refused."}
	ErrNotAcceptable = &Problem{http.StatusNotAcceptable, "not_acceptable", "answers are application/json"}
	ErrNotJSON       = &Problem{http.StatusBadRequest, "bad_request", "not_json"}
)

// Bad returns 400 with a reason.
func Bad(reason any) error { return &Problem{http.StatusBadRequest, "bad_request", reason} }

// unauthorised returns 401 with a reason.
func unauthorised(reason string) *Problem {
	return &Problem{http.StatusUnauthorized, "not_authorised", reason}
}

// AsProblem turns an error of the broker into RabbitMQ's answer.
func AsProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		return exceptionProblem(e)
	}
	if e, ok := errors.AsType[*policy.Invalid](err); ok {
		return &Problem{http.StatusBadRequest, "bad_request", Escape(e.Error())}
	}
	if e, ok := errors.AsType[policy.MissingKeys](err); ok {
		return &Problem{http.StatusBadRequest, "bad_request", Escape(e.Error())}
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{http.StatusRequestEntityTooLarge, "payload_too_large", fmt.Sprintf("the body is longer than %d bytes", e.Limit)}
	}
	if e, ok := errors.AsType[*memory.Exceeded](err); ok {
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", e.Error() + "; try again"}
	}
	if p := operationProblem(err); p != nil {
		return p
	}
	switch {
	case errors.Is(err, broker.ErrNoUser), errors.Is(err, broker.ErrNoVHost):
		return &Problem{http.StatusBadRequest, "bad_request", "vhost_or_user_not_found"}
	case errors.Is(err, access.ErrInvalid):
		return &Problem{http.StatusBadRequest, "bad_request", err.Error()}
	case errors.Is(err, broker.ErrPolicyParameter):
		return &Problem{http.StatusBadRequest, "bad_request", Escape(err.Error())}
	case errors.Is(err, broker.ErrFull):
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", "no room for persistent messages; consume messages or make room"}
	}
	return &Problem{http.StatusInternalServerError, "internal_error", err.Error()}
}

// problemObject is the status and the body of the answer to a request that failed.
func problemObject(err error) (status int, body Object) {
	p := AsProblem(err)
	body = Object{"error": p.Kind, "reason": p.Reason}
	if e, asks := errors.AsType[*deadletters.Unconfirmed](err); asks {
		body["matched"], body["position"] = e.Matched, e.Position
	}
	if e, ok := errors.AsType[*deadletters.ImportError](err); ok {
		body["imported"] = e.Imported
	}
	return p.Status, body
}

// operationProblem turns an error of an operation into RabbitMQ's answer; nil for other errors.
func operationProblem(err error) *Problem {
	if e, ok := errors.AsType[*operate.MissingRole](err); ok {
		return unauthorised(refusals[e.Role])
	}
	if e, ok := errors.AsType[*operate.OutOfRange](err); ok {
		return &Problem{http.StatusBadRequest, "bad_request", []any{"out_of_range", e.Field, e.Value}}
	}
	if e, ok := errors.AsType[*operate.Wrong](err); ok && e.Text == "" {
		return &Problem{http.StatusBadRequest, "bad_request", append([]any{e.Code}, e.About...)}
	} else if ok {
		return &Problem{http.StatusBadRequest, "bad_request", e.Text}
	}
	if e, ok := errors.AsType[*operate.Stale](err); ok {
		return &Problem{http.StatusConflict, "conflict", e.Error()}
	}
	if e, ok := errors.AsType[*operate.Protected](err); ok {
		return &Problem{http.StatusPreconditionFailed, "precondition_failed", e.Error()}
	}
	if e, ok := errors.AsType[*operate.Invalid](err); ok {
		return &Problem{http.StatusBadRequest, "bad_request", e.Reason}
	}
	if e, ok := errors.AsType[*deadletters.FilterError](err); ok {
		return &Problem{http.StatusBadRequest, "bad_request", e.Error()}
	}
	if e, ok := errors.AsType[*operate.Missing](err); ok {
		return &Problem{http.StatusNotFound, "not_found", e.Reason}
	}
	if e, ok := errors.AsType[*operate.Unavailable](err); ok {
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", e.Error()}
	}
	if e, ok := errors.AsType[*operate.Blocked](err); ok {
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", e.Error()}
	}
	if e, ok := errors.AsType[*deadletters.Unconfirmed](err); ok {
		return &Problem{http.StatusConflict, "unconfirmed", e.Error()}
	}
	if e, ok := errors.AsType[*deadletters.ImportError](err); ok && !errors.Is(err, deadletters.ErrBlocked) {
		return &Problem{http.StatusBadRequest, "bad_request", e.Error()}
	}
	switch {
	case errors.Is(err, operate.ErrTooManyRuns), errors.Is(err, operate.ErrNoAnswer):
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", err.Error()}
	case errors.Is(err, operate.ErrQueueFull):
		return &Problem{http.StatusBadRequest, "bad_request", err.Error()}
	case errors.Is(err, operate.ErrNoVHost), errors.Is(err, operate.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, operate.ErrNoEntry):
		return unauthorised("User not authorised to access virtual host")
	case errors.Is(err, operate.ErrNotYours):
		return unauthorised("User not authorised to access object")
	case errors.Is(err, operate.ErrMessageGone), errors.Is(err, operate.ErrNotWaiting), errors.Is(err, operate.ErrNoLock):
		return &Problem{http.StatusNotFound, "not_found", err.Error()}
	case errors.Is(err, operate.ErrNotManual), errors.Is(err, operate.ErrTooLate):
		return &Problem{http.StatusConflict, "conflict", err.Error()}
	case errors.Is(err, operate.ErrChanged), errors.Is(err, deadletters.ErrRedeclared), errors.Is(err, deadletters.ErrRunning), errors.Is(err, deadletters.ErrOwner):
		return &Problem{http.StatusConflict, "conflict", err.Error()}
	case errors.Is(err, deadletters.ErrBlocked):
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", err.Error()}
	case errors.Is(err, deadletters.ErrRequest), errors.Is(err, deadletters.ErrDraft):
		return &Problem{http.StatusBadRequest, "bad_request", err.Error()}
	}
	return nil
}

// Escape escapes text as RabbitMQ does where it repeats the terms that it refuses: brackets, but not quotes.
func Escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// exceptionProblem is the answer for an exception that would close a channel.
func exceptionProblem(e *amqp.Exception) *Problem {
	text := plainText(e)
	switch e.Code {
	case amqp.AccessRefused:
		return errRefused
	case amqp.NotFound:
		return &Problem{http.StatusNotFound, "not_found", text}
	}
	return &Problem{http.StatusBadRequest, "bad_request", text}
}

// plainText returns an exception's text without the name of the code.
func plainText(e *amqp.Exception) string {
	_, text, _ := strings.Cut(e.Text, " - ")
	return text
}

// answerError writes an error as RabbitMQ does.
func answerError(w http.ResponseWriter, err error) {
	status, body := problemObject(err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	AnswerJSON(w, status, body)
}

// AnswerJSON answers with a value.
func AnswerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // a client that is gone needs no answer
}

// Result answers with the result of an operation, or with its error.
func (r *Request) Result(body any, err error) error {
	if err != nil {
		return err
	}
	return r.Answer(body)
}

// Answer is 200 with one value.
func (r *Request) Answer(body any) error {
	if !r.Accepts() {
		return ErrNotAcceptable
	}
	AnswerJSON(r.W, http.StatusOK, body)
	return nil
}

// Done answers 204, or with the error of an operation that returns nothing else.
func (r *Request) Done(err error) error {
	if err != nil {
		return err
	}
	r.W.WriteHeader(http.StatusNoContent)
	return nil
}

// Put answers a PUT: 201 if something was created, 204 if not, or the error.
func (r *Request) Put(created bool, err error) error {
	if err == nil && created {
		r.W.WriteHeader(http.StatusCreated)
		return nil
	}
	return r.Done(err)
}
