package management

import (
	"cmp"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"curfew/broker/memory"
)

// route is one thing the API can do.
type route struct {
	method, path string
	need         role
	handle       func(*request) error
	body         int64                // most bytes of it; 0: maxBody
	weight       int64                // memory that each takes until it is answered; 0: parsedWeight
	first        func(*request) error // asked before the body is read; nil: nothing
}

// router finds routes by path and method.
type router struct {
	paths   []string // in the order of the table
	methods map[string]map[string]route
}

func (rt *router) init(table []route) {
	rt.methods = map[string]map[string]route{}
	for _, one := range table {
		if rt.methods[one.path] == nil {
			rt.paths = append(rt.paths, one.path)
			rt.methods[one.path] = map[string]route{}
		}
		rt.methods[one.path][one.method] = one
	}
}

// allowed lists a path's methods as RabbitMQ orders them.
func (rt *router) allowed(path string) string {
	var names []string
	for _, m := range []string{"HEAD", "GET", "PUT", "POST", "DELETE", "OPTIONS"} {
		_, has := rt.methods[path][strings.Replace(m, "HEAD", "GET", 1)]
		if has || m == "OPTIONS" {
			names = append(names, m)
		}
	}
	return strings.Join(names, ", ")
}

// serve answers the requests for one path.
func (a *API) serve(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer a.recover(w, r)
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		one, ok := a.methods[path][method]
		if !ok {
			w.Header().Set("Allow", a.allowed(path))
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusOK)
				return
			}
			answerError(w, &problem{http.StatusMethodNotAllowed, "method_not_allowed", r.Method + " is not for this path; " + a.allowed(path) + " are"})
			return
		}
		a.carryOut(&one, w, r)
	}
}

// carryOut authenticates, asks for the role, and runs the handler.
func (a *API) carryOut(one *route, w http.ResponseWriter, r *http.Request) {
	q := &request{api: a, w: w, Request: r}
	limit := one.body
	if limit == 0 {
		limit = maxBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	err := q.authenticate()
	if err == nil {
		err = q.permit(one)
	}
	if err == nil && one.first != nil {
		err = one.first(q)
	}
	if err == nil {
		q.account = a.b.Clients().Open(q.user.Name, q.cutOff)
		defer q.account.Close()
		err = q.payBody(one, limit)
	}
	if err == nil {
		err = one.handle(q)
	} else if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // or net/http reads the body before it answers
	}
	if err == nil {
		return
	}
	if asProblem(err).status >= http.StatusInternalServerError && r.Context().Err() == nil {
		a.log.Error("management request failed", zap.String("method", r.Method), zap.String("path", one.path), zap.Error(err))
	}
	answerError(w, err)
}

// parsedWeight is how many bytes of memory a byte of JSON takes at most, about: "[0,0]".
const parsedWeight = 16

// payBody draws from the budget of all clients what the body will take, before it is read.
// One that takes more than half of that is let in for half.
func (q *request) payBody(one *route, limit int64) error {
	if q.ContentLength > limit {
		return &http.MaxBytesError{Limit: limit}
	}
	weight, most := cmp.Or(one.weight, parsedWeight), int64(math.MaxInt64)
	if all := q.account.Most(); all > 0 {
		most = all / 2
	}
	if q.ContentLength < 0 { // it does not say
		q.Body = &paidBody{q.Body, q.account, weight, most}
		return nil
	}
	return q.account.Take(min(q.ContentLength*weight, most))
}

// paidBody is a body of unknown length, paid for as it comes.
type paidBody struct {
	io.ReadCloser
	account      *memory.Account
	weight, left int64 // left is what it pays at most
}

func (b *paidBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	due := min(int64(n)*b.weight, b.left)
	b.left -= due
	if refused := b.account.Take(due); refused != nil {
		return 0, refused
	}
	return n, err
}

// cutOff ends a request that has to give way to others.
func (q *request) cutOff(error) {
	c := http.NewResponseController(q.w)
	_ = c.SetReadDeadline(time.Unix(1, 0)) // of a client that is gone there is nothing to end
	_ = c.SetWriteDeadline(time.Unix(1, 0))
}

// body reads what was paid for.
func (q *request) body() ([]byte, error) {
	if q.ContentLength < 0 {
		return io.ReadAll(q.Body)
	}
	b := make([]byte, q.ContentLength)
	_, err := io.ReadFull(q.Body, b)
	return b, err
}

// recover turns a panic, which would be a bug, into one failed request.
func (a *API) recover(w http.ResponseWriter, r *http.Request) {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		a.log.Error("panic while serving a management request; please report it", zap.String("method", r.Method), zap.Any("panic", v), zap.Stack("stack"))
		answerError(w, &problem{http.StatusInternalServerError, "internal_error", "internal error"})
	}
}

// request is one request under way. For one goroutine.
type request struct {
	*http.Request
	api     *API
	w       http.ResponseWriter
	user    caller
	account *memory.Account
}

// param is a part of the path, unescaped. chi matches the escaped path where there
// is one; then its parts are escaped still.
func (q *request) param(name string) string {
	v := chi.URLParam(q.Request, name)
	if q.URL.RawPath == "" {
		return v
	}
	plain, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return plain
}

// flag is a query parameter that is true or not.
func (q *request) flag(name string) bool { return q.URL.Query().Get(name) == "true" }

// accepts says whether the client takes JSON.
func (q *request) accepts() bool {
	accept := q.Header.Values("Accept")
	if len(accept) == 0 {
		return true
	}
	return slices.ContainsFunc(strings.Split(strings.Join(accept, ","), ","), func(part string) bool {
		kind, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		return kind == "*/*" || kind == "application/*" || kind == "application/json" || kind == ""
	})
}
