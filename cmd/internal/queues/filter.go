package queues

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/queue"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
)

// filterFlags are the flags that select dead letters.
type filterFlags struct {
	fields map[string]*[]string // of a deadletters.Query
	saved  string
	seen   seenPosition
}

// filterFlag is a flag that is a field of a deadletters.Query.
type filterFlag struct{ flag, field, help string }

var filterFlagList = []filterFlag{
	{"reason", "reason", "died of: expired, rejected, maxlen or delivery_limit"},
	{"from-queue", "died_in", "died in this queue"},
	{"from-exchange", "exchange", "was published to this exchange"},
	{"from-key", "key", "was published with this routing key"},
	{"header", "header", "has this header, as name=value; may be repeated"},
	{"property", "property", "has this property, such as type=order.created or correlation-id=7; may be repeated"},
	{"message-id", "message_id", "has this message-id"},
	{"run", "run", "was last replayed by the replay with this ID"},
	{"since", "since", "died after this instant (RFC 3339) or within this time, such as 2h"},
	{"before", "before", "died before this instant, or longer ago than this time"},
	{"body", "body", "its body contains this text"},
	{"json-value", "json", "its body is JSON with this value, such as customer.id=7 or items.#.sku=a; may be repeated"},
	{"pattern", "pattern", "its body matches this RE2 expression"},
	{"seq", "seq", "has this number in its queue (see peek); may be repeated"},
}

func (f *filterFlags) add(c *cobra.Command) {
	f.fields = map[string]*[]string{}
	for _, one := range filterFlagList {
		values := new([]string)
		f.fields[one.field] = values
		if one.field == "seq" {
			c.Flags().StringSliceVar(values, one.flag, nil, one.help)
		} else {
			c.Flags().StringArrayVar(values, one.flag, nil, one.help)
		}
	}
	c.Flags().StringVar(&f.saved, "saved", "", "use this saved filter (see curfew dlq filters); other flags narrow it")
	cli.Offers(c, "reason", deadletters.Reasons...)
}

// query is the query of the flags, without a saved filter.
func (f *filterFlags) query() deadletters.Query {
	q := deadletters.Query{}
	for field, values := range f.fields {
		if len(*values) > 0 {
			q[field] = *values
		}
	}
	return q
}

// filter builds the filter from the flags, and the saved filter that they name.
func (f *filterFlags) filter(cmd *cobra.Command, d *deadLetters, queueName string) (filter deadletters.Filter, err error) {
	q := f.query()
	if f.saved != "" {
		saved, err := d.savedFilter(cmd, queueName, f.saved)
		if err != nil {
			return filter, err
		}
		for field, values := range saved {
			if len(q[field]) == 0 || slices.Contains([]string{"header", "property", "json"}, field) {
				q[field] = append(values, q[field]...)
			}
		}
	}
	if f.seen.at.IsZero() {
		f.seen.at = time.Now().Truncate(time.Millisecond) // the text has no more
	}
	return filterOf(q, f.seen.at)
}

// filterOf is the filter that a query means at an instant. The error names a flag.
func filterOf(q deadletters.Query, now time.Time) (deadletters.Filter, error) {
	for _, one := range filterFlagList {
		single := !slices.Contains([]string{"header", "property", "json", "seq"}, one.field)
		if single && len(q[one.field]) > 1 {
			return deadletters.Filter{}, cli.Usagef("--%s was given %d times", one.flag, len(q[one.field]))
		}
	}
	filter, wrong := q.Filter(now)
	for _, one := range filterFlagList {
		if err := wrong[one.field]; err != nil {
			return filter, cli.Usagef("--%s: %w", one.flag, err)
		}
	}
	return filter, nil
}

// savedFilter asks for a filter that was saved for a queue.
func (d *deadLetters) savedFilter(cmd *cobra.Command, queueName, name string) (deadletters.Query, error) {
	list, err := d.savedFilters(cmd, queueName)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.Name == name {
			return deadletters.ParseQuery(one.Query)
		}
	}
	return nil, fmt.Errorf("no filter %q is saved for queue %q; curfew dlq filters %s lists them", name, queueName, queueName)
}

func (d *deadLetters) savedFilters(cmd *cobra.Command, queueName string) (list []operate.SavedFilter, err error) {
	err = d.Call(cmd.Context(), http.MethodGet, letters(d.VHost, queueName, "filters"), nil, &list)
	return list, err
}

// filters lists, saves and deletes saved filters.
func (d *deadLetters) filters() *cobra.Command {
	var f filterFlags
	var save, remove string
	c := &cobra.Command{
		Use:   "filters <queue>",
		Short: "List the filters saved for a queue's dead letters; save or delete one",
		Long: "List the filters saved for a queue's dead letters. With --save the other flags are saved under a name, with --delete one is deleted.\n" +
			"Everybody who may read the queue sees them, by this command and on the dashboard.",
		Example: `  curfew dlq filters orders.dead --save night --reason expired --since 8h
  curfew dlq search orders.dead --saved night`,
		Args: cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case save != "" && remove != "":
				return cli.Usagef("--save and --delete cannot be used together")
			case save != "":
				q := f.query()
				if _, err := filterOf(q, time.Now()); err != nil {
					return err
				}
				return d.Call(cmd.Context(), http.MethodPut, client.Path("curfew", "deadletters", d.VHost, args[0], "filters", save), map[string]string{"query": q.String()}, nil)
			case remove != "":
				return d.Call(cmd.Context(), http.MethodDelete, client.Path("curfew", "deadletters", d.VHost, args[0], "filters", remove), nil, nil)
			}
			list, err := d.savedFilters(cmd, args[0])
			if err != nil {
				return err
			}
			var rows [][]string
			for _, one := range list {
				rows = append(rows, []string{one.Name, one.Query, cli.OrDash(one.By)})
			}
			return d.Print(cmd.OutOrStdout(), list, []string{"NAME", "FILTER", "BY"}, rows)
		},
	}
	f.add(c)
	c.Flags().StringVar(&save, "save", "", "save the filter of the other flags under this name")
	c.Flags().StringVar(&remove, "delete", "", "delete the filter with this name")
	return c
}

// deadLetterRequest is the body of a request about a queue's dead letters.
type deadLetterRequest struct {
	Filter   deadletters.Filter `json:"filter"`
	After    queue.Seq          `json:"after,omitempty"`
	Newest   bool               `json:"newest,omitempty"`
	Count    int                `json:"count,omitempty"`
	Truncate *int               `json:"truncate,omitempty"`
	Confirm  *int               `json:"confirm,omitempty"`
	DryRun   bool               `json:"dry_run,omitempty"`

	Position deadletters.Position `json:"position,omitzero"`
	*deadletters.Options
}

// letters is the API path of an operation on a queue's dead letters.
func letters(vhost, name, what string) string {
	return client.Path("curfew", "deadletters", vhost, name, what)
}

// seenPosition is what a person has seen of a queue: how far it was filled, and the instant that "2h" in the filter counted from. Its text is
// that of the position and, after an @, the instant in Unix ms.
type seenPosition struct {
	deadletters.Position
	at time.Time // zero: not known
}

func (p *seenPosition) set(text string) error {
	position, at, timed := strings.Cut(text, "@")
	if timed {
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a position in a queue", text)
		}
		p.at = time.UnixMilli(ms)
	}
	return p.UnmarshalText([]byte(position))
}

// seenAt is the text of what the filter has selected up to a position.
func (f *filterFlags) seenAt(position string) string {
	if f.seen.at.IsZero() {
		return position
	}
	return fmt.Sprintf("%s@%d", position, f.seen.at.UnixMilli())
}
