package rabbitmq

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// newLateness returns a histogram of how late messages were given back: with the buckets of the monitor's, and finer ones below 100 ms.
func newLateness() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "curfew_rabbitmq_kept_lateness_seconds",
		Help:    "How long after its deadline a message of a kept queue was given back to expire; without messages of unknown age.",
		Buckets: []float64{.001, .002, .003, .005, .007, .01, .015, .02, .03, .05, .075, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}})
}

// within returns the lowest upper bound, in ms, that this share of the messages did not exceed; nil: there is none.
func within(h prometheus.Histogram, share float64) *float64 {
	var m dto.Metric
	_ = h.Write(&m) // it never fails
	for _, b := range m.Histogram.Bucket {
		if n := b.GetCumulativeCount(); n > 0 && float64(n) >= share*float64(m.Histogram.GetSampleCount()) {
			return new(math.Round(b.GetUpperBound() * 1000))
		}
	}
	return nil
}
