package history

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// history writes the log that a few lines of text describe, a ms apart unless a line
// begins with @ms. Queues q, r and bare are there, the first two with the dead-letter
// queue dead, and bounded, which has a maximum length besides. A message's sum is its
// id, unless sum= says otherwise.
func history(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	log := NewLog(&b)
	for _, q := range []Event{
		{Queue: "q", DeadLetters: "dead"}, {Queue: "r", DeadLetters: "dead"}, {Queue: "bounded", DeadLetters: "dead", MaxLength: true},
		{Queue: "bare"}, {Queue: "dead"}, {Queue: "brief", TTLMillis: new(int64(100)), DeadLetters: "dead"},
	} {
		q.Kind = Declared
		log.Append(q)
	}
	at := int64(0)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		at++
		if ms, ok := strings.CutPrefix(words[0], "@"); ok {
			at, words = number(t, ms), words[1:]
		}
		log.Append(event(t, at*1000, words))
	}
	require.NoError(t, log.Flush())
	return b.Bytes()
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(t, err)
	return n
}

// event reads one line: the kind, then what it needs in the order of its comment.
func event(t *testing.T, at int64, words []string) Event {
	t.Helper()
	e := Event{Kind: Kind(words[0]), At: at}
	var plain []string
	for _, w := range words[1:] {
		name, value, named := strings.Cut(w, "=")
		switch {
		case name == "transient":
		case name == "redelivered":
			e.Redelivered = true
		case !named:
			plain = append(plain, w)
		case name == "ttl":
			e.TTLMillis = new(number(t, value))
		case name == "from":
			e.From, e.Reason, _ = strings.Cut(value, ":")
		case name == "sum":
			e.Sum = value
		default:
			t.Fatalf("unknown word %q", w)
		}
	}
	fill(&e, plain, words)
	return e
}

func fill(e *Event, plain, words []string) {
	switch e.Kind {
	case Ended:
		e.How = plain[0]
	case Publish:
		e.By, e.ID, e.Queues = plain[0], plain[1], plain[2:]
		e.Persistent = words[len(words)-1] != "transient"
		if e.Sum == "" {
			e.Sum = e.ID
		}
	case Confirmed, Refused:
		e.ID = plain[0]
	case Opened:
		e.By, e.Queue = plain[0], plain[1]
	case Delivered, Ack, Reject, Requeue:
		e.By, e.ID, e.Queue = plain[0], plain[1], plain[2]
		if e.Sum == "" && e.Kind == Delivered {
			e.Sum = e.ID
		}
		if e.Kind != Delivered {
			e.Reason = ""
		}
	case Synced, Stored, Closed:
		e.By = plain[0]
	case Cleared:
		e.Queue = plain[0]
	}
}

const published = "started \n publish p m q \n confirmed m \n opened c q \n"

