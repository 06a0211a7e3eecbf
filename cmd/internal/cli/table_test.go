package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	head = []string{"QUEUE", "TYPE?", "READY", "STATE!", "POLICY?", "BODY"}
	rows = [][]string{
		{"orders", "classic", "12", "critical", "ttl", strings.Repeat("body ", 40)},
		{"注文", "quorum", "3", "ok", "-", "short"},
	}
)

func printed(t *testing.T, p Printer) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, p.Print(&out, nil, head, rows))
	return out.String()
}

// TestNoLineIsWiderThanTheTerminal, down to what cannot hold anything.
func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for width := 6; width < 300; width++ {
		out := printed(t, Printer{width: width})
		for line := range strings.Lines(out) {
			assert.LessOrEqual(t, runewidth.StringWidth(strings.TrimSuffix(line, "\n")), width, out)
		}
		assert.Contains(t, out, "QUEUE")
	}
}

// TestTheLastOptionalColumnGoesFirst, and the widest is cut before any is left out.
func TestTheLastOptionalColumnGoesFirst(t *testing.T) {
	for width, want := range map[int]string{
		300: "QUEUE TYPE READY STATE POLICY BODY",
		80:  "QUEUE TYPE READY STATE POLICY BODY",
		60:  "QUEUE READY STATE BODY",
		50:  "QUEUE READY STATE BODY",
		40:  "QUEUE READY STATE BODY",
		14:  "QUEUE READY",
	} {
		line, _, _ := strings.Cut(printed(t, Printer{width: width}), "\n")
		assert.Equal(t, want, strings.Join(strings.Fields(line), " "), width)
	}
	assert.Contains(t, printed(t, Printer{width: 80}), "…")
}

// TestAPipeGetsEverything: whatever is read from a pipe does not depend on a terminal.
func TestAPipeGetsEverything(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	p := Printer{Color: "auto"}
	p.Fit(write, "")
	out := printed(t, p)
	assert.Contains(t, out, strings.TrimRight(rows[0][5], " "))
	assert.NotContains(t, out, "\x1b")
	assert.Equal(t, "2030-01-02T03:04:05.006Z", p.Time(time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)))
	assert.Equal(t, "-", p.Time(time.Time{}))
}

func TestColors(t *testing.T) {
	assert.Contains(t, printed(t, Printer{Color: "always"}), red+"critical"+reset)
	assert.NotContains(t, printed(t, Printer{Color: "never"}), "\x1b")
	p := Printer{Color: "auto"}
	p.Fit(os.Stdout, "1")
	assert.Equal(t, "never", p.Color)
	assert.ErrorContains(t, (&Printer{Color: "pink"}).Check(), "auto, always or never")
	assert.ErrorContains(t, (&Printer{Output: "xml"}).Check(), "table or json")
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s ago", 59 * time.Second: "59s ago", 200 * time.Second: "3m ago", 5 * time.Hour: "5h ago", 49 * time.Hour: "2d ago", -90 * time.Second: "in 1m",
	} {
		assert.Equal(t, want, age(d))
	}
}

// TestOutlandishText: what steers a terminal is escaped, in cells and headings.
func TestOutlandishText(t *testing.T) {
	var out strings.Builder
	require.NoError(t, new(Printer).Print(&out, nil, []string{"\x1b[2Jname"}, [][]string{{"a\nb\x1b"}}))
	assert.Equal(t, `\x1b[2Jname`+"\n"+`a\nb\x1b`+"\n", out.String())
}

// TestWhatIsToBeWholeIsWhole: the reason of an alert is not cut.
func TestWhatIsToBeWholeIsWhole(t *testing.T) {
	long := strings.Repeat("reason ", 30) + "end"
	for _, width := range []int{1, 10, 80} {
		var out strings.Builder
		require.NoError(t, (&Printer{width: width}).Print(&out, nil, []string{"STATE", "MORE?", "WHY="}, [][]string{{"firing", "x", long}}))
		assert.Contains(t, strings.Join(strings.Fields(out.String()), " "), long)
		assert.NotContains(t, out.String(), "MORE")
		for line := range strings.Lines(out.String()) {
			assert.True(t, width < 80 || len(line) <= width+1, line)
		}
	}
}

// TestACommandCanBeCopied from a folded text: a shell reads the same words, of which none is broken.
func TestACommandCanBeCopied(t *testing.T) {
	const command = `curfew queue declare orders.dead-letters --vhost / && curfew policy set 'it'\''s a-b' '{"dead-letter-exchange":""}' --apply-to queues`
	text := "Messages expire-unconsumed in it's queue: use `" + command + "`, then see a-word."
	for width := 26; width < 200; width++ {
		lines := strings.Split(fold(text, width), "\n")
		for _, line := range lines {
			if !strings.Contains(line, `'{`) {
				assert.LessOrEqual(t, runewidth.StringWidth(line), width, line)
			}
		}
		_, after, _ := strings.Cut(strings.Join(lines, "\n    "), "`")
		copied, _, _ := strings.Cut(after, "`")
		assert.Equal(t, command, strings.ReplaceAll(copied, " \\\n    ", " "), width)
	}
}
