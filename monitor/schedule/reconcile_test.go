package schedule

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// What a reconciliation found gone, and removed, may be there again.
func TestReconciliationAsksTwice(t *testing.T) {
	s := deadline.Ref{Deadline: 1, Queue: 2, Seq: 3}
	var did []string
	p := &pager{
		tick: func() {},
		track: func(shadows []deadline.Ref) []deadline.Ref {
			did = append(did, "track")
			if len(did) == 1 {
				return nil // on its way to another deadline
			}
			return shadows
		},
		remove:  func(context.Context, []deadline.Ref) error { did = append(did, "remove"); return nil },
		restore: func(context.Context, []deadline.Ref) error { did = append(did, "restore"); return nil },
	}
	_, err := p.removeGone(t.Context(), []deadline.Ref{s})
	require.NoError(t, err)
	require.Equal(t, []string{"track", "remove", "track", "restore"}, did)
}
