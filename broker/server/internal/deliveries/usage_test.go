package deliveries

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/memory"
)

func TestDrawnInSteps(t *testing.T) {
	budget := memory.New(10 * step)
	var b Memory
	require.NoError(t, b.Update(5*step), "nobody has logged in")
	b.Account = budget.Open("u", func(error) {})
	for _, c := range []struct{ add, used int64 }{
		{step - 1, 0}, {1, step}, {2*step + 5, 3 * step}, {-6, 2 * step}, {-3*step + 6, 0},
	} {
		b.Add(c.add)
		require.NoError(t, b.Update(5*step))
		assert.Equal(t, c.used, budget.Used())
	}
	b.Add(5 * step)
	require.NoError(t, b.Update(5*step))
	b.Add(step)
	assert.ErrorContains(t, b.Update(5*step), "RESOURCE_ERROR")
	assert.Equal(t, int64(5*step), budget.Used(), "what is refused is not drawn")
	b.Close()
	assert.Zero(t, budget.Used())
}
