package queues

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
)

// confirmation is the value of --confirm: how many messages the caller expects to be deleted, and, after an @, the position in the queue up to
// which they were counted. Without a position the number is of all messages in the queue.
type confirmation struct {
	messages *int // nil: the flag was not given
	seen     *seenPosition
}

// String, Set and Type implement pflag.Value.
func (c *confirmation) String() string {
	if c.messages == nil {
		return ""
	}
	return strconv.Itoa(*c.messages)
}

func (c *confirmation) Set(text string) error {
	number, position, _ := strings.Cut(text, "@")
	n, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%q is not a number of messages", number)
	}
	c.messages = &n
	return c.seen.set(position)
}

func (*confirmation) Type() string { return "number" }

func (c *confirmation) addTo(cmd *cobra.Command) {
	cmd.Flags().Var(c, "confirm", "how many messages you expect to be deleted, as printed without this flag")
}

// unconfirmed is the error of a purge without the number of messages, or with a wrong one.
func unconfirmed(failed *client.Error, which string, f *filterFlags) error {
	if failed.Matched == 0 {
		return cli.Unconfirmedf("no messages %s: there is nothing to delete", which)
	}
	return cli.Unconfirmedf("%d messages %s; to delete them add --confirm %d@%s (later messages stay)", failed.Matched, which, failed.Matched, f.seenAt(failed.Position))
}

// conflict returns err as an answer of the API if the caller has to confirm a number.
func conflict(err error) (*client.Error, bool) {
	var r *client.Error
	return r, errors.As(err, &r) && r.Status == http.StatusConflict && r.Kind == "unconfirmed"
}
