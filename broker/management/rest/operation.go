package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-chi/chi/v5"

	"curfew/broker/deadletters"
	"curfew/broker/memory"
	"curfew/broker/operate"
)

// own is what the paths begin with that RabbitMQ does not have.
const own = "/api/curfew/"

// Derived returns the routes of the operations that have some.
func Derived(ops []*operate.Op) (table []Route) {
	for _, op := range ops {
		if op.ByHand {
			continue
		}
		routes := slices.SortedFunc(slices.Values(op.Routes), func(a, b string) int { return len(a) - len(b) }) // the first has the plain name in the document
		for _, route := range routes {
			table = append(table, derived(op, route, false))
		}
		if op.One != "" {
			table = append(table, derived(op, op.One, true))
		}
	}
	return table
}

// WithoutBroker serves a table of derived routes that need no broker. The actor is in the request's context.
func WithoutBroker(o *operate.Operations, table []Route) http.Handler {
	mux := chi.NewRouter()
	s, unlimited := &Server{Turns: make(Turns, turns)}, memory.New(0)
	for _, one := range table {
		mux.MethodFunc(one.Method, one.Path, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
			req := &Request{HTTP: r, W: w, Actor: operate.ActorFrom(r.Context()), Operations: o, server: s, pattern: one.Path}
			req.Account = unlimited.Open(req.Actor.Name, func(error) {})
			defer req.Account.Close()
			err := req.permit(&one)
			if err == nil {
				err = one.Handle(req)
			}
			if err != nil {
				answerError(w, err)
			}
		})
	}
	return mux
}

// Served is a route of an operation that answers in a way of its own.
func Served(op *operate.Op, route string, answer func(r *Request, request any) error) Route {
	method, path, _ := strings.Cut(route, " ")
	r := Route{Method: method, Path: path, Op: op.Name, Body: op.Body}
	if op.Body > 0 {
		r.Weight = MessageWeight
	}
	isOwn := strings.HasPrefix(path, own)
	if isOwn {
		r.Doc = docOf(op, &r)
	}
	r.Handle = func(req *Request) error {
		values, err := req.values(op, method, isOwn)
		if err != nil {
			return err
		}
		request, err := op.Decode(values)
		if err != nil {
			return err
		}
		if op.Slow {
			req.TakeTime()
		}
		return answer(req, request)
	}
	return r
}

func derived(op *operate.Op, route string, one bool) Route {
	return Served(op, route, func(req *Request, request any) error {
		if op.Long {
			return req.Run(op.Name, operate.QueueName{VHost: req.Param("vhost"), Name: req.Param("queue")}, func(ctx context.Context) (any, error) {
				result, _, err := req.Operations.Do(ctx, req.Actor, op, request, nil)
				return result, err
			}, req.Answer)
		}
		result, created, err := req.Operations.Do(operate.WithMemory(req.HTTP.Context(), req.Account), req.Actor, op, request, nil)
		if errors.Is(err, operate.ErrNoVHost) && req.HTTP.Method == http.MethodPut {
			return ErrNoVHost
		}
		if err != nil {
			return err
		}
		return req.derived(op, result, created, one, strings.HasPrefix(req.pattern, own))
	})
}

// bodied reports whether requests with a method have a body.
func bodied(method string) bool { return method == http.MethodPut || method == http.MethodPost }

// values are the values of a request's fields, from its path, its query and its body.
func (r *Request) values(op *operate.Op, method string, isOwn bool) (values Fields, err error) {
	values = Fields{}
	if bodied(method) {
		if values, err = r.fields(op); err == nil {
			err = values.Need(r.needed(op)...)
		}
		if err != nil {
			return nil, err
		}
		for name := range values {
			if isOwn && method == http.MethodPost && op.Field(name) == nil { // a filter with a wrong name would be none
				return nil, Bad(fmt.Sprintf("json: unknown field %q", name))
			}
		}
	}
	query := r.HTTP.URL.Query()
	for _, f := range op.Fields {
		switch {
		case f.Own && !isOwn:
			values[f.Name] = "" // not the default
		case f.Kind == operate.Filter && query.Has(f.Name):
			text, _ := values[f.Name].(string)
			values[f.Name] = string(deadletters.Filter(text).And(deadletters.Filter(query.Get(f.Name))))
		case f.Own || !bodied(method) && (isOwn || method == http.MethodDelete):
			delete(values, f.Name)
			if query.Has(f.Name) {
				values[f.Name] = query.Get(f.Name)
			}
			if f.Kind == operate.Flag && !isOwn { // RabbitMQ: any other word is no
				values[f.Name] = query.Get(f.Name) == "true"
			}
		}
		if strings.Contains(r.pattern, "{"+f.Name+"}") {
			values[f.Name] = r.Param(f.Name)
		}
	}
	return values, nil
}

