package commands

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/queue"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
)

// filterFlags are the flags that select dead letters.
type filterFlags struct {
	deadletters.Filter
	headers       []string
	seqs          []string
	since, before string
}

func (f *filterFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.Reason, "reason", "", "died of: expired, rejected, maxlen or delivery_limit")
	cli.Offers(c, "reason", "expired", "rejected", "maxlen", "delivery_limit")
	flags.StringVar(&f.Queue, "from-queue", "", "died in this queue")
	flags.StringVar(&f.Exchange, "from-exchange", "", "was published to this exchange")
	flags.StringArrayVar(&f.headers, "header", nil, "has this header, as name=value; may be repeated")
	flags.StringVar(&f.MessageID, "message-id", "", "has this message-id")
	flags.StringVar(&f.Run, "run", "", "was replayed last by this run")
	flags.StringVar(&f.since, "since", "", "died after this instant (RFC 3339) or within this time, such as 2h")
	flags.StringVar(&f.before, "before", "", "died before this instant, or longer ago than this time")
	flags.StringVar(&f.Body, "body", "", "its body has this text")
	flags.StringVar(&f.Pattern, "pattern", "", "its body matches this RE2 expression")
	flags.StringSliceVar(&f.seqs, "seq", nil, "has this number in its queue (see peek); may be repeated")
}

// filter builds the filter from the flags.
func (f *filterFlags) filter() (filter deadletters.Filter, err error) {
	filter = f.Filter
	if filter.Since, err = cli.Instant("--since", f.since); err != nil {
		return filter, err
	}
	if filter.Before, err = cli.Instant("--before", f.before); err != nil {
		return filter, err
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return filter, cli.Usagef("--header takes name=value, not %q", h)
		}
		if filter.Headers == nil {
			filter.Headers = map[string]string{}
		}
		filter.Headers[name] = value
	}
	for _, s := range f.seqs {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return filter, cli.Usagef("--seq takes a number, not %q", s)
		}
		filter.Seqs = append(filter.Seqs, queue.Seq(n))
	}
	if err := filter.Check(); err != nil {
		return filter, cli.Usage(err)
	}
	return filter, nil
}

// deadLetterRequest is the body of a request about a queue's dead letters.
type deadLetterRequest struct {
	Filter   deadletters.Filter `json:"filter"`
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
