package queues

import (
	"github.com/spf13/cobra"

	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
)

// truncateHelp is the help of the flag --truncate.
const truncateHelp = "the most bytes of each body; with -o json the whole body unless this is set"

// bodyBytes is how many bytes of each body to request: a program that reads JSON wants whole bodies, as far as they fit into the answer.
func bodyBytes(a *cli.API, cmd *cobra.Command, truncate, count int) int {
	if a.JSON() && !cmd.Flags().Changed("truncate") {
		return operate.MaxPeekBytes / max(count, 1)
	}
	return truncate
}

// bodyCell is a body for a table.
func bodyCell(payload, encoding string) string {
	if encoding == "base64" {
		return "(base64) " + payload
	}
	return payload
}
