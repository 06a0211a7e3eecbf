package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/integration/bench/load"
)

// TestMain is the load process when the program under test starts one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		spec := ""
		if len(os.Args) > 2 {
			spec = os.Args[2]
		}
		exit(runChild(os.Args[1], spec))
	}
	os.Exit(m.Run())
}

// TestRelayBoundsTheClient: the ceiling delivers every message, so that it is one.
func TestRelayBoundsTheClient(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	defer b.close()
	side, err := b.relay()
	require.NoError(t, err)
	for _, s := range []load.Spec{
		{Size: 100, Producers: 2, Consumers: 2, Ack: "each"},
		{Size: 70_000, Producers: 1, Consumers: 1, Ack: "auto"},
		{Size: 16, Producers: 1, Consumers: 1, Ack: "multiple", Window: 10},
		{Size: 100, Producers: 1, Consumers: 1, Ack: "each", Client: "amqp091"},
	} {
		s.URL, s.Count, s.Duration = side.broker.url, 1000, 60e9
		r, err := inProcess[load.Result]("throughput", s)
		require.NoError(t, err)
		require.EqualValues(t, 1000, r.TotalConsumed)
	}
}

func TestReportIsWritten(t *testing.T) {
	dir := t.TempDir()
	var r report
	r.begin(true, "")
	for pass := range 3 {
		r.row("P1", "100 B", "Curfew").add(load.Result{Consumed: float64(1000 * pass), TotalConsumed: 10}, 20e3, true)
	}
	r.goal(goal{Goal: "P1", What: "100 B", Want: ">= 12x", Got: "3x", Met: false})
	line := r.curve("queues", "queues, 1P1C", "Curfew")
	line.addPoint(1, 1000)
	line.addPoint(10_000, 0)
	r.finish()
	require.NoError(t, r.save(dir))

	text, err := os.ReadFile(filepath.Join(dir, "goals.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "\n| P1 | 100 B | >= 12x | 3x |  | **NOT met** |\n")

	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(data))
	svg, err := os.Open(filepath.Join(dir, "curves.svg"))
	require.NoError(t, err)
	defer svg.Close()
	for d := xml.NewDecoder(svg); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
}

func TestMedianAndSpread(t *testing.T) {
	var s stat
	require.Zero(t, s.median())
	for _, v := range []float64{5, 1, 9} {
		s.add(v)
	}
	least, most := s.spread()
	require.Equal(t, []float64{5, 1, 9}, []float64{s.median(), least, most})
	s.add(7)
	require.EqualValues(t, 6, s.median())
}

func TestRatioAndItsPasses(t *testing.T) {
	a, b := row{Rate: stat{[]float64{50, 5, 60}}}, row{Rate: stat{[]float64{100, 10, 50}}}
	require.InDelta(t, 1, ratio(&a, &b), 1e-9)
	require.Equal(t, "1.00 (passes 0.50-1.20)", ratioWithSpread(&a, &b))
	require.Zero(t, ratio(&a, &row{}))
	require.Equal(t, "0.00", ratioWithSpread(&a, &row{}))
}

func TestSidesTakeTurns(t *testing.T) {
	b := bench{passes: 3}
	var order []int
	require.NoError(t, b.alternate(2, func(i int) error { order = append(order, i); return nil }))
	require.Equal(t, []int{0, 1, 1, 0, 0, 1}, order)
}

func TestItemsAreChosen(t *testing.T) {
	all, err := chooseItems("")
	require.NoError(t, err)
	require.Len(t, all, len(items))
	some, err := chooseItems("p6, curves")
	require.NoError(t, err)
	require.Equal(t, []string{"P6", "curves"}, []string{some[0].name, some[1].name})
	_, err = chooseItems("P14")
	require.ErrorContains(t, err, `no item "P14"`)
}

func TestOwnProcessIsRead(t *testing.T) {
	own, _ := memory(os.Getpid())
	require.Positive(t, own)
	for sum := 0; preciseCPU(os.Getpid()) < 30e6; {
		sum++
	}
	require.Positive(t, treeCPU(os.Getpid()))
}
