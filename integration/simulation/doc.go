// Package simulation is tests only.
package simulation
