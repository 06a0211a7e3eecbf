package telemetry

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParentIsRead(t *testing.T) {
	for text, sampled := range map[string]bool{
		sampledParent: true,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00":            false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03":            true,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":            true,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes": true,
	} {
		p, ok := parseParent([]byte(text))
		require.True(t, ok, text)
		assert.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(p.trace[:]))
		assert.Equal(t, "b7ad6b7169203331", hex.EncodeToString(p.span[:]))
		assert.Equal(t, sampled, p.sampled(), text)
	}
}

// What anybody may write there.
var hostileParents = []string{
	"", "-", "00", "00-", sampledParent[:54], sampledParent + "0", sampledParent + "-00", " " + sampledParent, sampledParent + "\n",
	strings.ToUpper(sampledParent),
	"ff" + sampledParent[2:], "cc" + sampledParent[2:] + "x", "0g" + sampledParent[2:],
	strings.Replace(sampledParent, "-", "_", 1), strings.ReplaceAll(sampledParent, "-", "00"),
	"00-00000000000000000000000000000000-b7ad6b7169203331-01",
	"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
	"00-0af7651916cd43dd8448eb211c8031\xff\xfe-b7ad6b7169203331-01",
	strings.Repeat("\x00", 55), strings.Repeat("-", 55), strings.Repeat("a", 1<<20),
}

func TestWhatIsNoParent(t *testing.T) {
	for _, text := range hostileParents {
		_, ok := parseParent([]byte(text))
		assert.False(t, ok, "%.80q", text)
	}
}

func FuzzParseParent(f *testing.F) {
	for _, text := range append(hostileParents, sampledParent) {
		f.Add([]byte(text[:min(len(text), 100)]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, ok := parseParent(text)
		if !ok {
			return
		}
		assert.Equal(t, string(text[2:55]), fmt.Sprintf("-%x-%x-%02x", p.trace, p.span, p.flags))
	})
}

func TestStateIsPassedOnIfItCanBe(t *testing.T) {
	long := strings.Repeat("a", 512)
	for text, want := range map[string]string{
		"": "", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7": "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
		long: long, long + "a": "", "a=b\r\nx": "", "a=\xff": "", "a=ü": "",
	} {
		assert.Equal(t, want, parseState([]byte(text)))
	}
}

func TestSamplers(t *testing.T) {
	parents := []string{sampledParent, sampledParent[:53] + "00", "", "nonsense"}
	for name, want := range map[string][4]bool{
		"always_on":                {true, true, true, true},
		"always_off":               {},
		"traceidratio":             {true, true, true, true},
		"parentbased_always_on":    {true, false, true, true},
		"parentbased_always_off":   {true, false, false, false},
		"parentbased_traceidratio": {true, false, true, true},
	} {
		s := Samplers(1)[name]
		for i, parent := range parents {
			assert.Equal(t, want[i], s.samples([]byte(parent)), "%s %q", name, parent)
		}
	}
	for name, s := range Samplers(0) {
		assert.Equal(t, strings.HasSuffix(name, "always_on"), s.samples(nil), name)
	}
	taken := 0
	for s := Samplers(0.25)["parentbased_traceidratio"]; taken < 1000; {
		if s.samples(nil) { // never, and this would not end
			taken++
		}
	}
}
