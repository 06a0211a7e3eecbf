package management

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/pattern"
)

const (
	defaultPageSize = 100
	maxPageSize     = 500
	maxNameFilter   = 256 // octets of name=
)

// list answers with objects: sorted, filtered, cut into pages and reduced to
// columns as the query asks (RabbitMQ: Management HTTP API).
func (q *request) list(items []object) error {
	page, err := q.page()
	if err != nil {
		return err
	}
	total := len(items)
	if page != nil {
		items = page.filter(items)
	}
	q.sort(items)
	if page == nil {
		return q.answer(q.columns(items))
	}
	return q.answerPage(page, items, total)
}

// one answers with an object, reduced to columns as the query asks.
func (q *request) one(o object) error { return q.answer(q.columns([]object{o})[0]) }

// paging is what a query says of pages.
type paging struct {
	number, size int
	name         string
	pattern      *regexp.Regexp // nil: name is looked for as it is
}

// page reads the query; nil if it asks for everything.
func (q *request) page() (*paging, error) {
	v := q.URL.Query()
	if !v.Has("page") {
		return nil, nil
	}
	p := &paging{size: defaultPageSize, name: v.Get("name")}
	shown := "undefined"
	var err error
	if p.number, err = strconv.Atoi(v.Get("page")); err != nil {
		return nil, bad("Pagination parameters are invalid")
	}
	if v.Has("page_size") {
		if p.size, err = strconv.Atoi(v.Get("page_size")); err != nil {
			return nil, bad("Pagination parameters are invalid")
		}
		shown = v.Get("page_size")
	}
	if p.number < 1 || p.size < 1 || p.size > maxPageSize {
		return nil, &problem{http.StatusBadRequest, "invalid_pagination_parameters",
			fmt.Sprintf("Invalid pagination parameters: page number %d, page size %s", p.number, shown)}
	}
	if len(p.name) > maxNameFilter {
		return nil, bad("Pagination parameters are invalid")
	}
	if p.name != "" && v.Get("use_regex") == "true" {
		if p.pattern, err = pattern.Linear("(?i)" + p.name); err != nil {
			return nil, bad("Pagination parameters are invalid")
		}
	}
	return p, nil
}

func (p *paging) filter(items []object) []object {
	if p.name == "" {
		return items
	}
	wanted := strings.ToLower(p.name)
	return slices.DeleteFunc(items, func(o object) bool {
		name, _ := o["name"].(string)
		if p.pattern != nil {
			return !p.pattern.MatchString(name)
		}
		return !strings.Contains(strings.ToLower(name), wanted)
	})
}

// answerPage is a page and where it stands. Beyond the last there is only the
// first, which may be empty.
func (q *request) answerPage(p *paging, items []object, total int) error {
	filtered, from := len(items), (p.number-1)*p.size
	if from >= filtered && p.number > 1 {
		return &problem{http.StatusBadRequest, "page_out_of_range",
			fmt.Sprintf("Page out of range, page: %d page size: %d, len: %d", p.number, p.size, filtered)}
	}
	items = items[from:min(from+p.size, filtered)]
	return q.answer(object{
		"page": p.number, "page_count": (filtered + p.size - 1) / p.size, "page_size": p.size,
		"filtered_count": filtered, "item_count": len(items), "total_count": total, "items": q.columns(items),
	})
}

// sort orders by the field that sort= names; without, the items stand as made.
func (q *request) sort(items []object) {
	v := q.URL.Query()
	if by := v.Get("sort"); by != "" {
		path := strings.Split(by, ".")
		slices.SortStableFunc(items, func(a, b object) int { return compare(at(a, path), at(b, path)) })
	}
	if v.Get("sort_reverse") == "true" {
		slices.Reverse(items)
	}
}

// at is what stands under a path of keys; nil if nothing does.
func at(v any, path []string) any {
	for _, key := range path {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o[key]
	}
	return v
}

// compare orders numbers, then texts and the rest by how they print.
func compare(a, b any) int {
	x, isX := number(a)
	y, isY := number(b)
	switch {
	case isX && isY:
		return cmp.Compare(x, y)
	case isX:
		return -1
	case isY:
		return 1
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case uint16:
		return float64(v), true
	case rate:
		return float64(v), true
	}
	return 0, false
}

// columns reduces objects to the fields that columns= names; a dot leads into a
// field. Arguments cannot be led into: their keys may have dots.
func (q *request) columns(items []object) []object {
	if items == nil {
		items = []object{}
	}
	v := q.URL.Query()
	if !v.Has("columns") {
		return items
	}
	var paths [][]string
	for column := range strings.SplitSeq(v.Get("columns"), ",") {
		paths = append(paths, strings.Split(column, "."))
	}
	cut := make([]object, len(items))
	for i := range items {
		cut[i] = object{}
		for _, path := range paths {
			keep(cut[i], items[i], path)
		}
	}
	return cut
}

func keep(to, from object, path []string) {
	v, ok := from[path[0]]
	if !ok {
		return
	}
	inner, nested := v.(object)
	if len(path) == 1 || !nested || path[0] == "arguments" {
		to[path[0]] = v
		return
	}
	into, ok := to[path[0]].(object)
	if !ok {
		into = object{}
	}
	keep(into, inner, path[1:])
	if len(into) > 0 {
		to[path[0]] = into
	}
}

// rate is a number that is written with a fraction, as strict clients want it.
type rate float64

// MarshalJSON writes 0 as 0.0.
func (r rate) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(r))
	if err == nil && !strings.ContainsAny(string(b), ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}
