package scheduler

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

func TestTextForm(t *testing.T) {
	for want, s := range map[string]deadline.Ref{
		"1795217348123456|00000000000000ff|00000000000000000042": {Deadline: 1_795_217_348_123_456, Queue: 255, Seq: 42},
		"0000000000000001|0000000000000000|00000000000000000000": {Deadline: 1},
		"9007199254740991|ffffffffffffffff|18446744073709551615": {Deadline: MaxDeadline, Queue: 1<<64 - 1, Seq: 1<<64 - 1},
	} {
		text, err := AppendText([]byte("x"), s)
		require.NoError(t, err)
		require.Equal(t, "x"+want, string(text))
		back, err := ParseText(string(text[1:]))
		require.NoError(t, err)
		require.Equal(t, s, back)
	}
}

func TestRefusedTexts(t *testing.T) {
	for _, text := range []string{
		"",
		"1795217348123456|00000000000000ff|0000000000000000004",
		"1795217348123456|00000000000000ff|000000000000000000042",
		"1795217348123456|00000000000000FF|00000000000000000042",
		"1795217348123456|00000000000000fg|00000000000000000042",
		"1795217348123456 00000000000000ff|00000000000000000042",
		"1795217348123456|00000000000000ff-00000000000000000042",
		"179521734812345a|00000000000000ff|00000000000000000042",
		"-795217348123456|00000000000000ff|00000000000000000042",
		"1795217348123456|00000000000000ff|18446744073709551616",
		"1795217348123456|00000000000000ff|99999999999999999999",
		"0000000000000000|00000000000000ff|00000000000000000042",
		"9007199254740992|00000000000000ff|00000000000000000042",
		"1795217348123|00000000000000ff|00000000000000000042", // ms, of an older Curfew
	} {
		_, err := ParseText(text)
		require.ErrorIs(t, err, errText, text)
	}
}

func TestRefusedInstants(t *testing.T) {
	for _, at := range []deadline.Instant{-1 << 63, -1, 0, MaxDeadline + 1, 1<<63 - 1} {
		b, err := AppendText([]byte("x"), deadline.Ref{Deadline: at})
		require.ErrorIs(t, err, ErrInstant)
		require.Equal(t, "x", string(b))
	}
}

func TestTextFormAllocatesNothing(t *testing.T) {
	const text = "1795217348123456|8000000000000000|09223372036854775808"
	buf := make([]byte, 0, TextLen)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		shadow, err := ParseText(text)
		back, err2 := AppendText(buf, shadow)
		if err != nil || err2 != nil || string(back) != text {
			t.Error(err, err2, back)
		}
	}))
}

// FuzzParseText: what is accepted is the very text of its shadow.
func FuzzParseText(f *testing.F) {
	f.Add([]byte("1795217348123456|00000000000000ff|00000000000000000042"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseText(string(text))
		if err != nil {
			return
		}
		if again, err := AppendText(nil, s); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%q, %v", again, err)
		}
	})
}

// FuzzTextOrder: texts sort as shadows do.
func FuzzTextOrder(f *testing.F) {
	f.Add(int64(1), uint64(2), uint64(3), int64(1), uint64(2), uint64(4))
	f.Add(int64(999), uint64(255), uint64(9), int64(1000), uint64(16), uint64(10))
	f.Fuzz(func(t *testing.T, d1 int64, q1, s1 uint64, d2 int64, q2, s2 uint64) {
		a, b := deadline.Ref{Deadline: deadline.Instant(d1), Queue: q1, Seq: s1}, deadline.Ref{Deadline: deadline.Instant(d2), Queue: q2, Seq: s2}
		x, err1 := AppendText(nil, a)
		y, err2 := AppendText(nil, b)
		if err1 == nil && err2 == nil && bytes.Compare(x, y) != a.Compare(b) {
			t.Fatalf("%s %s", x, y)
		}
	})
}
