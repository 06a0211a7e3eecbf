package broker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// send publishes a durable message with a message-id to q; its answer goes to the queue replies.
func (x *testBroker) send(p *broker.Publisher, id, body string, headers amqp.Table) error {
	x.t.Helper()
	properties := amqp.Properties{DeliveryMode: 2, MessageID: id, ReplyTo: "replies", CorrelationID: body, Headers: headers}
	routed, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: []byte(body)})
	if err == nil {
		assert.True(x.t, routed)
		p.Flush(nil)
	}
	return err
}

// answered returns the answers that have come since, each after the correlation-id of its command.
func (x *testBroker) answered() (all []string) {
	x.t.Helper()
	for {
		m, ok := x.get(x.called("replies"), true)
		if !ok {
			return all
		}
		assert.Equal(x.t, "curfew.delay-answer", m.properties.Type)
		all = append(all, m.properties.CorrelationID+": "+m.body)
	}
}

// TestAPublisherChangesWhatItScheduled: by the message-id, over AMQP. The answer says what became of the command, and that is what happens.
func TestAPublisherChangesWhatItScheduled(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		x.queue("replies", nil)
		in := func(ms int32, more amqp.Table) amqp.Table {
			h := amqp.Table{"x-delay": ms}
			for k, v := range more {
				h[k] = v
			}
			return h
		}
		for _, c := range []struct {
			id, body string
			headers  amqp.Table
		}{
			{"a", "a", in(1000, nil)},
			{"b", "b", in(1000, nil)},
			{"c", "c", in(1000, nil)},
			{"d", "d", in(1000, nil)},
			{"", "cancel a", amqp.Table{"x-cancel": "a"}},
			{"", "cancel a again", amqp.Table{"x-cancel": "a"}},
			{"b", "b2", in(2000, amqp.Table{"x-replace": "b"})},
			{"", "put c off", in(3000, amqp.Table{"x-reschedule": "c"})},
			{"", "none", amqp.Table{"x-cancel": "none"}},
			{"e", "instead of none", in(1500, amqp.Table{"x-replace": "none"})},
			{"f", "only instead of none", in(1500, amqp.Table{"x-replace": "none", "x-replace-only": true})},
			{"g", "g", in(60_000, nil)},
			{"g", "g2", amqp.Table{"x-replace": "g"}},
		} {
			require.NoError(t, x.send(x.p, c.id, c.body, c.headers))
		}
		after(time.Millisecond)
		assert.Equal(t, []string{
			"cancel a: cancelled", "cancel a again: cancelled", "b2: replaced", "put c off: rescheduled", "none: not found",
			"instead of none: not found", "only instead of none: not found", "g2: replaced",
		}, x.answered())
		assert.Equal(t, []string{"g2"}, x.drain(q), "a replacement without a delay goes at once")
		after(time.Second - time.Millisecond)
		assert.Equal(t, []string{"d"}, x.drain(q))
		require.NoError(t, x.send(x.p, "", "cancel d", amqp.Table{"x-cancel": "d"}))
		after(500 * time.Millisecond)
		assert.Equal(t, []string{"cancel d: too late"}, x.answered())
		assert.Equal(t, []string{"instead of none"}, x.drain(q))
		after(500 * time.Millisecond)
		m, ok := x.get(q, true)
		require.True(t, ok)
		assert.Equal(t, "b2", m.body)
		assert.Equal(t, amqp.Table{"x-delay": int32(-2000)}, m.properties.Headers, "published again it neither waits nor replaces, and it does not tell who published it")
		after(999 * time.Millisecond)
		assert.Empty(t, x.drain(q), "not early")
		after(time.Millisecond)
		assert.Equal(t, []string{"c"}, x.drain(q))
		require.NoError(t, x.send(x.p, "h", "h", in(60_000, nil)))
		require.NoError(t, x.send(x.p, "", "h now", in(0, amqp.Table{"x-reschedule": "h"})))
		after(time.Millisecond)
		assert.Equal(t, []string{"h now: rescheduled"}, x.answered())
		assert.Equal(t, []string{"h"}, x.drain(q))
	})
}

