package commands

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/node"
)

// TestWatch: while a Curfew is away the error is printed and the command goes on; without a first answer it ends.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("no answer")
		for _, c := range []struct {
			args    []string
			answers []error
			want    error
		}{
			{[]string{"-w"}, []error{nil, away, nil}, nil},
			{[]string{"-w"}, []error{away}, away},
			{nil, []error{nil}, nil},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			shown := 0
			cmd := cli.Watched(&cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
				shown++
				if shown == len(c.answers) {
					cancel()
				}
				return c.answers[shown-1]
			}})
			var errOut bytes.Buffer
			cmd.SetErr(&errOut)
			cmd.SetArgs(append([]string{}, c.args...))
			assert.ErrorIs(t, cmd.ExecuteContext(ctx), c.want)
			assert.Equal(t, len(c.answers), shown)
			if len(c.answers) > 1 {
				assert.Equal(t, "curfew: no answer\n", errOut.String())
			}
			cancel()
		}
	})
}

// TestWhatCanBeWatched: every command that shows a state has --watch.
func TestWhatCanBeWatched(t *testing.T) {
	root := Tree(node.Build{})
	for _, line := range []string{"status", "alert ls", "audit search", "deadlines list", "dlq groups", "dlq list", "dlq peek", "dlq runs", "dlq search", "queue list", "queue peek", "queue show"} {
		c, _, err := root.Find(strings.Fields(line))
		require.NoError(t, err)
		assert.NotNil(t, c.Flags().Lookup("watch"), line)
	}
}
