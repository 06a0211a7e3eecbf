package main

import (
	"fmt"
	"slices"
	"time"

	"curfew/integration/bench/load"
)

// stat is one figure of a side, with one value per pass.
type stat struct {
	Values []float64 `json:"values"`
}

func (s *stat) add(v float64) { s.Values = append(s.Values, v) }

// median returns the middle value, or 0 if there are no values.
func (s *stat) median() float64 {
	if len(s.Values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.Values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// spread returns the minimum and the maximum.
func (s *stat) spread() (least, most float64) {
	if len(s.Values) == 0 {
		return 0, 0
	}
	return slices.Min(s.Values), slices.Max(s.Values)
}

// ratios returns the ratio of s to other in each pass that has both values.
func (s *stat) ratios(other *stat) (ratios stat) {
	if len(s.Values) != len(other.Values) {
		return ratios
	}
	for i, v := range s.Values {
		if other.Values[i] > 0 {
			ratios.add(v / other.Values[i])
		}
	}
	return ratios
}

// row is the result of one workload on one side. A stat without values was not measured.
type row struct {
	Item    string `json:"item"`
	Work    string `json:"work"`
	Side    string `json:"side"`
	Rate    stat   `json:"perSecond"`
	CPU     stat   `json:"brokerCPUus"` // µs per message
	Client  stat   `json:"clientCPUus"` // µs per message
	P50     stat   `json:"p50us"`
	P99     stat   `json:"p99us"`
	Confirm stat   `json:"confirmP50us"`
	Note    string `json:"note,omitempty"`
}

// add adds one pass of a throughput workload, and the processor time that the broker used
// during it.
func (r *row) add(result load.Result, used time.Duration, consumed bool) {
	rate, messages := result.Published, result.TotalPublished
	if consumed {
		rate, messages = result.Consumed, result.TotalConsumed
	}
	r.Rate.add(rate)
	r.CPU.add(used.Seconds() * 1e6 / float64(max(1, messages)))
	r.Client.add(result.ClientCPU)
	if l := result.Latency; l != nil {
		r.P50.add(l.P50)
		r.P99.add(l.P99)
	}
	if l := result.ConfirmLatency; l != nil {
		r.Confirm.add(l.P50)
	}
}

func (r *row) String() string {
	least, most := r.Rate.spread()
	text := fmt.Sprintf("%-34s %-26s", r.Work, r.Side)
	if len(r.Rate.Values) > 0 {
		text += fmt.Sprintf(" %9s/s (%s-%s)", short(r.Rate.median()), short(least), short(most))
	}
	if len(r.CPU.Values) > 0 {
		text += fmt.Sprintf("  broker %.2f us", r.CPU.median())
	}
	if len(r.Client.Values) > 0 {
		text += fmt.Sprintf("  client %.2f us", r.Client.median())
	}
	if len(r.P50.Values) > 0 {
		text += fmt.Sprintf("  p50 %s  p99 %s", micros(r.P50.median()), micros(r.P99.median()))
	}
	if r.Note != "" {
		text += "  " + r.Note
	}
	return text
}

// short formats a count with three digits: 1.43M, 330k, 87.
func short(v float64) string {
	switch {
	case v >= 999_500:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 999.5:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}

// micros formats a time given in microseconds.
func micros(v float64) string {
	if v >= 1_000_000 {
		return fmt.Sprintf("%.2f s", v/1e6)
	}
	return fmt.Sprintf("%.2f ms", v/1e3)
}

// ratio returns the ratio of a's median rate to b's.
func ratio(a, b *row) float64 {
	if b.Rate.median() == 0 {
		return 0
	}
	return a.Rate.median() / b.Rate.median()
}

// ratioWithSpread formats a ratio near 1 with the minimum and the maximum of the passes'
// ratios, which differ by more than the margin.
func ratioWithSpread(a, b *row) string {
	text := fmt.Sprintf("%.2f", ratio(a, b))
	if ratios := a.Rate.ratios(&b.Rate); len(ratios.Values) > 1 {
		least, most := ratios.spread()
		text += fmt.Sprintf(" (passes %.2f-%.2f)", least, most)
	}
	return text
}