// needed are the keys that the body has to have.
func (r *Request) needed(op *operate.Op) (keys []string) {
	for _, f := range op.Fields {
		if f.Key && !strings.Contains(r.pattern, "{"+f.Name+"}") {
			keys = append(keys, f.Name)
		}
	}
	return keys
}

// derived answers with the result of an operation: RabbitMQ's requests that change something get no body.
func (r *Request) derived(op *operate.Op, result any, created, one, isOwn bool) error {
	rows := operate.Rows(result)
	if replay, is := result.(deadletters.Replay); is && op.Begins && !replay.DryRun {
		r.W.Header().Set("Location", RunsPath+"/"+replay.ID)
		AnswerJSON(r.W, http.StatusAccepted, replay)
		return nil
	}
	switch {
	case op.IsList && one:
		if len(rows) == 0 {
			return ErrNotFound
		}
		return r.One(object(op, rows[0]))
	case op.IsList:
		return r.Rows(len(rows), func(i int) Object { return object(op, rows[i]) })
	case op.IsPage:
		return r.Answer(result)
	case op.Makes:
		AnswerJSON(r.W, http.StatusCreated, object(op, result))
		return nil
	case !isOwn && r.HTTP.Method != http.MethodGet, rows == nil:
		return r.Put(created, nil)
	}
	return r.Answer(object(op, result))
}

// object is a row in an answer. An error in it is as the answer to the request that failed.
func object(op *operate.Op, row any) Object {
	o := op.Object("api", row)
	for name, v := range o {
		if f, is := v.(operate.Failure); is && f.Err != nil {
			status, failure := problemObject(f.Err)
			failure["status"] = status
			o[name] = failure
		}
	}
	return o
}

// docOf is what the API's document says about an operation.
func docOf(op *operate.Op, route *Route) Doc {
	d := Doc{ID: idOf(op.Name), Summary: op.Title, Text: op.Text, Rows: op.IsList && op.One != route.Method+" "+route.Path, Created: op.Makes}
	var body []reflect.StructField
	for _, f := range op.Fields {
		if strings.Contains(route.Path, "{"+f.Name+"}") || !f.On("api") {
			continue
		}
		if f.Own || !bodied(route.Method) {
			d.Query = append(d.Query, Parameter{Name: f.Name, Text: f.Doc, Value: zeroOf(f.Kind), OneOf: f.OneOf})
			continue
		}
		body = append(body, reflect.StructField{
			Name: "F" + strconv.Itoa(len(body)), Type: typeOf(&f), Tag: reflect.StructTag(`json:` + strconv.Quote(f.Name) + ` doc:` + strconv.Quote(f.Doc)),
		})
	}
	if body != nil {
		d.Body = reflect.New(reflect.StructOf(body)).Elem().Interface()
	}
	result := op.Result
	if d.Empty = result.Kind() == reflect.Pointer; d.Empty {
		result = result.Elem()
	}
	switch {
	case op.Begins:
		d.Accepted = reflect.New(result).Elem().Interface()
	case op.Long:
		d.Accepted = operate.Run{}
	}
	if op.IsList && !d.Rows {
		result = result.Elem()
	}
	if result.Kind() != reflect.Struct || result.NumField() > 0 {
		d.Answer = reflect.New(result).Elem().Interface()
	}
	return d
}

// idOf is a name for generated clients: "set_user_tags" becomes "setUserTags".
func idOf(name operate.Operation) string {
	parts := strings.Split(string(name), "_")
	for i := range parts[1:] {
		text := []rune(parts[i+1])
		text[0] = unicode.ToUpper(text[0])
		parts[i+1] = string(text)
	}
	return strings.ReplaceAll(strings.Join(parts, ""), "Rabbitmq", "RabbitMQ")
}

func zeroOf(k operate.Kind) any {
	switch k {
	case operate.Number, operate.Span, operate.Instant, operate.Shown, operate.Confirm:
		return int64(0)
	case operate.Fraction:
		return 0.0
	case operate.Flag:
		return false
	}
	return ""
}

// typeOf is the type of a field in the document. A list may also be one text.
func typeOf(f *operate.Field) reflect.Type {
	switch f.Kind {
	case operate.List:
		return reflect.TypeFor[[]string]()
	case operate.Object:
		return reflect.TypeFor[Object]()
	}
	return reflect.TypeOf(zeroOf(f.Kind))
}
