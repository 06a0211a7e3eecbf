package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	g "maragu.dev/gomponents"
)

func TestNumbersAndTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s", 90 * time.Second: "1 min 30 s", time.Hour: "1 h",
		26 * time.Hour: "1 d 2 h", -time.Second: "-1 s",
	} {
		require.Equal(t, want, Span(d))
	}
	require.Equal(t, "1,234,567", Number(1234567))
	require.Equal(t, "-1,000", Number(-1000))
	require.Equal(t, "999", Number(999))
	require.Equal(t, "1.5 MiB", Bytes(3<<19))
	require.Equal(t, "in 5 s", Until(15_000, 10_000))
	require.Equal(t, "5 s ago", Until(5_000, 10_000))
	require.Equal(t, "now", Until(9_500, 10_000))
}

// TestClock: a time of another day has the day.
func TestClock(t *testing.T) {
	now := time.Now().UTC()
	for _, days := range []int{-1, 1, 365, 366} {
		at := now.AddDate(0, 0, days)
		require.Equal(t, at.Format("2 Jan 15:04:05"), Clock(at.UnixMilli()))
	}
	require.Contains(t, []string{now.Format("15:04:05"), now.Format("2 Jan 15:04:05")}, Clock(now.UnixMilli())) // midnight may have passed
}

// TestAdvice: commands are code, whatever they name.
func TestAdvice(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Advice("Keep it: `curfew policy set a '<b>'`. Then wait.").Render(&b))
	require.Equal(t, `Keep it: <span class="command"><code>curfew policy set a &#39;&lt;b&gt;&#39;</code> `+
		`<button type="button" class="quiet" data-copy="" aria-label="Copy curfew policy set a &#39;&lt;b&gt;&#39;">Copy</button></span>. Then wait.`, b.String())
}

func TestSentence(t *testing.T) {
	require.Equal(t, "Übung macht", Sentence("übung macht"))
	require.Empty(t, Sentence(""))
	require.Equal(t, "5 in", Sentence("5 in"))
}

func TestVisible(t *testing.T) {
	require.Equal(t, "(empty)", Visible(""))
	require.Equal(t, `a\u202eb`, Visible("a\u202eb"))
	require.Equal(t, `a\x00\n`, Visible("a\x00\n"))
	require.Equal(t, `\xff`, Visible("\xff"))
	require.Equal(t, "naïve 订单 b", Visible("naïve 订单 b"))
	require.Less(t, len(Visible(strings.Repeat("ä", 10_000))), 1100)
}

// TestLinesEndBetweenTheWordsOfNames, and not within a number or a time.
func TestLinesEndBetweenTheWordsOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"orders.eu-west_a/b:c": "orders.<wbr>eu-<wbr>west_<wbr>a/<wbr>b:<wbr>c", "q": "q", "<a.b>": "&lt;a.<wbr>b&gt;", "": "(empty)",
		"late by 1.5 s at 04:10:47": "late by 1.5 s at 04:10:47", "a..b.": "a..<wbr>b.",
	} {
		var out strings.Builder
		require.NoError(t, Name(name).Render(&out))
		require.Equal(t, want, out.String())
	}
	var out strings.Builder
	require.NoError(t, g.Group{Faint("at orders.eu"), Bold("x/y"), Faint("")}.Render(&out))
	require.Equal(t, `<span class="faint">at orders.<wbr>eu</span><b>x/<wbr>y</b><span class="faint"></span>`, out.String())
}
