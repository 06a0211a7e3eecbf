package rest

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"curfew/broker/memory"
	"curfew/broker/operate"
)

// Route is a path and method of the API.
type Route struct {
	Method, Path string
	Op           operate.Operation // whose rule says what it requires; "": Need does
	Need         operate.Role
	Handle       func(*Request) error
	Body         int64                // the longest body, in bytes; 0: MaxBody
	Weight       int64                // bytes of memory that each byte of the body takes until it is answered; 0: that of JSON
	First        func(*Request) error // called before the body is read; nil: nothing is
	Doc          Doc
}

// Role is the role that the route requires.
func (one *Route) Role() operate.Role {
	if one.Op != "" {
		return operate.Rules[one.Op].Role
	}
	return one.Need
}

// allowed lists a path's methods as RabbitMQ orders them.
func (s *Server) allowed(path string) string {
	var names []string
	for _, m := range []string{"HEAD", "GET", "PUT", "POST", "DELETE", "OPTIONS"} {
		_, has := s.methods[path][strings.Replace(m, "HEAD", "GET", 1)]
		if has || m == "OPTIONS" {
			names = append(names, m)
		}
	}
	return strings.Join(names, ", ")
}

// serve answers a request for a path.
func (s *Server) serve(path string, w http.ResponseWriter, r *http.Request) {
	defer s.recover(w, r)
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	one, ok := s.methods[path][method]
	if !ok {
		w.Header().Set("Allow", s.allowed(path))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusOK)
			return
		}
		answerError(w, &Problem{http.StatusMethodNotAllowed, "method_not_allowed", r.Method + " is not for this path; " + s.allowed(path) + " are"})
		return
	}
	s.answer(&one, w, r)
}

// ClockHeader has in each answer what a manual clock shows, in Unix ms: what the times in the answer count from. Without a manual clock there is none.
const ClockHeader = "Curfew-Now"

// NoteHeader has in each answer what the user should know about it, in words: that lists are empty because the user may look into no virtual host.
const NoteHeader = "Curfew-Note"

// answer authenticates, checks what the route requires, and runs the handler.
func (s *Server) answer(one *Route, w http.ResponseWriter, r *http.Request) {
	req := &Request{server: s, Operations: s.Operations, W: w, HTTP: r, pattern: one.Path}
	limit := cmp.Or(one.Body, MaxBody)
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if s.Broker.Manual != nil {
		w.Header().Set(ClockHeader, strconv.FormatInt(s.Broker.UnixMillis(s.Broker.Now()), 10))
	}
	err := req.authenticate()
	if err == nil {
		if note := s.Operations.Nowhere(req.Actor); note != "" {
			w.Header().Set(NoteHeader, note)
		}
		err = req.permit(one)
	}
	if err == nil && one.First != nil {
		err = one.First(req)
	}
	if err == nil {
		req.Account = s.Broker.Clients.Open(req.Actor.Name, req.cutOff)
		defer func() {
			if req.left.Load() == nil {
				req.release()
			}
		}()
		err = req.payBody(one, limit)
	}
	if err == nil {
		err = one.Handle(req)
	} else if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // or net/http reads the body before it answers
	}
	if err == nil {
		return
	}
	if AsProblem(err).Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.Log.Error("management request failed", zap.String("method", r.Method), zap.String("path", one.Path), zap.Error(err))
	}
	answerError(w, err)
}

// parsedWeight is about the most memory that a byte of JSON takes, in bytes: "[0,0]".
const parsedWeight = 16

// MessageWeight is the weight of a route whose body has a message: its payload is in memory as received, in the object, as text, as bytes and in
// the store.
const MessageWeight = 5

// payBody draws from the budget of all clients what the body will take, before it is read. A
// body that takes more than half of the budget draws half, and only one such body is read at a
// time.
func (r *Request) payBody(one *Route, limit int64) error {
	if r.HTTP.ContentLength > limit {
		return &http.MaxBytesError{Limit: limit}
	}
	weight, most := cmp.Or(one.Weight, parsedWeight), int64(math.MaxInt64)
	if all := r.Account.Budget.Limit; all > 0 {
		most = all / 2
	}
	if r.HTTP.ContentLength < 0 { // unknown
		r.HTTP.Body = &paidBody{r.HTTP.Body, r, weight, most}
		return nil
	}
	if r.HTTP.ContentLength > most/weight {
		if err := r.beginLong(); err != nil {
			return err
		}
	}
	return r.Account.Take(min(r.HTTP.ContentLength*weight, most))
}

// longWait is how long a request with a body above half of the budget waits for another one.
const longWait = 5 * time.Second

