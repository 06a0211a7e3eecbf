package commands

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/node"
)

// screen is curfew top at work: what it shows, and its keyboard.
type screen struct {
	t     *testing.T
	mu    sync.Mutex
	text  string
	keys  io.WriteCloser
	ended chan error
}

func startTop(r *running, width, height int) *screen {
	in, keys := io.Pipe()
	s := &screen{t: r.t, keys: keys, ended: make(chan error, 1)}
	c := topCommand(func(ctx context.Context, out io.Writer, args []string) error {
		root := Tree(node.Build{})
		root.SetArgs(args)
		root.SetOut(out)
		root.SetErr(out)
		return root.ExecuteContext(ctx)
	}, tea.WithInput(in), tea.WithWindowSize(width, height), tea.WithFilter(func(m tea.Model, msg tea.Msg) tea.Msg {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.text = ansi.Strip(m.View().Content)
		return msg
	}))
	c.SetArgs(r.flags)
	c.SetOut(io.Discard)
	go func() { s.ended <- c.ExecuteContext(r.t.Context()) }()
	return s
}

// press presses keys; shows waits until the screen has a text.
func (s *screen) press(keys string) {
	_, err := io.WriteString(s.keys, keys)
	require.NoError(s.t, err)
}

func (s *screen) shows(text string) string {
	s.t.Helper()
	read := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.text
	}
	for end := time.Now().Add(time.Minute); !strings.Contains(read(), text); time.Sleep(50 * time.Millisecond) {
		s.press("x") // it means nothing, but what the last message has changed is seen when the next one comes
		if time.Now().After(end) {
			require.Fail(s.t, "it never shows "+text, "%s", read())
		}
	}
	return read()
}

// TestTop: from the verdict down to a queue, its messages and its dead letters, whose replay is done after its dry run; at 80 columns, where what
// a queue has lost is seen, and headings stay in sight.
func TestTop(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(3)
	for i := range 30 {
		_, err := ch.QueueDeclare(fmt.Sprintf("queue-of-service-%02d", i), false, false, true, false, nil)
		require.NoError(t, err)
	}
	s := startTop(r, 80, 24)
	first := s.shows("orders.dead")
	require.True(t, strings.HasPrefix(first, "CURFEW"), first)
	for line := range strings.Lines(first) {
		require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), 80)
	}
	require.Equal(t, 24, strings.Count(first, "\n")+1)
	s.shows("orders (vhost /): 3 messages expired")
	s.press("/nothing like it\r")
	s.shows("none of ")
	s.press("\x7f")
	s.shows("3 messages expired")
	s.press("aa") // it is asked for first
	s.shows(", acknowledged by guest")
	s.press("t")
	s.shows("  t risk")
	s.shows(" OUT") // the heading, also at 80 columns
	s.press("t")
	s.shows("  t traffic")
	s.press("\r")
	s.shows("warning: Messages expire") // as queue show has it
	s.press("\x7f")
	s.shows("Incidents and queues")
	s.press("G")
	require.Regexp(t, `VHOST +QUEUE +(?:PURPOSE +)?READY +UNACKED +AT RISK +LOST +TO DLQ`, s.shows("queue-of-service-29"))
	s.press("/orders.dead\r")
	s.shows("with orders.dead")
	s.press("r")
	s.shows("y replay these now")
	s.press("y")
	s.shows("Replays")
	require.Contains(t, s.shows("done"), "orders.dead") // it is followed to its end
	r.waits("orders.dead", 3)                           // they expire again
	s.press("\x7f")                                     // back
	s.shows("Incidents and queues")
	s.press("\x1b[B\x1b[A\r") // down, up, Enter
	s.shows("CONSUMER")
	s.press("d")
	s.shows("orders.dead, dead letters")
	s.press("q")
	require.NoError(t, <-s.ended)
	require.NoError(t, s.keys.Close())
}

// TestTopNeedsATerminal: a pipe gets no full screen.
func TestTopNeedsATerminal(t *testing.T) {
	setenv(t)
	code, _, errOut := runCommand(t, "top")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "curfew status --watch")
}
