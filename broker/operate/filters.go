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

	"go.uber.org/zap"

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

func filterPrefix(at QueueName) string {
	return filterParameter + url.PathEscape(at.VHost) + "/" + url.PathEscape(at.Name) + "/"
}

// ListFilters lists the filters saved for a queue, by name. Somebody may have set such a parameter in another form: it is left out.
func (o Letters) ListFilters(_ context.Context, a Actor, at QueueName) ([]SavedFilter, error) {
	q, err := o.queue(&a, SearchDeadLetters, at)
	if err != nil {
		return nil, err
	}
	prefix, list := filterPrefix(QueueName{at.VHost, q.Name()}), []SavedFilter{}
	for name, value := range o.Broker.GlobalParameters() {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if f, err := savedFilter(rest, value); err == nil {
				list = append(list, f)
			}
		}
	}
	slices.SortFunc(list, func(a, b SavedFilter) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
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

// SaveFilter saves a filter under its name, and replaces one with that name.
func (o Letters) SaveFilter(ctx context.Context, a Actor, at QueueName, f SavedFilter) error {
	list, err := o.ListFilters(ctx, a, at)
	if err == nil {
		err = o.checkFilter(f, list)
	}
	if err == nil {
		at.Name = o.fullName(at)
		_, err = o.Broker.SetGlobalParameter(filterPrefix(at)+url.PathEscape(f.Name), map[string]any{"filter": string(f.Filter), "by": a.Name})
	}
	o.Record(a, SaveFilter, at, err, zap.String("filter", f.Name))
	return err
}

// GlobalParameters returns the global parameters that the actor may see. Saved filters are among them only for administrators: they reveal queues
// that others may not read.
func (o *Access) GlobalParameters(a Actor) map[string]any {
	all := o.Broker.GlobalParameters()
	if !a.Has(Administrator) {
		maps.DeleteFunc(all, func(name string, _ any) bool { return strings.HasPrefix(name, filterParameter) })
	}
	return all
}

// fullName returns the full name of a queue that may be given by its short name. The queue exists.
func (o Letters) fullName(at QueueName) string {
	vh, ok := o.Broker.VHost(at.VHost)
	if !ok {
		return at.Name
	}
	return vh.Queues.NameOf(at.Name)
}

func (o Letters) checkFilter(f SavedFilter, saved []SavedFilter) error {
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
	for name := range o.Broker.GlobalParameters() {
		if strings.HasPrefix(name, filterParameter) {
			all++
		}
	}
	if len(saved) >= maxFilters || all >= maxAllFilters {
		return &Invalid{fmt.Sprintf("%d filters are saved for this queue and %d in all, at most %d and %d: delete one", len(saved), all, maxFilters, maxAllFilters)}
	}
	return nil
}

// DeleteFilter deletes a saved filter. Error: ErrNotFound among others.
func (o Letters) DeleteFilter(ctx context.Context, a Actor, at QueueName, name string) error {
	list, err := o.ListFilters(ctx, a, at)
	if err == nil && !slices.ContainsFunc(list, func(f SavedFilter) bool { return f.Name == name }) {
		err = ErrNotFound
	}
	if err == nil {
		at.Name = o.fullName(at)
		_, err = o.Broker.ClearGlobalParameter(filterPrefix(at) + url.PathEscape(name))
	}
	o.Record(a, DeleteFilter, at, err, zap.String("filter", name))
	return err
}
