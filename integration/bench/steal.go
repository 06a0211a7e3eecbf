package main

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// processors is what the processors have done since the machine started, in seconds of all of them.
type processors struct{ all, stolen float64 }

// processorsNow is zero where the system does not tell.
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

// elsewhere says how much of the processors' time since then their host gave to others: what no side can help, and the
// first thing to look at where a run is unlike the last.
func (p processors) elsewhere() string {
	now := processorsNow()
	if now.all <= p.all {
		return "unknown"
	}
	return fmt.Sprintf("%.0f%%", (now.stolen-p.stolen)/(now.all-p.all)*100)
}
