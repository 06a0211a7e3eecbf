package keeper

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/queuefacts"
)

var write = flag.Bool("write", false, "write what the core answers into the scripts")

// TestScripts: each script in testdata is a conversation with the core, to be read like one: inputs, and below each the state if it changes and what
// the core asks for. A line "after 1s" lets time pass, with ticks when the core wants them.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := newScript().run(t, string(text))
			if *write {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			require.Equal(t, string(text), got)
		})
	}
}

type script struct {
	c     *core
	now   deadline.Instant
	facts Facts
	state string
	out   strings.Builder
}

func newScript() *script {
	s := &script{now: deadline.Instant(1_000_000_000), facts: plainFacts(queuefacts.Quorum)}
	cfg := testConfig()
	cfg.perChannel, cfg.limit = 4, 6
	s.c = newCore(cfg, s.now)
	return s
}

func (s *script) run(t *testing.T, text string) string {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "\t") {
			continue // an answer
		}
		s.out.WriteString(line + "\n")
		if line != "" && line[0] != '#' {
			s.input(t, strings.Fields(line))
			s.answer("")
		}
	}
	return s.out.String()
}

func (s *script) input(t *testing.T, words []string) {
	number := func(i int) (n int) {
		_, err := fmt.Sscan(words[i], &n)
		require.NoError(t, err, words)
		return n
	}
	span := func(i int) time.Duration {
		d, err := time.ParseDuration(words[i])
		require.NoError(t, err, words)
		return d
	}
	c, id := s.c, uint32(0)
	if len(words) > 1 && strings.Contains(" opened deliver ended returned lost ", " "+words[0]+" ") {
		id = uint32(number(1))
	}
	switch words[0] {
	case "connect":
		c.connect(s.now, s.facts)
	case "disconnect":
		c.disconnect(s.now, "connection lost")
	case "looked": // looked READY CONSUMERS
		c.looks.askedAt = s.now
		c.looked(s.now, c.line.epoch, number(1), number(2), other, "", true)
	case "no-queue":
		c.looked(s.now, c.line.epoch, 0, 0, queueGone, "", false)
	case "opened":
		c.opened(s.now, id)
	case "deliver": // deliver CHANNEL TAG TTL [redelivered]
		c.deliver(s.now, id, uint64(number(2)), message{fingerprint: uint64(number(2)), ttl: span(3), size: 1, redelivered: len(words) > 4})
	case "ended":
		c.ended(s.now, id)
	case "returned":
		c.returned(s.now, id)
	case "lost": // lost CHANNEL
		c.lost(s.now, id, other, "")
	case "consumer":
		c.consumerSeen(s.now)
	case "stop":
		c.stop(s.now, stopped)
	case "after":
		from := s.now
		for end := s.now.Add(span(1)); s.now < end; {
			if s.now = max(s.now, min(end, c.wake())); s.now < end || c.wake() <= end {
				c.tick(s.now)
				s.answer(fmt.Sprintf("+%v ", s.now.Sub(from)))
			}
		}
	default:
		t.Fatal("unknown input ", words)
	}
}

// answer writes what the core asks for; looks are left out, since there are two a second.
func (s *script) answer(when string) {
	names := map[action]string{consume: "consume", cancel: "cancel", giveBack: "give back", giveBackAll: "give back all of", drop: "drop", learn: "read the facts"}
	if state := fmt.Sprintf("%v: %s", s.c.state, s.c.reason.text); state != s.state {
		s.state = state
		s.out.WriteString("\t" + when + state + "\n")
	}
	for _, cmd := range s.c.line.out {
		switch cmd.do {
		case look:
			s.c.looks.asked = false
		case giveBack:
			fmt.Fprintf(&s.out, "\t%s%s %d/%d\n", when, names[cmd.do], cmd.stretch, cmd.tag)
		case learn:
			fmt.Fprintf(&s.out, "\t%s%s\n", when, names[cmd.do])
		default:
			fmt.Fprintf(&s.out, "\t%s%s %d\n", when, names[cmd.do], cmd.stretch)
		}
	}
	s.c.line.out = s.c.line.out[:0]
	for _, e := range s.c.given.expired {
		late := fmt.Sprintf("late by %v", e.GivenBack.Sub(e.Deadline))
		if e.AgeUnknown {
			late = "of unknown age"
		}
		fmt.Fprintf(&s.out, "\t%sexpired: %d, %s\n", when, e.Fingerprint, late)
	}
	s.c.given.expired = s.c.given.expired[:0]
}
