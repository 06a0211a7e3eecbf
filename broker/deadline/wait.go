package deadline

// Wait is how long messages wait in a queue.
type Wait struct {
	P50, P99  Millis // of those consumed in the last minutes: half, and 99 in 100, waited no longer, a second at least; 0: none were
	Oldest    Millis // of the oldest ready message; 0: there is none
	Objective Objective
	// Missed is the share of the last five minutes' messages that missed the objective, and of what waits longer than it now. Burn is how many
	// times that is what the objective allows.
	Missed, Burn float64
	Burns        bool // so fast that the objective will not be met
}
