package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"curfew/broker/deadletters"
)

// SavedFilter is a filter with a name, for the dead letters of one queue. All users who may read the queue share it. It is one of the broker's
// global parameters, so it is kept, exported and imported with the definitions.
type SavedFilter struct {
	Name   string             `json:"name"`
	Filter deadletters.Filter `json:"filter"`
	By     string             `json:"by"` // who saved it
}

const (
	// filterParameter begins the name of the global parameter: the virtual host, the queue and the filter's name follow, each escaped.
	filterParameter = "dead-letter-filter/"
	maxFilterName   = 100
	maxFilters      = 50 // of a queue
	maxAllFilters   = 1000
)

var errNoFilter = &Invalid{"there is nothing to save: the filter is empty"}

// QueueFilter names a queue; in a list of all queues "" is any.
type QueueFilter struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
}

// ListFilters lists the filters saved for a queue, by name. Somebody may have set such a parameter in another form: it is left out.
var ListFilters = Define(Op{
	Name: "list_filters", Title: "The filters that are saved for a queue, by name", Rule: Rule{Role: Management, Read: Always}, Quiet: true,
	Routes: []string{"GET /api/curfew/deadletters/{vhost}/{queue}/filters"},
}, func(_ context.Context, c *Call, r QueueFilter) ([]SavedFilter, error) {
	_, list, err := c.filters(r.Queue)
	return list, err
})

// filters are the filters saved for a queue, and how their parameters begin.
func (c *Call) filters(queue string) (prefix string, list []SavedFilter, err error) {
	q, err := c.Queue(queue)
	if err != nil {
		return "", nil, err
	}
	prefix, list = filterParameter+url.PathEscape(c.VHost.Name())+"/"+url.PathEscape(q.Name)+"/", []SavedFilter{}
	for name, value := range c.Broker.GlobalParameters() {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if f, err := savedFilter(rest, value); err == nil {
				list = append(list, f)
			}
		}
	}
	slices.SortFunc(list, func(a, b SavedFilter) int { return cmp.Compare(a.Name, b.Name) })
	return prefix, list, nil
}

// savedFilter reads a parameter.
func savedFilter(name string, value any) (f SavedFilter, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err == nil && f.Filter == "" {
		err = errNoFilter
	}
	if err == nil {
		err = f.Filter.Check()
	}
	if err == nil {
		f.Name, err = url.PathUnescape(name)
	}
	return f, err
}

// FilterToSave is a filter with the name that it is saved under.
type FilterToSave struct {
	VHost  string             `json:"vhost"`
	Queue  string             `json:"queue"`
	Name   string             `json:"name" log:"filter"`
	Filter deadletters.Filter `json:"filter" doc:"an expression, such as reason == \"expired\" && died > ago(\"2h\")"`
}

// SaveFilter saves a filter under its name, and replaces one with that name.
var SaveFilter = Define(Op{
	Name: "save_filter", Title: "Save a filter under a name", Rule: Rule{Role: Management, Read: Always}, Routes: []string{"PUT /api/curfew/deadletters/{vhost}/{queue}/filters/{name}"},
}, func(_ context.Context, c *Call, f FilterToSave) (none None, err error) {
	prefix, list, err := c.filters(f.Queue)
	if err == nil {
		err = c.checkFilter(f, list)
	}
	if err == nil {
		_, err = c.Broker.SetGlobalParameter(prefix+url.PathEscape(f.Name), map[string]any{"filter": string(f.Filter), "by": c.Actor.Name})
	}
	return none, err
})

// GlobalParameters returns the global parameters that the actor may see. Saved filters are among them only for administrators: they reveal queues
// that others may not read.
func (o *Operations) GlobalParameters(a Actor) map[string]any {
	all := o.Broker.GlobalParameters()
	if !a.Has(Administrator) {
		maps.DeleteFunc(all, func(name string, _ any) bool { return strings.HasPrefix(name, filterParameter) })
	}
	return all
}

func (c *Call) checkFilter(f FilterToSave, saved []SavedFilter) error {
	if f.Name == "" || len(f.Name) > maxFilterName || !utf8.ValidString(f.Name) {
		return &Invalid{fmt.Sprintf("a filter is saved under a name of 1 to %d bytes", maxFilterName)}
	}
	if f.Filter == "" {
		return errNoFilter
	}
	if err := f.Filter.Check(); err != nil {
		return err
	}
	if slices.ContainsFunc(saved, func(one SavedFilter) bool { return one.Name == f.Name }) {
		return nil
	}
	all := 0
	for name := range c.Broker.GlobalParameters() {
		if strings.HasPrefix(name, filterParameter) {
			all++
		}
	}
	if len(saved) >= maxFilters || all >= maxAllFilters {
		return &Invalid{fmt.Sprintf("%d filters are saved for this queue and %d in all, at most %d and %d: delete one", len(saved), all, maxFilters, maxAllFilters)}
	}
	return nil
}

// FilterName names a saved filter.
type FilterName struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Name  string `json:"name" log:"filter"`
}

// DeleteFilter deletes a saved filter. Error: ErrNotFound among others.
var DeleteFilter = Define(Op{
	Name: "delete_filter", Title: "Delete a saved filter", Rule: Rule{Role: Management, Read: Always}, Routes: []string{"DELETE /api/curfew/deadletters/{vhost}/{queue}/filters/{name}"},
}, func(_ context.Context, c *Call, f FilterName) (none None, err error) {
	prefix, list, err := c.filters(f.Queue)
	if err == nil && !slices.ContainsFunc(list, func(one SavedFilter) bool { return one.Name == f.Name }) {
		err = ErrNotFound
	}
	if err == nil {
		_, err = c.Broker.ClearGlobalParameter(prefix + url.PathEscape(f.Name))
	}
	return none, err
})
