package queues

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
)

// confirmation is the value of --confirm: how many messages the caller expects to be deleted, and, after an @, the position in the queue up to
// which they were counted. Without a position the number is of all messages in the queue.
type confirmation struct{ operate.PurgeRequest }

// String, Set and Type implement pflag.Value.
func (c *confirmation) String() string {
	if c.Confirm == nil {
		return ""
	}
	return strconv.Itoa(*c.Confirm)
}

func (c *confirmation) Set(text string) error {
	number, position, _ := strings.Cut(text, "@")
	n, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%q is not a number of messages", number)
	}
	c.Confirm = &n
	return c.Position.UnmarshalText([]byte(position))
}

func (*confirmation) Type() string { return "number" }

// purge deletes messages by a request to path, and prints how many. which says which messages these are.
func (c *confirmation) purge(a *cli.API, cmd *cobra.Command, path, which string) error {
	var answer operate.Deleted
	err := a.Call(cmd.Context(), http.MethodPost, path, map[string]any{"filter": c.Filter, "confirm": c.Confirm, "position": c.Position}, &answer)
	if asks, ok := errors.AsType[*cli.Error](err); ok && asks.Status == http.StatusConflict && asks.Kind == "unconfirmed" {
		if asks.Matched == 0 {
			return cli.Exitf(cli.ExitUnconfirmed, "no messages %s: there is nothing to delete", which)
		}
		return cli.Exitf(cli.ExitUnconfirmed, "%d messages %s; to delete them add --confirm %d@%s (later messages stay)", asks.Matched, which, asks.Matched, asks.Position)
	}
	if err != nil {
		return err
	}
	return a.PrintResult(cmd, operate.PurgeDeadLetters.Op, answer)
}

const confirmHelp = "how many messages you expect to be deleted, as printed without this flag"