// TestOnlyTheUserWhoScheduledAMessageChangesIt, whatever another says: not by the header that the broker writes, nor with the same message-id.
func TestOnlyTheUserWhoScheduledAMessageChangesIt(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		x.queue("replies", nil)
		all := access.Permission{Configure: ".*", Write: ".*", Read: ".*"}
		owner, other := x.rights("owner", all).NewPublisher(x.vh), x.rights("other", all).NewPublisher(x.vh)
		later := amqp.Table{"x-delay": int32(1000)}
		require.NoError(t, x.send(owner, "m", "m", later))
		require.NoError(t, x.send(other, "m", "from another", later))
		require.NoError(t, x.send(other, "", "cancel", amqp.Table{"x-cancel": "m"}))
		require.NoError(t, x.send(other, "", "cancel twice", amqp.Table{"x-cancel": "m"}))
		require.NoError(t, x.send(other, "", "in another's name", amqp.Table{"x-cancel": "m", "x-scheduled-by": "owner"}))
		after(time.Millisecond)
		assert.Equal(t, []string{"cancel: cancelled", "cancel twice: cancelled", "in another's name: cancelled"}, x.answered(), "each time its own")
		require.NoError(t, x.send(owner, "forged", "forged", amqp.Table{"x-delay": int32(1000), "x-scheduled-by": "other"}))
		require.NoError(t, x.send(other, "", "cancel forged", amqp.Table{"x-cancel": "forged"}))
		p := amqp.Properties{Headers: amqp.Table{"x-cancel": "m"}, UserID: "owner"}
		_, err := other.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
		assert.EqualValues(t, 406, code(err))
		after(time.Second)
		assert.Equal(t, []string{"cancel forged: not found"}, x.answered())
		assert.Equal(t, []string{"m", "forged"}, x.drain(q))

		nothing := x.rights("nothing", access.Permission{Write: "^no$"}).NewPublisher(x.vh)
		assert.EqualValues(t, 403, code(x.send(nothing, "", "cancel", amqp.Table{"x-cancel": "m"})))
		require.NoError(t, x.vh.Exchanges.Declare("no", broker.ExchangeDeclare{Kind: "fanout"}))
		p = amqp.Properties{Headers: amqp.Table{"x-cancel": "m"}, ReplyTo: "replies"}
		_, err = nothing.Add(&broker.Publication{Exchange: []byte("no"), Properties: p.Append(nil)})
		assert.EqualValues(t, 403, code(err), "nor has the broker publish for it")
		p.ReplyTo = ""
		_, err = nothing.Add(&broker.Publication{Exchange: []byte("no"), Properties: p.Append(nil)})
		assert.NoError(t, err)
		nothing.Flush(nil)
	})
}

func TestCommandsThatAreRefused(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", nil)
	for _, c := range []struct {
		headers amqp.Table
		text    string
	}{
		{amqp.Table{"x-cancel": int32(1)}, "invalid header 'x-cancel': expected a message-id, got signedint"},
		{amqp.Table{"x-cancel": ""}, "invalid header 'x-cancel': expected a message-id, got longstr"},
		{amqp.Table{"x-cancel": "a", "x-replace": "b"}, "invalid header 'x-replace': a message can have only one of x-cancel, x-replace and x-reschedule"},
		{amqp.Table{"x-replace": "a", "x-replace-only": "yes"}, "invalid header 'x-replace-only': expected bool, got longstr"},
		{amqp.Table{"x-reschedule": "a"}, "invalid header 'x-reschedule': x-delay or x-scheduled-enqueue-time has to say for when"},
		{amqp.Table{"x-reschedule": "a", "x-delay": nil}, "invalid header 'x-reschedule': x-delay or x-scheduled-enqueue-time has to say for when"},
		{amqp.Table{"x-reschedule": "a", "x-delay": "soon"}, "invalid header 'x-delay': expected integer, got longstr"},
		{amqp.Table{"x-delay": int32(1), "x-schedule-answer": "yes"}, "invalid header 'x-schedule-answer': expected bool, got longstr"},
	} {
		err := x.send(x.p, "", "command", c.headers)
		assert.EqualValues(t, 406, code(err))
		assert.Equal(t, "PRECONDITION_FAILED - "+c.text, text(err))
	}
	assert.Zero(t, x.p.Pending())
}

