package main

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// processors is what all processors together have done since the machine started, in
// seconds.
type processors struct{ all, stolen float64 }

// processorsNow returns zero if the system does not provide the numbers.
func processorsNow() (p processors) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return p
	}
	stat, err := fs.Stat()
	if err != nil {
		return p
	}
	c := stat.CPUTotal
	return processors{c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal, c.Steal}
}

// stolenShare describes how much processor time the host has given to others since then. No
// side can prevent that, and it is the first thing to check when a run differs from the
// last one.
func (p processors) stolenShare() string {
	now := processorsNow()
	if now.all <= p.all {
		return "unknown"
	}
	return fmt.Sprintf("%.0f%%", (now.stolen-p.stolen)/(now.all-p.all)*100)
}
