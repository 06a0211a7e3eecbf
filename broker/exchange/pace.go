package exchange

import "cmp"

// PaceSteps is how many steps are made between two pauses. A step is a node of a trie, a binding that is compared or a
// destination: some 100 to 200 ns, so that a caller holds its lock for less than half a millisecond.
const PaceSteps = 2048

// Pace divides a long search into parts, so that whoever searches does not hold a lock for long. For one goroutine.
type Pace struct {
	// Pause is called every PaceSteps steps. It may unlock what guards the bindings and lock it again.
	Pause func()

	every int // steps between two pauses; 0: PaceSteps
	done  int // steps since the last pause
}

func (p *Pace) most() int { return cmp.Or(p.every, PaceSteps) }

// Step counts n steps, and pauses if there have been enough. A nil Pace never pauses.
func (p *Pace) Step(n int) {
	if p == nil {
		return
	}
	if p.done += n; p.done >= p.most() {
		p.done = 0
		p.Pause()
	}
}

// left is how many steps there may be before the next pause.
func (p *Pace) left() int {
	if p == nil {
		return 1 << 62
	}
	return p.most() - p.done
}
