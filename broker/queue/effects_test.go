package queue

import (
	"testing"
)

func TestEffectsGiveBackLargeBuffers(t *testing.T) {
	fx := Effects{Settled: make([]Settled, 1, maxKeptEffects)}
	if fx.Reset(); len(fx.Settled) != 0 || cap(fx.Settled) != maxKeptEffects {
		t.Errorf("%d of %d kept", len(fx.Settled), cap(fx.Settled))
	}
	fx.Settled = make([]Settled, maxKeptEffects+1)
	if fx.Reset(); cap(fx.Settled) != 0 {
		t.Errorf("%d kept", cap(fx.Settled))
	}
}
