package deadline

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrderOfRisk: what is lost first comes first, then what is more; what is no loss comes after all that is.
func TestOrderOfRisk(t *testing.T) {
	first, soon, more := &Forecast{AtRisk: 1, FirstMiss: 10}, &Forecast{AtRisk: 5, FirstMiss: 20}, &Forecast{AtRisk: 6, FirstMiss: 20}
	meant, safe := &Forecast{AsMeant: 900, FirstMiss: 1}, &Forecast{Deadlines: 900}
	list := []*Forecast{safe, soon, nil, meant, more, first}
	slices.SortStableFunc(list, (*Forecast).Compare)
	require.Equal(t, []*Forecast{first, more, soon, safe, nil, meant}, list)
}