// beginLong waits for the turn of requests with a body above half of the budget.
func (r *Request) beginLong() error {
	wait := time.NewTimer(longWait)
	defer wait.Stop()
	select {
	case r.server.long <- struct{}{}:
		r.long = true
		return nil
	case <-wait.C:
		return &Problem{http.StatusServiceUnavailable, "service_unavailable", "another long request is being answered; try again"}
	case <-r.HTTP.Context().Done():
		return r.HTTP.Context().Err()
	}
}

func (r *Request) endLong() {
	if r.long {
		r.long = false
		<-r.server.long
	}
}

// paidBody is a body of unknown length. Its memory is drawn from the budget as it arrives.
type paidBody struct {
	io.ReadCloser
	r            *Request
	weight, left int64 // left: it may draw this many bytes more
}

func (b *paidBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	due := int64(n) * b.weight
	if due > b.left && !b.r.long {
		if refused := b.r.beginLong(); refused != nil {
			return 0, refused
		}
	}
	due = min(due, b.left)
	b.left -= due
	if refused := b.r.Account.Take(due); refused != nil {
		return 0, refused
	}
	return n, err
}

// cutOff ends a request that must give way to others.
func (r *Request) cutOff(error) {
	if run := r.left.Load(); run != nil {
		run.Cancel()
		return
	}
	c := http.NewResponseController(r.W)
	_ = c.SetReadDeadline(time.Unix(1, 0)) // an error means that the client is gone already
	_ = c.SetWriteDeadline(time.Unix(1, 0))
}

// ReadBody reads the body, for which payBody was called.
func (r *Request) ReadBody() ([]byte, error) {
	if r.HTTP.ContentLength < 0 {
		var read parts
		to := bufio.NewWriterSize(&read, partBytes)
		if _, err := io.Copy(to, r.HTTP.Body); err != nil {
			return nil, err
		}
		_ = to.Flush()
		return bytes.Join(read, nil), nil
	}
	b := make([]byte, r.HTTP.ContentLength)
	_, err := io.ReadFull(r.HTTP.Body, b)
	return b, err
}

// parts are a body as it is read. A goroutine that copies one that is long as a whole, as io.ReadAll does when it has outgrown its memory, lets no
// other run meanwhile: for a tenth of a second, where fresh pages of memory are slow.
type parts [][]byte

const partBytes = 64 << 10

func (p *parts) Write(b []byte) (int, error) {
	*p = append(*p, bytes.Clone(b))
	return len(b), nil
}

// recover turns a panic, which would be a bug, into one failed request.
func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		s.Log.Error("panic while serving a management request; please report it", zap.String("method", r.Method), zap.Any("panic", v), zap.Stack("stack"))
		answerError(w, &Problem{http.StatusInternalServerError, "internal_error", "internal error"})
	}
}

// Request is a request that is being answered. For one goroutine.
type Request struct {
	HTTP       *http.Request
	W          http.ResponseWriter
	Actor      operate.Actor // the user
	Operations *operate.Operations
	Account    *memory.Account
	server     *Server
	pattern    string                           // the route's path
	long       bool                             // it holds the turn of beginLong
	left       atomic.Pointer[operate.Underway] // the run that goes on after the answer; nil: none does
	uploaded   chan struct{}                    // closed when the run has read the body; nil: no run reads it
}

// Param is a part of the path, unescaped. If there is an escaped
// path, chi matches that one, and its parts are still escaped.
func (r *Request) Param(name string) string {
	v := chi.URLParam(r.HTTP, name)
	if r.HTTP.URL.RawPath == "" {
		return v
	}
	plain, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return plain
}

// QueueNamed is the name of the queue in the path.
func (r *Request) QueueNamed() operate.QueueName {
	return operate.QueueName{VHost: r.Param("vhost"), Name: r.Param("queue")}
}

// longRequest is how long a request that reads a large queue or a file, or that has a long answer, may take.
const longRequest = 30 * time.Minute

// TakeTime lets the request last longer than others.
func (r *Request) TakeTime() {
	c, until := http.NewResponseController(r.W), time.Now().Add(longRequest)
	_ = c.SetWriteDeadline(until) // a writer without deadlines needs none
	_ = c.SetReadDeadline(until)
}

// Accepts reports whether the client accepts JSON.
func (r *Request) Accepts() bool {
	accept := r.HTTP.Header.Values("Accept")
	if len(accept) == 0 {
		return true
	}
	return slices.ContainsFunc(strings.Split(strings.Join(accept, ","), ","), func(part string) bool {
		kind, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		return kind == "*/*" || kind == "application/*" || kind == "application/json" || kind == ""
	})
}
