package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/policy"
)

// The bounds of a list.
const (
	defaultPageSize = 100
	maxPageSize     = 500
	MaxNameFilter   = 256 // octets of name=
)

// List answers with objects: sorted, filtered, cut into pages and reduced to
// columns as the query asks (RabbitMQ: Management HTTP API).
func (r *Request) List(items []Object) error {
	return r.Rows(len(items), func(i int) Object { return items[i] })
}

// rowBytes is the memory that a row of a list takes during the answer, in addition to its object.
const rowBytes = 128

// Rows is List for many objects: at makes the object of a row, and may be called more than once
// for it. Objects are made and written one by one, so that a long list takes as much memory as
// a short one. Two lists are made at a time; a client that does not read its list keeps nobody
// else waiting.
func (r *Request) Rows(n int, at func(i int) Object) error {
	page, err := readPage(r)
	if err != nil {
		return err
	}
	if !r.Accepts() {
		return ErrNotAcceptable
	}
	if err := r.Account.Take(int64(n) * rowBytes); err != nil {
		return err
	}
	if err := r.server.Turns.Take(r.HTTP.Context()); err != nil {
		return err
	}
	defer r.server.Turns.End()
	order := rowOrder(r, n, at, page)
	if page != nil {
		return answerPage(r, page, order, at, n)
	}
	s := r.Stream()
	s.List(len(order), func(i int) any { return r.columns(at(order[i])) })
	s.Text("\n")
	s.End()
	return nil
}

// One answers with an object, reduced to columns as the query asks.
func (r *Request) One(o Object) error { return r.Answer(r.columns(o)) }

// paging has the query's parameters for pages.
type paging struct {
	page, size int
	name       string
	pattern    *regexp.Regexp // nil: name is a plain text
}

// readPage reads the query; nil if it asks for everything.
func readPage(r *Request) (*paging, error) {
	v := r.HTTP.URL.Query()
	if !v.Has("page") {
		return nil, nil
	}
	p := &paging{size: defaultPageSize, name: v.Get("name")}
	shown := "undefined"
	var err error
	if p.page, err = strconv.Atoi(v.Get("page")); err != nil {
		return nil, Bad("Pagination parameters are invalid")
	}
	if v.Has("page_size") {
		if p.size, err = strconv.Atoi(v.Get("page_size")); err != nil {
			return nil, Bad("Pagination parameters are invalid")
		}
		shown = v.Get("page_size")
	}
	if p.page < 1 || p.size < 1 || p.size > maxPageSize {
		return nil, &Problem{http.StatusBadRequest, "invalid_pagination_parameters",
			fmt.Sprintf("Invalid pagination parameters: page number %d, page size %s", p.page, shown)}
	}
	if len(p.name) > MaxNameFilter {
		return nil, Bad("Pagination parameters are invalid")
	}
	if p.name != "" && v.Get("use_regex") == "true" {
		if p.pattern, err = policy.Linear("(?i)" + p.name); err != nil {
			return nil, Bad("Pagination parameters are invalid")
		}
	}
	return p, nil
}

func (p *paging) shows(o Object) bool {
	if p == nil || p.name == "" {
		return true
	}
	name, _ := o["name"].(string)
	if p.pattern != nil {
		return p.pattern.MatchString(name)
	}
	return strings.Contains(strings.ToLower(name), strings.ToLower(p.name))
}

// answerPage answers with a page and its number. A page beyond the last is an error, except the
// first, which may be empty.
func answerPage(r *Request, p *paging, order []int, row func(int) Object, total int) error {
	filtered, from := len(order), (p.page-1)*p.size
	if from >= filtered && p.page > 1 {
		return &Problem{http.StatusBadRequest, "page_out_of_range",
			fmt.Sprintf("Page out of range, page: %d page size: %d, len: %d", p.page, p.size, filtered)}
	}
	items := []Object{}
	for _, i := range order[from:min(from+p.size, filtered)] {
		items = append(items, r.columns(row(i)))
	}
	return r.Answer(Object{
		"page": p.page, "page_count": (filtered + p.size - 1) / p.size, "page_size": p.size,
		"filtered_count": filtered, "item_count": len(items), "total_count": total, "items": items,
	})
}

// rowOrder returns the rows to show, sorted by the field that sort= names, if any. It keeps only
// the sort key of each object.
func rowOrder(r *Request, n int, row func(int) Object, p *paging) []int {
	v := r.HTTP.URL.Query()
	var path []string
	if by := v.Get("sort"); by != "" {
		path = strings.Split(by, ".")
	}
	order := make([]int, 0, n)
	var keys []any // by row
	if path != nil {
		keys = make([]any, n)
	}
	whole := path == nil && (p == nil || p.name == "")
	for i := range n {
		if !whole {
			o := row(i)
			if !p.shows(o) {
				continue
			}
			if path != nil {
				keys[i] = sortKey(at(o, path))
			}
		}
		order = append(order, i)
	}
	if path != nil {
		slices.SortStableFunc(order, func(a, b int) int { return compare(keys[a], keys[b]) })
	}
	if v.Get("sort_reverse") == "true" {
		slices.Reverse(order)
	}
	return order
}

// sortKey returns a number, or the text of any other value.
func sortKey(v any) any {
	if n, ok := Number(v); ok {
		return n
	}
	if text, ok := v.(string); ok {
		return text
	}
	return fmt.Sprint(v)
}

// at returns the value under a path of keys, or nil.
func at(v any, path []string) any {
	for _, key := range path {
		o, ok := v.(Object)
		if !ok {
			return nil
		}
		v = o[key]
	}
	return v
}

// compare orders numbers, then texts.
func compare(a, b any) int {
	x, isX := a.(float64)
	y, isY := b.(float64)
	switch {
	case isX && isY:
		return cmp.Compare(x, y)
	case isX:
		return -1
	case isY:
		return 1
	}
	return cmp.Compare(a.(string), b.(string))
}

// Number returns the value as a number; false if it is not one.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case uint16:
		return float64(v), true
	case Rate:
		return float64(v), true
	}
	return 0, false
}

// columns reduces an object to the fields that columns= names. A dot separates the names of
// nested fields, except in arguments, whose keys may have dots.
func (r *Request) columns(o Object) Object {
	v := r.HTTP.URL.Query()
	if !v.Has("columns") {
		return o
	}
	cut := Object{}
	for column := range strings.SplitSeq(v.Get("columns"), ",") {
		keep(cut, o, strings.Split(column, "."))
	}
	return cut
}

func keep(to, from Object, path []string) {
	v, ok := from[path[0]]
	if !ok {
		return
	}
	inner, nested := v.(Object)
	if len(path) == 1 || !nested || path[0] == "arguments" {
		to[path[0]] = v
		return
	}
	into, ok := to[path[0]].(Object)
	if !ok {
		into = Object{}
	}
	keep(into, inner, path[1:])
	if len(into) > 0 {
		to[path[0]] = into
	}
}

// Rate is a number that is always written with a fraction, as strict clients require.
type Rate float64

// MarshalJSON writes 0 as 0.0.
func (r Rate) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(r))
	if err == nil && !strings.ContainsAny(string(b), ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}
