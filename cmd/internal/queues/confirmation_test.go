package queues

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConfirmationFixesTheFilter: "longer ago than an hour" means the same instant in the confirmation as in the question, however long a person has thought.
func TestConfirmationFixesTheFilter(t *testing.T) {
	before := func(confirm string) (time.Time, string) {
		var f filterFlags
		c := &cobra.Command{}
		f.add(c)
		if confirm != "" {
			require.NoError(t, (&confirmation{seen: &f.seen}).Set(confirm))
		}
		require.NoError(t, c.ParseFlags([]string{"--before", "1h"}))
		filter, err := f.filter(c, nil, "q")
		require.NoError(t, err)
		return filter.Before, "3@" + f.seenAt("a1-2s")
	}
	asked, confirm := before("")
	confirmed, again := before(confirm)
	assert.Equal(t, asked, confirmed)
	assert.Equal(t, confirm, again)
	hourAgo, _ := before("3@a1-2s@1700003600000")
	assert.Equal(t, time.UnixMilli(1_700_000_000_000).UTC(), hourAgo)
	var f filterFlags
	assert.Error(t, (&confirmation{seen: &f.seen}).Set("3@a1-2s@soon"))
}