// Each history breaks one rule, or none.
var histories = []struct {
	name   string
	breaks Rule
	text   string
}{
	{"acked", "", published + "delivered c m q \n ack c m q \n drained"},
	{"rejected, then seen dead", "", published + `
		delivered c m q
		reject c m q
		opened d dead
		delivered d m dead from=q:rejected
		ack d m dead from=q
		drained`},
	{"given back and delivered again", "", published + `
		delivered c m q
		requeue c m q
		delivered c m q redelivered
		closed c
		opened c2 q
		delivered c2 m q redelivered
		ack c2 m q
		drained`},
	{"expired at its deadline", "", `
		started
		@10 publish p m q ttl=100
		confirmed m
		opened d dead
		@110 delivered d m dead from=q:expired
		ack d m dead from=q
		drained`},
	{"the queue's time to live is the lower one", "", `
		started
		@10 publish p m brief ttl=500
		confirmed m
		opened d dead
		@110 delivered d m dead from=brief:expired
		ack d m dead from=brief
		drained`},
	{"expired unseen, where there is no dead-letter queue", "", `
		started
		@10 publish p m bare ttl=100
		confirmed m
		@110 drained`},
	{"purged, and gone", "", published + "cleared q \n drained"},
	{"held while its queue was purged", "", published + "delivered c m q \n cleared q \n closed c \n opened c2 q \n delivered c2 m q redelivered \n ack c2 m q \n drained"},
	{"two queues, two copies", "", `
		started
		publish p m q r
		confirmed m
		opened c q
		opened c2 r
		delivered c m q
		delivered c2 m r
		ack c m q
		reject c2 m r
		opened d dead
		delivered d m dead from=r:rejected
		ack d m dead from=r
		drained`},
	{"an end undone by a kill", "", published + `
		delivered c m q
		ack c m q
		ended killed
		started
		opened c2 q
		delivered c2 m q redelivered
		ack c2 m q
		drained`},
	{"a rejection undone by a kill, after the confirm of another message", "", published + `
		delivered c m q
		reject c m q
		synced c
		publish p m2 q
		confirmed m2
		ended killed
		started
		opened c2 q
		delivered c2 m q redelivered`},
	{"a dead letter undone by a kill", "", published + `
		delivered c m q
		reject c m q
		opened d dead
		delivered d m dead from=q:rejected
		ended killed
		started
		opened c2 q
		delivered c2 m q redelivered
		reject c2 m q
		opened d2 dead
		delivered d2 m dead from=q:rejected
		ack d2 m dead from=q
		drained`},
	{"a transient message goes with its process", "", `
		started
		publish p m q transient
		confirmed m
		ended stopped
		started
		drained`},
	{"not confirmed, not there", "", "started \n publish p m q \n ended killed \n started \n drained"},
	{"not confirmed, and there", "", `
		started
		publish p m q
		ended killed
		started
		opened c q
		delivered c m q redelivered
		ack c m q
		drained`},
	{"order after a restart", "", `
		started
		publish p m1 q
		publish p m2 q
		ended killed
		started
		publish p2 m3 q
		opened c q
		delivered c m1 q redelivered
		delivered c m2 q redelivered
		delivered c m3 q
		closed c
		opened c2 q
		delivered c2 m3 q redelivered
		delivered c2 m1 q redelivered`},

	{"never seen again", Lost, published + "drained"},
	{"purged in another queue", Lost, published + "cleared r \n drained"},
	{"published after the purge", Lost, "started \n cleared q \n publish p m q \n confirmed m \n drained"},
	{"purged after its end", Twice, published + "delivered c m q \n ack c m q \n cleared q \n delivered c m q redelivered"},
	{"lost by a kill", Lost, published + "delivered c m q \n ended killed \n started \n drained"},
	{"held at the end by nobody", Lost, published + "delivered c m q \n requeue c m q \n drained"},
	{"lost between two queues", Lost, published + "delivered c m q \n reject c m q \n drained"},
	{"dead letter lost by a kill", Lost, published + `
		delivered c m q
		reject c m q
		opened d dead
		delivered d m dead from=q:rejected
		ended killed
		started
		drained`},
	{"lost in one of two queues", Lost, `
		started
		publish p m q r
		confirmed m
		opened c q
		delivered c m q
		ack c m q
		drained`},
	{"transient, lost in its own life", Lost, "started \n publish p m q transient \n confirmed m \n drained"},
	{"gone before its deadline", Lost, "started \n publish p m bare ttl=100 \n confirmed m \n @50 drained"},
	{"expired, and not dead-lettered", Lost, "started \n publish p m q ttl=100 \n confirmed m \n @500 drained"},

	{"never published", Invented, published + "delivered c x q"},
	{"another body", Altered, published + "delivered c m q sum=other"},
	{"in another queue", Misplaced, published + "opened c2 r \n delivered c2 m r"},
	{"in another dead-letter queue", Misplaced, published + "delivered c m q \n reject c m q \n opened c2 r \n delivered c2 m r from=q:rejected"},
	{"rejected by nobody", Misplaced, published + "opened d dead \n delivered d m dead from=q:rejected"},
	{"expired without a time to live", Misplaced, published + "opened d dead \n delivered d m dead from=q:expired"},
	{"over a limit that is not there", Misplaced, published + "opened d dead \n delivered d m dead from=q:maxlen"},
	{"a ms early", Early, `
		started
		@10 publish p m q ttl=100
		confirmed m
		opened d dead
		@109 delivered d m dead from=q:expired`},
	{"early by the queue's time to live", Early, `
		started
		@10 publish p m brief ttl=500
		confirmed m
		opened d dead
		@109 delivered d m dead from=brief:expired`},
	{"delivered after its deadline", Late, `
		started
		@10 publish p m q ttl=100
		@20 confirmed m
		@221 opened c q
		delivered c m q`},
	{"delivered to a second consumer", Held, published + "opened c2 q \n delivered c m q \n delivered c2 m q redelivered"},
	{"expired while a consumer held it", Held, `
		started
		@10 publish p m q ttl=100
		opened c q
		opened d dead
		delivered c m q
		@150 delivered d m dead from=q:expired`},
	{"back after its ack", Twice, published + "delivered c m q \n ack c m q \n delivered c m q redelivered"},
	{"back after its rejection", Twice, published + "delivered c m q \n reject c m q \n delivered c m q redelivered"},
	{"acked, and dead", Twice, `
		started
		@10 publish p m q ttl=100
		opened c q
		opened d dead
		delivered c m q
		ack c m q
		@150 delivered d m dead from=q:expired`},
	{"dead, and in its queue", Twice, `
		started
		@10 publish p m q ttl=100
		opened c q
		opened d dead
		@150 delivered d m dead from=q:expired
		delivered c m q`},
	{"two dead letters", Twice, `
		started
		@10 publish p m q ttl=100
		opened d dead
		@150 delivered d m dead from=q:expired
		requeue d m dead from=q
		delivered d m dead from=q:expired`},
	{"two places after a kill", Twice, `
		started
		@10 publish p m q ttl=500
		ended killed
		started
		opened c q
		opened d dead
		delivered c m q redelivered
		ack c m q
		@600 delivered d m dead from=q:expired`},
	{"back though its ack was durable", Durable, published + `
		delivered c m q
		ack c m q
		synced c
		publish p m2 q
		confirmed m2
		ended killed
		started
		opened c2 q
		delivered c2 m q redelivered`},
	{"back though its ack was answered", Durable, published + `
		delivered c m q
		ack c m q
		stored c
		ended killed
		started
		opened c2 q
		delivered c2 m q redelivered`},
	{"back though its process stopped by itself", Durable, published + `
		delivered c m q
		ack c m q
		synced c
		ended stopped
		started
		opened c2 q
		delivered c2 m q redelivered`},
	{"in its queue though its rejection was answered", Durable, published + `
		delivered c m q
		reject c m q
		stored c
		ended killed
		started
		opened c2 q
		delivered c2 m q redelivered`},
	{"in its queue though its rejection was durable", Durable, published + `
		delivered c m q
		reject c m q
		synced c
		ended stopped
		started
		opened c2 q
		delivered c2 m q redelivered`},
	{"out of order", Order, `
		started
		publish p m1 q
		publish p m2 q
		opened c q
		delivered c m2 q
		delivered c m1 q`},
	{"out of order after a restart", Order, `
		started
		publish p m1 q
		publish p m2 q
		ended killed
		started
		opened c q
		delivered c m2 q redelivered
		delivered c m1 q redelivered`},
	{"given back and not marked", Flag, published + "delivered c m q \n requeue c m q \n delivered c m q"},
	{"delivered before a kill and not marked", Flag, published + `
		delivered c m q
		ended killed
		started
		opened c2 q
		delivered c2 m q`},
}

