package rates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
)

func TestRates(t *testing.T) {
	var x Rates
	at := time.Unix(1000, 0)
	require.False(t, x.Of(at, operate.Stats{Published: 10}).Known)
	require.False(t, x.Of(at.Add(100*time.Millisecond), operate.Stats{Published: 20}).Known, "too near")
	r := x.Of(at.Add(2*time.Second), operate.Stats{Published: 110, Acked: 4})
	require.Equal(t, 50.0, r.Published)
	require.Equal(t, 2.0, r.Acked)
	for i := range 100 {
		r = x.Of(at.Add(time.Duration(i+3)*time.Second), operate.Stats{Published: 110 + uint64(i+1)*7})
	}
	require.InDelta(t, 7, r.Published, 0.1)
	require.LessOrEqual(t, len(x.last), samples+1)
	require.False(t, x.Of(at.Add(time.Hour), operate.Stats{}).Known, "nobody looked for long")
}
