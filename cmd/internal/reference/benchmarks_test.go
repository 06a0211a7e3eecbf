package reference

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const benchResults = root + "/integration/bench/results/"

// benchRow is what one side did with one work; see integration/bench.
type benchRow struct {
	Item, Work, Side string
	PerSecond        benchStat
	BrokerCPU        benchStat `json:"brokerCPUus"`
	P50us, P99us     benchStat
}

// benchStat is a figure, with a value for each pass.
type benchStat struct{ Values []float64 }

func (s benchStat) median() float64 {
	if len(s.Values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.Values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// benchLosses is a table of all figures of the last `make bench` in which a RabbitMQ did better than Curfew.
func benchLosses(t *testing.T) string {
	text, err := os.ReadFile(benchResults + "results.json")
	require.NoError(t, err)
	var report struct{ Rows []benchRow }
	require.NoError(t, json.Unmarshal(text, &report))
	out, losses, compared := newTable("Item", "Work", "Figure", "Curfew", "RabbitMQ"), 0, 0
	for _, mine := range report.Rows {
		if !strings.HasPrefix(mine.Side, "Curfew") {
			continue
		}
		for _, other := range report.Rows {
			if !strings.HasPrefix(other.Side, "RabbitMQ") || other.Item != mine.Item || other.Work != mine.Work {
				continue
			}
			for _, figure := range []struct {
				name        string
				mine, other float64
				more        bool // is better
				unit        string
			}{
				{"messages a second", mine.PerSecond.median(), other.PerSecond.median(), true, ""},
				{"processor time a message", mine.BrokerCPU.median(), other.BrokerCPU.median(), false, " us"},
				{"p50", mine.P50us.median() / 1000, other.P50us.median() / 1000, false, " ms"},
				{"p99", mine.P99us.median() / 1000, other.P99us.median() / 1000, false, " ms"},
			} {
				if figure.mine == 0 || figure.other == 0 {
					continue
				}
				compared++
				if figure.more && figure.mine < figure.other || !figure.more && figure.mine > figure.other {
					losses++
					out.row(mine.Item, mine.Work, figure.name, fmt.Sprintf("%.4g%s (%s)", figure.mine, figure.unit, mine.Side), fmt.Sprintf("%.4g%s (%s)", figure.other, figure.unit, other.Side))
				}
			}
		}
	}
	require.Positive(t, compared)
	if losses == 0 {
		return fmt.Sprintf("In none of %d comparisons.", compared)
	}
	return fmt.Sprintf("In %d of %d comparisons:\n\n%s", losses, compared, out)
}
