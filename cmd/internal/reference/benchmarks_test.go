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

// benchReport is what the last `make bench` measured.
type benchReport struct {
	Rows  []benchRow
	Goals []struct{ Goal, What, Got string }
}

func readBench(t *testing.T) (r benchReport) {
	text, err := os.ReadFile(benchResults + "results.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// row is what Curfew did with a work.
func (r *benchReport) row(t *testing.T, item, work string) *benchRow {
	for i := range r.Rows {
		if one := &r.Rows[i]; one.Item == item && one.Work == work && one.Side == "Curfew" {
			return one
		}
	}
	require.Failf(t, "no such row", "%s %s", item, work)
	return nil
}

// got is the measured value of a goal.
func (r *benchReport) got(t *testing.T, goal, what string) string {
	for _, one := range r.Goals {
		if one.Goal == goal && one.What == what {
			return one.Got
		}
	}
	require.Failf(t, "no such goal", "%s %s", goal, what)
	return ""
}

// cpu is the processor time of the broker for a message, of each work.
func (r *benchReport) cpu(t *testing.T, item string, works ...string) string {
	var list []string
	for _, work := range works {
		list = append(list, fmt.Sprintf("%.3g us", r.row(t, item, work).BrokerCPU.median()))
	}
	return strings.Join(list, ", ")
}

func benchMemory(t *testing.T) string {
	r, out := readBench(t), newTable("", "Memory", "From")
	_, note, _ := strings.Cut(r.row(t, "P9", "1M queued, 1 KiB, with TTL: in and out").Note, "; ") // the first part is how fast it was filled
	bytesEach, _, _ := strings.Cut(note, " each")
	out.row("an idle Curfew", r.got(t, "P11", "resident memory, idle")+" resident, most of it pages of the binary", "`P11`")
	out.row("a queued message with a deadline, with a data folder", fmt.Sprintf("%s in a queue of a million, %s in one of ten million; its content is on disk and in the page cache",
		bytesEach, r.got(t, "P9", "10M messages of 1 KiB with deadlines, memory")), "`P9`")
	out.row("an idle connection", r.got(t, "P12", "10k idle connections, fresh")+", "+r.got(t, "P12", "10k idle connections, after 20 messages of 1 KiB")+" once it was used", "`P12`")
	out.row("an idle queue", r.got(t, "P12", "20k idle queues, fresh"), "`P12`")
	out.row("a million messages that fall due within one minute", "287 MiB resident at most, for the whole process", "`TestMillionDeadlines`")
	return out.String()
}

func benchProcessor(t *testing.T) string {
	r, out := readBench(t), newTable("Work", "Processor time of the broker, a message", "From")
	out.row("transient, 100 bytes, in and out: one connection each way, four", r.cpu(t, "P1", "100 B, 1P1C", "100 B, 4P4C"), "`P1`")
	out.row("transient, 1 KiB, in and out", r.cpu(t, "P2", "1 KiB, 1P1C"), "`P2`")
	out.row("persistent with confirms, 100 bytes, in and out: one connection each way, four", r.cpu(t, "P3", "100 B, 1P1C, synced", "100 B, 4P4C, synced"), "`P3`")
	out.row("persistent, 100 bytes, each confirm waited for", r.cpu(t, "P4", "100 B, confirm each"), "`P4`")
	out.row("the first with amqp091-go as the client", r.cpu(t, "P5", "100 B, 1P1C, amqp091-go"), "`P5`")
	out.row("a deadline fired and dead-lettered, 1,000 / 10,000 / 50,000 a second", r.cpu(t, "P6", "1k deadlines/s", "10k deadlines/s", "50k deadlines/s"), "`P6`")
	out.row("dead-lettered, a million at once: transient, persistent", r.cpu(t, "P7", "1,000,000 to a DLX, transient", "1,000,000 to a DLX, persistent"), "`P7`")
	out.row("dropped, a million at once", r.cpu(t, "P7", "1,000,000 dropped"), "`P7`")
	out.row("nothing (idle)", r.got(t, "P11", "processor, idle")+" of a core in all", "`P11`")
	return out.String()
}

func benchStart(t *testing.T) string {
	r, out := readBench(t), newTable("The journal has", "Time to `/readyz`", "From")
	out.row("nothing", r.got(t, "P11", "start to readyz"), "`P11`")
	out.row("a million persistent messages of 1 KiB, after `kill -9`", r.got(t, "P10", "recovery of 1M persistent messages of 1 KiB"), "`P10`")
	return out.String()
}

// benchRow is what one side did with one work; see integration/bench.
type benchRow struct {
	Item, Work, Side string
	Note             string
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

// benchLosses is a table of all figures of the last `make bench` in which RabbitMQ did better than Curfew.
func benchLosses(t *testing.T) string {
	report := readBench(t)
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
				have, rival := fmt.Sprintf("%.3g", figure.mine), fmt.Sprintf("%.3g", figure.other)
				if have == rival { // a rate that was asked for, for example, which both kept
					continue
				}
				if figure.more && figure.mine < figure.other || !figure.more && figure.mine > figure.other {
					losses++
					out.row(mine.Item, mine.Work, figure.name, fmt.Sprintf("%s%s (%s)", have, figure.unit, mine.Side), fmt.Sprintf("%s%s (%s)", rival, figure.unit, other.Side))
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