func TestHistories(t *testing.T) {
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			report, err := Check(bytes.NewReader(history(t, h.text)))
			require.NoError(t, err)
			var broken []Rule
			for _, v := range report.Violations {
				broken = append(broken, v.Rule)
			}
			if h.breaks == "" {
				assert.Empty(t, report.Violations)
			} else {
				assert.Equal(t, []Rule{h.breaks}, broken, "%v", report.Violations)
			}
		})
	}
}

// A confirm says nothing of what the broker took after that message was published.
func TestAConfirmCoversWhatWasTakenBefore(t *testing.T) {
	report, err := Check(bytes.NewReader(history(t, published+`
		publish p m2 q
		delivered c m q
		ack c m q
		synced c
		confirmed m2
		ended killed
		started
		opened c2 q
		delivered c2 m q redelivered`)))
	require.NoError(t, err)
	assert.Empty(t, report.Violations)
	assert.Equal(t, 1, report.CameBack)
	assert.Zero(t, report.Durable)
}

func TestReportCounts(t *testing.T) {
	report, err := Check(bytes.NewReader(history(t, `
		started
		publish p m1 q
		confirmed m1
		publish p m2 bare ttl=5
		confirmed m2
		publish p m3 q transient
		refused m3
		opened c q
		delivered c m1 q
		ack c m1 q
		@100 drained`)))
	require.NoError(t, err)
	require.True(t, report.OK())
	assert.Equal(t, 3, report.Published)
	assert.Equal(t, 2, report.Confirmed)
	assert.Equal(t, 1, report.Refused)
	assert.Equal(t, map[string]int{"acked": 1, "expired unseen, without a dead-letter queue": 1}, report.Ends)
	assert.Equal(t, 1, report.Unpromised)
	var text strings.Builder
	report.Write(&text)
	assert.Contains(t, text.String(), "no rule is broken")
}

func TestManyViolationsAreCounted(t *testing.T) {
	text := strings.Builder{}
	text.WriteString("started\n opened c q\n")
	for i := range 3 * maxViolations {
		text.WriteString("delivered c x" + strconv.Itoa(i) + " q\n")
	}
	report, err := Check(bytes.NewReader(history(t, text.String())))
	require.NoError(t, err)
	assert.Len(t, report.Violations, maxViolations)
	assert.Equal(t, 3*maxViolations, report.Broken(Invented))
	var written strings.Builder
	report.Write(&written)
	assert.Contains(t, written.String(), "and 40 more")
}

// What a log cannot say is an error of the test that wrote it.
func TestNotALog(t *testing.T) {
	for name, text := range map[string]string{
		"two lives at once":      "started \n started",
		"an end without a life":  "ended killed",
		"an end of no kind":      "started \n ended somehow",
		"published twice":        "started \n publish p m q \n publish p m q",
		"an unknown queue":       "started \n publish p m nowhere",
		"a confirm of nothing":   "started \n confirmed m",
		"a channel of nothing":   "started \n opened c nowhere",
		"a channel opened twice": "started \n opened c q \n opened c q",
		"a closed channel":       "started \n opened c q \n closed c \n delivered c m q",
		"another queue":          published + "delivered c m r",
		"an ack of nothing":      published + "ack c m q",
		"a sync of nothing":      "started \n synced c",
		"closed twice":           "started \n opened c q \n closed c \n closed c",
		"an unknown kind":        "started \n resumed",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Check(bytes.NewReader(history(t, text)))
			assert.ErrorContains(t, err, "history: line ")
		})
	}
	_, err := Check(strings.NewReader(`{"do":"started","at":1,"more":2}`))
	assert.ErrorContains(t, err, "history: line 1: ")
}
