package amqp

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTableOfEveryTypeRoundTrips(t *testing.T) {
	want := everyType()
	raw := AppendTable(nil, want)
	require.Equal(t, raw, AppendTable(nil, want), "sorted keys make equal octets")
	got, rest, err := ParseTable(raw, Limits{})
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, want, got)
	clear(raw)
	require.Equal(t, want, got, "nothing aliases the input")
}

func TestAnyTableRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTable(t, 3)
		raw := AppendTable(nil, want)
		got, rest, err := ParseTable(raw, Limits{})
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, want, got)
		require.Equal(t, raw, AppendTable(nil, got))
	})
}

func drawTable(t *rapid.T, depth int) Table {
	table := Table{}
	for _, key := range rapid.SliceOfN(rapid.StringN(0, 20, 60), 0, 4).Draw(t, "keys") {
		table[key] = drawValue(t, depth)
	}
	return table
}

func drawValue(t *rapid.T, depth int) any {
	kinds := []*rapid.Generator[any]{
		rapid.Just(any(nil)), rapid.Bool().AsAny(), rapid.String().AsAny(),
		rapid.SliceOfN(rapid.Byte(), 0, 9).AsAny(), rapid.Int8().AsAny(), rapid.Byte().AsAny(),
		rapid.Int16().AsAny(), rapid.Uint16().AsAny(), rapid.Int32().AsAny(), rapid.Uint32().AsAny(),
		rapid.Int64().AsAny(), rapid.Float32().AsAny(), rapid.Float64().AsAny(),
		rapid.Custom(func(t *rapid.T) any { return Timestamp(rapid.Uint64().Draw(t, "seconds")) }),
		rapid.Custom(func(t *rapid.T) any {
			return Decimal{rapid.Byte().Draw(t, "scale"), rapid.Int32().Draw(t, "value")}
		}),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Custom(func(t *rapid.T) any { return drawTable(t, depth-1) }),
			rapid.Custom(func(t *rapid.T) any { return []any{drawValue(t, depth-1)} }))
	}
	return rapid.OneOf(kinds...).Draw(t, "value")
}

