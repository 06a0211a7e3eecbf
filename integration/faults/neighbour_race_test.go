//go:build race

package faults

// TestNeighbour measures milliseconds, which the race detector takes itself: it is run without.
const strikeVariable = "FAULTS_STRIKE"

func strike(order string) int { panic("attacks are not made with the race detector: " + order) }
