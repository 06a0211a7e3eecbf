package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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

// AsProblem turns an error of the broker into RabbitMQ's answer.
func AsProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		return exceptionProblem(e)
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{http.StatusRequestEntityTooLarge, "payload_too_large", fmt.Sprintf("the body is longer than %d bytes", e.Limit)}
	}
	if e, ok := errors.AsType[*memory.Exceeded](err); ok {
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", e.Error() + "; try again"}
	}
	if e, ok := errors.AsType[*operate.MissingRole](err); ok {
		return &Problem{http.StatusUnauthorized, "not_authorised", refusals[e.Role]}
	}
	if e, ok := errors.AsType[*operate.Wrong](err); ok && e.Text == "" {
		return &Problem{http.StatusBadRequest, "bad_request", append([]any{e.Code}, e.About...)}
	}
	for i := range problems {
		one := &problems[i]
		text, is := one.is(err)
		switch {
		case !is:
		case one.reason != "":
			return &Problem{one.status, one.kind, one.reason}
		case one.escaped:
			return &Problem{one.status, one.kind, escapes.Replace(text)}
		default:
			return &Problem{one.status, one.kind, text}
		}
	}
	return &Problem{http.StatusInternalServerError, "internal_error", err.Error()}
}

// problems are the answers for errors, the first that matches counts. Without a reason it is the text of the error.
var problems = []struct {
	is      func(error) (text string, is bool)
	status  int
	kind    string
	reason  string
	escaped bool
}{
	{is: as[*policy.Invalid], status: http.StatusBadRequest, kind: "bad_request", escaped: true},
	{is: as[policy.MissingKeys], status: http.StatusBadRequest, kind: "bad_request", escaped: true},
	{is: as[*operate.Wrong], status: http.StatusBadRequest, kind: "bad_request"},
	{is: as[*operate.Stale], status: http.StatusConflict, kind: "conflict"},
	{is: as[*operate.Protected], status: http.StatusPreconditionFailed, kind: "precondition_failed"},
	{is: as[*operate.Invalid], status: http.StatusBadRequest, kind: "bad_request"},
	{is: as[*deadletters.FilterError], status: http.StatusBadRequest, kind: "bad_request"},
	{is: as[*operate.Missing], status: http.StatusNotFound, kind: "not_found"},
	{is: as[*operate.Unavailable], status: http.StatusServiceUnavailable, kind: "service_unavailable"},
	{is: as[*deadletters.Stays], status: http.StatusConflict, kind: "skipped"},
	{is: as[*deadletters.Unconfirmed], status: http.StatusConflict, kind: "unconfirmed"},
	{is: oneOf(operate.ErrTooManyRuns, operate.ErrNoAnswer, deadletters.ErrBlocked), status: http.StatusServiceUnavailable, kind: "service_unavailable"},
	{is: as[*deadletters.ImportError], status: http.StatusBadRequest, kind: "bad_request"},
	{is: oneOf(operate.ErrNotManual, operate.ErrTooLate, operate.ErrChanged, deadletters.ErrRedeclared, deadletters.ErrRunning, deadletters.ErrOwner), status: http.StatusConflict, kind: "conflict"}, // ErrRedeclared may be in an ErrRequest
	{is: oneOf(operate.ErrQueueFull, deadletters.ErrRequest, deadletters.ErrDraft, access.ErrInvalid), status: http.StatusBadRequest, kind: "bad_request"},
	{is: oneOf(operate.ErrNoVHost, operate.ErrNotFound), status: ErrNotFound.Status, kind: ErrNotFound.Kind, reason: "Not Found"},
	{is: oneOf(operate.ErrNoEntry), status: http.StatusUnauthorized, kind: "not_authorised", reason: "User not authorised to access virtual host"},
	{is: oneOf(operate.ErrNotYours), status: http.StatusUnauthorized, kind: "not_authorised", reason: "User not authorised to access object"},
	{is: oneOf(operate.ErrMessageGone, operate.ErrNotWaiting, operate.ErrNoLock), status: http.StatusNotFound, kind: "not_found"},
	{is: oneOf(broker.ErrNoUser, broker.ErrNoVHost), status: http.StatusBadRequest, kind: "bad_request", reason: "vhost_or_user_not_found"},
	{is: oneOf(broker.ErrPolicyParameter), status: http.StatusBadRequest, kind: "bad_request", escaped: true},
	{is: oneOf(broker.ErrFull), status: http.StatusServiceUnavailable, kind: "service_unavailable", reason: "no room for persistent messages; consume messages or make room"},
}

// as finds an error of a type in another, and its text.
func as[E error](err error) (text string, is bool) {
	e, is := errors.AsType[E](err)
	if is {
		text = e.Error()
	}
	return text, is
}

// oneOf finds one of some errors in another, whose text counts.
func oneOf(list ...error) func(error) (text string, is bool) {
	return func(err error) (string, bool) {
		return err.Error(), slices.ContainsFunc(list, func(one error) bool { return errors.Is(err, one) })
	}
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

// escapes escapes text as RabbitMQ does where it repeats the terms that it refuses: brackets, but not quotes.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// exceptionProblem is the answer for an exception that would close a channel.
func exceptionProblem(e *amqp.Exception) *Problem {
	_, text, _ := strings.Cut(e.Text, " - ") // without the name of the code
	switch e.Code {
	case amqp.AccessRefused:
		return errRefused
	case amqp.NotFound:
		return &Problem{http.StatusNotFound, "not_found", text}
	}
	return &Problem{http.StatusBadRequest, "bad_request", text}
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