func TestTableReadsWhatOtherClientsWrite(t *testing.T) {
	for name, c := range map[string]struct {
		entries string
		want    Table
	}{
		"L is signed too":     {"\x01aL\xff\xff\xff\xff\xff\xff\xff\xfe", Table{"a": int64(-2)}},
		"any octet is a bool": {"\x01at\x07", Table{"a": true}},
		"first of twice":      {"\x01aS\x00\x00\x00\x011\x01aS\x00\x00\x00\x012", Table{"a": "1"}},
		"infinity":            {"\x01af\x7f\x80\x00\x00", Table{"a": float32(math.Inf(1))}},
	} {
		got, _, err := ParseTable(lengthed(c.entries), Limits{})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
		got, err = ParseTableEntries([]byte(c.entries), Limits{})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestConvenienceTypes(t *testing.T) {
	raw := AppendTable(nil, Table{"int": -5, "uint64": uint64(math.MaxInt64), "time": time.Unix(17, 999), "nil": Table(nil)})
	got, _, err := ParseTable(raw, Limits{})
	require.NoError(t, err)
	require.Equal(t, Table{"int": int64(-5), "uint64": int64(math.MaxInt64), "time": Timestamp(17), "nil": Table{}}, got)
	require.Equal(t, make([]byte, 4), AppendTable(nil, nil))
}

func TestMalformedTables(t *testing.T) {
	for name, c := range map[string]struct{ raw, text string }{
		"nothing":            {"", "cut short"},
		"half a length":      {"\x00\x00\x00", "cut short"},
		"length past end":    {"\x00\x00\x00\x02a", "length 2, only 1 octets follow"},
		"negative length":    {"\xff\xff\xff\xff", "length 4294967295, only 0 octets follow"},
		"octets after it":    {"\x00\x00\x00\x00x", "1 octets after it"},
		"name past end":      {string(lengthed("\x05abc")), "cut short"},
		"name without value": {string(lengthed("\x01a")), "cut short"},
		"unknown type":       {string(lengthed("\x01aZ")), "unknown type 'Z'"},
		"0-8 short string":   {string(lengthed("\x01aU\x00\x00")), "unknown type 'U'"},
		"short integer":      {string(lengthed("\x01aI\x00\x00\x00")), "cut short"},
		"string length":      {string(lengthed("\x01aS\x00\x00")), "cut short"},
		"string past end":    {string(lengthed("\x01aS\x00\x00\x00\x02x")), "length 2, only 1 octets follow"},
		"negative string":    {string(lengthed("\x01aS\x80\x00\x00\x00")), "length 2147483648, only 0 octets follow"},
		"nested past end":    {string(lengthed("\x01aF\x00\x00\x00\x03\x01b")), "length 3, only 2 octets follow"},
		"nested too short":   {string(lengthed("\x01aF\x00\x00\x00\x02\x01bV")), "cut short"},
		"array cut":          {string(lengthed("\x01aA\x00\x00\x00\x02s\x00")), "cut short"},
		"array in a lie":     {string(lengthed("\x01aA\xff\xff\xff\xff")), "length 4294967295, only 0 octets follow"},
	} {
		t.Run(name, func(t *testing.T) {
			e := requireCode(t, SyntaxError, ValidateTable([]byte(c.raw), Limits{}))
			require.Equal(t, "SYNTAX_ERROR - malformed table: "+c.text, e.Text)
			if name == "octets after it" {
				return // they belong to whoever reads on
			}
			_, _, err := ParseTable([]byte(c.raw), Limits{})
			require.Equal(t, e, err)
		})
	}
}

func TestTableCutAnywhereIsRefused(t *testing.T) {
	raw := AppendTable(nil, everyType())
	body := string(raw[4:])
	for cut := range raw {
		requireCode(t, SyntaxError, ValidateTable(raw[:cut], Limits{}), cut)
	}
	boundaries := 0
	for cut := range body {
		if ValidateTable(lengthed(body[:cut]), Limits{}) == nil {
			boundaries++ // a cut between two entries leaves a smaller table
		}
	}
	require.Equal(t, len(everyType()), boundaries)
}

// nested returns levels tables inside one another.
func nested(levels int) []byte {
	raw := []byte{0, 0, 0, 0}
	for range levels - 1 {
		raw = lengthed("\x01tF" + string(raw))
	}
	return raw
}

func TestTableDepthLimit(t *testing.T) {
	require.NoError(t, ValidateTable(nested(16), Limits{}))
	requireCode(t, SyntaxError, ValidateTable(nested(17), Limits{}))
	require.NoError(t, ValidateTable(nested(3), Limits{Depth: 3}))
	requireCode(t, SyntaxError, ValidateTable(nested(4), Limits{Depth: 3}))

	arrays := ""
	for range 15 {
		arrays = "A" + string(lengthed(arrays))
	}
	require.NoError(t, ValidateTable(lengthed("\x01a"+arrays), Limits{}))
	arrays = "A" + string(lengthed(arrays))
	requireCode(t, SyntaxError, ValidateTable(lengthed("\x01a"+arrays), Limits{}))
}

func TestTableCountLimitsAreInAggregate(t *testing.T) {
	entries := func(n int) string { return strings.Repeat("\x00V", n) }
	require.NoError(t, ValidateTable(lengthed(entries(1024)), Limits{}))
	requireCode(t, SyntaxError, ValidateTable(lengthed(entries(1025)), Limits{}))

	split := entries(511) + "\x00F" + string(lengthed(entries(512)))
	require.NoError(t, ValidateTable(lengthed(split), Limits{}))
	requireCode(t, SyntaxError, ValidateTable(lengthed(split+entries(1)), Limits{}))

	array := func(n int) string { return "\x00A" + string(lengthed(strings.Repeat("V", n))) }
	require.NoError(t, ValidateTable(lengthed(array(4095)), Limits{}))
	requireCode(t, SyntaxError, ValidateTable(lengthed(array(4096)), Limits{}))
	requireCode(t, SyntaxError, ValidateTable(lengthed(array(2000)+array(2095)), Limits{}))
	requireCode(t, SyntaxError, ValidateTable(lengthed(entries(2)), Limits{Entries: 1}))
	requireCode(t, SyntaxError, ValidateTable(lengthed(entries(2)), Limits{Values: 1}))
}

// hostileTables are cheap to send and expensive to build.
func hostileTables() map[string][]byte {
	return map[string][]byte{
		"20,000 deep":   nested(20_000),
		"10^6 voids":    lengthed(strings.Repeat("\x00V", 1_000_000)),
		"10^6 in array": lengthed("\x00A" + string(lengthed(strings.Repeat("V", 1_000_000)))),
		"empty arrays":  lengthed("\x00A" + string(lengthed(strings.Repeat("A\x00\x00\x00\x00", 26_000)))),
		"empty tables":  lengthed("\x00A" + string(lengthed(strings.Repeat("F\x00\x00\x00\x00", 26_000)))),
	}
}

// A refusal examines no more than the limits allow and allocates only itself, however large
// the input is.
func TestHostileTablesAreRefusedCheaply(t *testing.T) {
	for name, raw := range hostileTables() {
		var err error
		allocs := testing.AllocsPerRun(10, func() { _, _, err = ParseTable(raw, Limits{}) })
		requireCode(t, SyntaxError, err, name)
		require.LessOrEqual(t, allocs, 12.0, name)

		payload := append(binary.BigEndian.AppendUint32(nil, uint32(ConnectionStartOkID)), raw...)
		_, err = ParseMethod(payload, Limits{Depth: 4, Entries: 128, Values: 128})
		requireCode(t, SyntaxError, err, name)

		props := append([]byte{0x20, 0}, raw...)
		_, err = ParseProperties(props, Limits{})
		requireCode(t, SyntaxError, err, name)
	}
}

// The most that a table within the limits can make the parser allocate.
func TestAllocationWithinTheLimitsIsBounded(t *testing.T) {
	array := strings.Repeat("F\x00\x00\x00\x00", 4000)
	raw := lengthed("\x00A" + string(lengthed(array)))
	allocs := testing.AllocsPerRun(5, func() { _, _, _ = ParseTable(raw, Limits{}) })
	require.Less(t, allocs, 3.0*defaultValues)
}

func TestAppendTablePanicsOnWhatIsNoTable(t *testing.T) {
	for name, table := range map[string]Table{
		"type":     {"a": struct{}{}},
		"map":      {"a": map[string]any{}},
		"uint":     {"a": uint(1)},
		"strings":  {"a": []string{"x"}},
		"uint64":   {"a": uint64(math.MaxInt64 + 1)},
		"key":      {strings.Repeat("k", 256): 1},
		"in table": {"a": Table{"b": Table{"c": complex64(0)}}},
		"in array": {"a": []any{1, []any{complex64(0)}}},
	} {
		require.Panics(t, func() { AppendTable(nil, table) }, name)
	}
}

func TestAppendTableLeavesWhatWasBefore(t *testing.T) {
	b := AppendTable([]byte("before"), Table{"a": "b"})
	require.True(t, bytes.HasPrefix(b, []byte("before")))
	require.NoError(t, ValidateTable(b[6:], Limits{}))
}