// TestWhoeverKnowsTheIDChangesTheMessage, also another user, if it is published to the same exchange. The id is told only to reply-to, and is useless later.
func TestWhoeverKnowsTheIDChangesTheMessage(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, replies := x.queue("q", nil), x.queue("replies", nil)
		other := x.rights("other", access.Permission{Configure: ".*", Write: ".*", Read: ".*"}).NewPublisher(x.vh)
		schedule := func(body string, more amqp.Table) (result, id string) {
			h := amqp.Table{"x-delay": int32(1000), "x-schedule-answer": true, "x-schedule-secret": "mine"}
			for k, v := range more {
				h[k] = v
			}
			require.NoError(t, x.send(x.p, "", body, h))
			after(time.Millisecond)
			m, ok := x.get(replies, true)
			require.True(t, ok)
			id, _ = m.properties.Headers["x-schedule-id"].(string)
			return m.body, id
		}
		first, a := schedule("a", nil)
		_, b := schedule("b", nil)
		_, c := schedule("c", nil)
		assert.Equal(t, "scheduled", first)
		assert.Regexp(t, `^1\.[\w-]{22}$`, a)
		require.NoError(t, x.send(other, "", "guess", amqp.Table{"x-cancel": "1.mine"}))
		require.NoError(t, x.send(other, "", "none", amqp.Table{"x-cancel": "1."}))
		require.NoError(t, x.send(other, "", "cancel", amqp.Table{"x-cancel": a}))
		require.NoError(t, x.send(other, "", "again", amqp.Table{"x-cancel": a}))
		require.NoError(t, x.send(other, "", "put off", amqp.Table{"x-reschedule": b, "x-delay": int32(2000)}))
		after(time.Millisecond)
		assert.Equal(t, []string{"guess: not found", "none: not found", "cancel: cancelled", "again: cancelled", "put off: rescheduled"}, x.answered())
		result, d := schedule("d", amqp.Table{"x-replace": c})
		assert.Equal(t, "replaced", result)
		assert.NotEqual(t, c, d)
		p := amqp.Properties{ReplyTo: "replies", CorrelationID: "elsewhere", Headers: amqp.Table{"x-cancel": d}}
		_, err := other.Add(&broker.Publication{Exchange: []byte("amq.topic"), Properties: p.Append(nil)})
		require.NoError(t, err)
		other.Flush(nil)
		after(1500 * time.Millisecond)
		m, ok := x.get(q, true)
		require.True(t, ok)
		assert.Equal(t, "d", m.body)
		assert.Equal(t, amqp.Table{"x-delay": int32(-1000)}, m.properties.Headers)
		require.NoError(t, x.send(other, "", "late", amqp.Table{"x-cancel": d}))
		after(time.Second)
		assert.Equal(t, []string{"elsewhere: not found", "late: too late"}, x.answered())
		assert.Equal(t, []string{"b"}, x.drain(q))
	})
}

// TestACommandCountsOnlyByItsDelay, and not by an expiry of its own.
func TestACommandCountsOnlyByItsDelay(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		x.queue("replies", nil)
		require.NoError(t, x.send(x.p, "m", "m", amqp.Table{"x-delay": int32(60_000)}))
		expires := amqp.Timestamp(time.Now().Add(30 * time.Second).Unix())
		require.NoError(t, x.send(x.p, "", "now", amqp.Table{"x-reschedule": "m", "x-delay": int32(0), "x-expires-at": expires}))
		after(time.Millisecond)
		assert.Equal(t, []string{"now: rescheduled"}, x.answered())
		assert.Equal(t, []string{"m"}, x.drain(q))
	})
}

// TestWhatIsScheduledIsCounted: each message that waits has its number, also one whose publisher wants its id, and one that replaces another.
func TestWhatIsScheduledIsCounted(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("q", nil)
		x.queue("replies", nil)
		for id, more := range map[string]amqp.Table{"a": {"x-schedule-answer": true}, "b": {"x-replace": "a"}, "c": {}} {
			more["x-delay"] = int32(60_000)
			p := amqp.Properties{MessageID: id, ReplyTo: "replies", Headers: more}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
			require.NoError(t, err)
			x.p.Flush(nil)
			assert.Len(t, x.p.Numbered, 1, id)
		}
	})
}

// TestNobodyReadsTheIDOfAnother: what the broker notes in a delayed message is in no list.
func TestNobodyReadsTheIDOfAnother(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("q", nil)
		x.queue("replies", nil)
		require.NoError(t, x.send(x.p, "m", "m", amqp.Table{"x-delay": int32(60_000), "x-schedule-answer": true}))
		list, _ := x.vh.Delayed(0, 9)
		require.Len(t, list, 1)
		p, err := broker.ParseStored(list[0].Properties)
		require.NoError(t, err)
		assert.Equal(t, amqp.Table{"x-delay": int32(60_000), "x-schedule-answer": true}, p.Headers)
		assert.Equal(t, []string{"m", "guest"}, []string{list[0].ID, list[0].User})
	})
}

