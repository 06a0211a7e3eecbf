package message

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/policy"
)

// FuzzExpiration: what is read is what the text says, and nothing else is.
func FuzzExpiration(f *testing.F) {
	for _, text := range []string{"0", "007", "+5", "-0", "-1", "", "+", "1e3", "3153600000000", "315360000000", "315360000001", "18446744073709551617", "00000000000000000000000009", "922337203685477", "9223372036854775807", "922337203685478"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := ParseExpiration(text)
		want, parseErr := strconv.ParseInt(string(text), 10, 64)
		if parseErr == nil && policy.IsNever(want) {
			require.NoError(t, err)
			require.EqualValues(t, -1, n)
			return
		}
		if parseErr != nil || want < 0 || want > policy.MaxTTLMillis {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, n)
	})
}

func BenchmarkExpiration(b *testing.B) {
	text := []byte("3600000")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseExpiration(text); err != nil {
			b.Fatal(err)
		}
	}
}