// TestCommandsInATransaction take effect with its commit, in their order, also on what it publishes itself.
func TestCommandsInATransaction(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	x.durable("replies", nil)
	in := amqp.Table{"x-delay": int64(3_600_000)}
	require.NoError(t, x.send(x.p, "before", "before", in))
	for _, c := range []struct {
		id      string
		headers amqp.Table
	}{
		{"a", in}, {"b", in}, {"c", in}, {"", amqp.Table{"x-cancel": "a"}}, {"b2", amqp.Table{"x-delay": int64(3_600_000), "x-replace": "b"}},
		{"", amqp.Table{"x-reschedule": "c", "x-delay": int64(7_200_000)}}, {"", amqp.Table{"x-cancel": "before"}},
	} {
		p := amqp.Properties{DeliveryMode: 2, MessageID: c.id, Headers: c.headers}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
		require.NoError(t, err)
	}
	assert.Len(t, x.waitingIDs(), 1, "nothing yet")
	x.p.Transact(nil, nil)
	want := []string{"c in 2h0m0s", "b2 in 1h0m0s"}
	assert.Equal(t, want, x.waitingIDs())
	x.commit()
	x = restarted(t, o, x.b)
	assert.Equal(t, want, x.waitingIDs())
	require.NoError(t, x.send(x.p, "", "cancel c", amqp.Table{"x-cancel": "c"}))
	assert.Equal(t, want[1:], x.waitingIDs(), "its name is known again")
	require.Eventually(t, func() bool { return fmt.Sprint(x.answered()) == "[cancel c: cancelled]" }, time.Minute, time.Millisecond)
	require.NoError(t, x.b.Close())
}

// waitingIDs lists the message-ids of what waits and, to the next hour, for how long.
func (x *testBroker) waitingIDs() (all []string) {
	page, _ := x.vh.Delayed(0, 1000)
	for _, m := range page {
		p, err := amqp.ParseProperties(m.Properties, amqp.Limits{})
		require.NoError(x.t, err)
		all = append(all, fmt.Sprintf("%s in %v", p.MessageID, m.Ref.Deadline.Sub(x.b.Now()).Round(time.Hour)))
	}
	return all
}

// TestCommandsAreWhole: wherever in what commands write the machine crashes, each message is as it was before a command or as it is after:
// of one that was replaced and its replacement one is there, and nothing fires early or twice. What was answered is never undone.
func TestCommandsAreWhole(t *testing.T) {
	dir := t.TempDir()
	var before, done map[string][]byte
	inBubble(t, broker.Options{Store: store.Options{Dir: dir}}, func(x *testBroker) {
		x.durable("q", nil)
		x.durable("replies", nil)
		in := func(hours int64, more, id string) amqp.Table {
			return amqp.Table{"x-delay": hours * 3_600_000, more: id}
		}
		for _, id := range []string{"a", "b", "c"} {
			require.NoError(t, x.send(x.p, id, id, in(1, "none", "")))
		}
		x.commit()
		before = written(t, dir)
		require.NoError(t, x.send(x.p, "", "cancel", amqp.Table{"x-cancel": "a"}))
		x.commit()
		require.NoError(t, x.send(x.p, "b", "b2", in(1, "x-replace", "b")))
		x.commit()
		require.NoError(t, x.send(x.p, "", "put off", in(2, "x-reschedule", "c")))
		x.commit()
		after(time.Millisecond)
		require.Equal(t, []string{"cancel: cancelled", "b2: replaced", "put off: rescheduled"}, x.answered())
		p := amqp.Properties{DeliveryMode: 2}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("replies"), Properties: p.Append(nil), Body: []byte("the end, since zeros there count as empty")})
		require.NoError(t, err)
		x.p.Flush(nil)
		x.commit()
		done = written(t, dir)
	})
	log, seen := journalOf(t, done), map[string]bool{}
	for cut := len(before[log]); ; cut = min(cut+64, len(done[log])) {
		seen[delayedAfterCrash(t, done, log, cut)] = true
		if cut == len(done[log]) {
			break
		}
	}
	last := "[b2] [c]"
	assert.Equal(t, map[string]bool{"[a b c] []": true, "[b c] []": true, "[c b2] []": true, last: true}, seen)
	assert.Equal(t, last, delayedAfterCrash(t, done, log, len(done[log])))
}

// delayedAfterCrash recovers with a file cut off, and says which messages come after one hour and after another.
func delayedAfterCrash(t *testing.T, files map[string][]byte, log string, cut int) (found string) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if name == log {
			data = data[:cut]
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	inBubble(t, broker.Options{Store: store.Options{Dir: dir}}, func(x *testBroker) {
		after(time.Hour + time.Second)
		first := x.drain(x.called("q"))
		after(time.Hour)
		found = fmt.Sprint(first, x.drain(x.called("q")))
		page, _ := x.vh.Delayed(0, 10)
		assert.Empty(t, page)
	})
	return found
}
