package incident

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/deadline"
)

var orders = QueueName{"shop", "orders"}

// TestAllWatched: late and lost messages say nothing about those to come; a part that is stuck does.
func TestAllWatched(t *testing.T) {
	require.True(t, AllWatched([]Incident{{Condition: "deadline_missed"}, {Condition: "publishers_blocked"}}))
	require.False(t, AllWatched([]Incident{{Condition: "deadline_missed"}, {Condition: "part_stuck"}}))
	require.False(t, MayBeLate([]Incident{{Condition: "deadline_missed"}}))
	require.True(t, MayBeLate([]Incident{{Condition: "processor_starved"}}))
}

// TestConditions: each is seen in a state made by hand, and in no other. A Curfew that is well has none.
func TestConditions(t *testing.T) {
	within30, err := deadline.ParseObjective("99% consumed within 30s")
	require.NoError(t, err)
	now := time.Unix(1_800_000_000, 0)
	tally := func(k Kind, action string, n int64) []Tally {
		t := Tally{Event: Event{Kind: k, VHost: "shop", Queue: "orders", Action: action, Stats: Stats{Count: n, FirstDeadlineAt: 1, WorstMillis: 1500}}, Began: now.Add(-5 * time.Second), Last: now}
		if action == "dropped" {
			t.Dropped, t.Losing = n, t.Began
		}
		return []Tally{t}
	}
	held := func(longest time.Duration) []Tally {
		list := tally(LockHeld, "", 2)
		list[0].Hold = Hold{Operation: "publish", For: longest}
		return list
	}
	sinks := func(failing time.Duration) []SinkStatus {
		return []SinkStatus{{Name: "hook", Trouble: &trouble{now.Add(-failing), "refused"}}}
	}
	slow := atRisk(orders, 30)
	slow.Rate = 1.5
	seen := make(map[string]bool)
	for _, c := range []struct {
		condition, text string // "": none
		state           State
	}{
		{"", "", State{}},
		{"part_stuck", "loop fire: no sign of life", State{Stalled: []string{"loop fire"}}},
		{"part_stuck", "silent for 16 s", State{Silent: 16 * time.Second}},
		{"part_stuck", "overdue by 6 s", State{Lag: 6 * time.Second}},
		{"data_folder_new", "the deadlines of 3 messages", State{Orphans: 3}},
		{"disk_silent", "for 7 s", State{DiskSilent: 7 * time.Second}},
		{"publishers_blocked", "low on disk", State{Blocked: "low on disk"}},
		{"definitions_unsaved", "cannot be created or changed (no space)", State{Unsaved: errors.New("no space")}},
		{"dead_letter_unroutable", "13,967 dead letters parked", State{Parked: []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 13967}}}},
		{"dead_letter_unroutable", "9 dead letters parked, which had nowhere to go; why", State{Parked: []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 9, Why: "why"}}}},
		{"dead_letter_unroutable", "9 dead letters parked, which had nowhere to go, the last 12 min ago; why", State{Parked: []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 9, Why: "why", Newest: now.Add(-12*time.Minute - time.Second)}}}},
		{"deadline_fired_late", "3 messages expired late, by up to 1.5 s", State{Tallies: tally(ExpiredLate, "dropped", 3)}},
		{"deadline_fired_late", "by up to 1.5 s; Curfew was down when the first was due", State{Opened: now, Tallies: tally(ExpiredLate, "dropped", 3)}},
		{"", "", State{Opened: now, Tallies: tally(ExpiredLate, "dropped", 3), Purposes: map[QueueName]deadline.Purpose{orders: deadline.Telemetry}}},
		{"deadline_missed", "205 messages lost (expired)", State{Tallies: tally(Expired, "dropped", 205)}},
		{"deadline_missed", "1 message expired", State{Tallies: tally(Expired, "dead_lettered", 1)}},
		{"deadline_missed", "3,000 messages at risk: nobody consumes", State{Forecasts: []deadline.Forecast{atRisk(orders, 3000)}}},
		{"", "", State{Tallies: tally(Expired, "dead_lettered", 1), Purposes: map[QueueName]deadline.Purpose{orders: deadline.Retry}}},
		{"", "", State{Tallies: tally(Expired, "dropped", 1), Purposes: map[QueueName]deadline.Purpose{orders: deadline.Telemetry}}},
		{"", "", State{Forecasts: []deadline.Forecast{atRisk(orders, 3000)}, Purposes: map[QueueName]deadline.Purpose{orders: deadline.Retry}}},
		{"objective_missed", "20 % missed its objective (99% consumed within 30s) in the last minutes, 20 times what it allows; the oldest has waited 1 min 40 s",
			State{Objectives: []Missed{{orders, deadline.Wait{Oldest: 100_000, Objective: within30, Missed: 0.2, Burn: 20}}}}},
		{"held_past_deadline", `worker (user ann at 10.0.0.7:5000) holds 25 messages, the longest 40 s past its deadline`,
			State{Held: []PastDeadline{{QueueName: orders, Connection: "worker", User: "ann", Address: "10.0.0.7:5000", Count: 25, Past: 25, FirstDeadlineAt: now.Add(-40 * time.Second).UnixMilli()}}}},
		{"held_past_deadline", "worker (user ann at 10.0.0.7:5000) holds 10 messages and takes no more; behind it: 2 messages lost (expired); 3,000 messages at risk: its consumer takes nothing",
			State{Held: []PastDeadline{{QueueName: orders, Connection: "worker", User: "ann", Address: "10.0.0.7:5000", Count: 10}}, Tallies: tally(Expired, "dropped", 2),
				Forecasts: []deadline.Forecast{stuckAt(orders, 3000)}}},
		{"deadline_missed", "2 messages expired (dead-lettered); 30 messages at risk: 1.5 a second are consumed, the first expires now; worker (user ann at 10.0.0.7:5000) holds 5 messages, the longest 3 s past its deadline", // too slow
			State{Held: []PastDeadline{{QueueName: orders, Connection: "worker", User: "ann", Address: "10.0.0.7:5000", Count: 5, Past: 5, FirstDeadlineAt: now.Add(-3 * time.Second).UnixMilli()}},
				Tallies: tally(Expired, "dead_lettered", 2), Forecasts: []deadline.Forecast{slow}}},
		{"", "", State{Held: []PastDeadline{{QueueName: orders, Count: 5, Past: 5}}, Purposes: map[QueueName]deadline.Purpose{orders: deadline.Telemetry}}},
		{"dead_letters_wait", "10,001 messages have left", State{Letters: 10_001}},
		{"", "", State{Letters: 10_000}},
		{"dead_letters_dropped", "4 dead letters lost: no queue took them", State{Rising: map[string]int{"dead_letters_dropped": 4}}},
		{"schedule_degraded", "Redis is away", State{Schedule: "refused"}},
		{"schedule_degraded", "evicts keys", State{Redis: []string{"evicts keys"}}},
		{"connections_refused", "AMQP connections are refused: the limit of 5", State{Refusals: []Refusal{{What: "AMQP", Most: 5}}}},
		{"client_fails", "worker, 7 times", State{ClientErrors: []Finding{{Cause: "worker", Text: "worker, 7 times in 1 min: no queue"}}}},
		{"messages_unrouted", "it was deleted", State{Unrouted: []Finding{{QueueName: orders, Text: "it was deleted"}}}},
		{"clock_offset", "12 h ahead of the machine's", State{ClockAhead: 12 * time.Hour}},
		{"clock_offset", "5 s behind the machine's", State{ClockAhead: -clockLimit - time.Millisecond}},
		{"", "", State{ClockAhead: -clockLimit}},
		{"clock_skew", "Redis's is 600 ms behind Curfew's", State{ClockSkew: -600 * time.Millisecond}},
		{"", "", State{ClockSkew: skewLimit}},
		{"lateness_high", "3 % of what expired", State{LateShare: 0.03}},
		{"deadline_fired_late", "3 messages", State{LateShare: 0.03, Tallies: tally(ExpiredLate, "dropped", 3)}},
		{"processor_starved", "for 12 s", State{LateShare: 0.03, Starved: 12 * time.Second}},
		{"", "", State{LateShare: 0.01}},
		{"queues_recovered", "into 2 queues", State{Recovered: 2}},
		{"policy_not_in_force", "2 policies refused", State{IdlePolicies: 2}},
		{"queue_locked_long", `held for long 2 times; the longest, by the operation "publish", took 200ms`, State{Tallies: held(lockedLong)}},
		{"", "", State{Tallies: held(lockedLong - time.Millisecond)}},
		{"loop_restarted", "1 loop", State{Rising: map[string]int{"loop_restarted": 1}}},
		{"processor_starved", "for 1.4 s in the last minute", State{Starved: 1400 * time.Millisecond, Tallies: tally(ExpiredLate, "dropped", 3)}},
		{"disk_fills_up", "in about 3 h", State{DiskFullIn: 3 * time.Hour}},
		{"", "", State{DiskFullIn: 5 * time.Hour}},
		{"fsync_slow", "2 % take over half a second", State{SlowSyncs: 0.02}},
		{"file_descriptors_low", "95 % are in use", State{OpenFiles: 0.95}},
		{"audit_incomplete", "7 records", State{Rising: map[string]int{"audit_incomplete": 7}}},
		{"queue_not_kept", "403", State{NotKept: []NotKept{{orders, "403"}}}},
		{"rabbitmq_overdue", "2 messages left, the first was due 11 s ago", State{Overdue: []PastDeadline{{QueueName: orders, Count: 2, FirstDeadlineAt: now.Add(-11 * time.Second).UnixMilli()}}}},
		{"", "", State{Overdue: []PastDeadline{{QueueName: orders, Count: 2, FirstDeadlineAt: now.Add(-deadline.LateAfter).UnixMilli()}}}},
		{"rabbitmq_degraded", "not been looked at", State{RabbitMQ: []string{"its queues have not been looked at"}}},
		{"alert_sink_failing", "hook has been failing for 1 min: refused", State{Sinks: sinks(time.Minute)}},
		{"", "", State{Sinks: sinks(50 * time.Second)}},
		{"alert_rules_refused", "line 2", State{FileError: errors.New("line 2")}},
		{"heartbeat_stale", "for 6 min", State{HeartbeatSilent: 6 * time.Minute}},
		{"deadlines_unwatched", "only when a delivery", State{Unwatched: true}},
	} {
		c.state.Now = now
		c.state.blame(nil)
		found := Evaluate(&c.state)
		if c.condition == "" {
			require.Empty(t, found, "%+v", c.state)
			continue
		}
		seen[c.condition] = true
		require.Len(t, found, 1, c.condition)
		require.Len(t, found[ConditionOf(c.condition)], 1, c.condition)
		require.Contains(t, found[ConditionOf(c.condition)][0].Text, c.text)
	}
	for _, one := range Conditions {
		require.True(t, seen[one.Name], "%s has no example", one.Name)
		require.NotEmpty(t, one.Was+one.Whom+one.Do+one.Command+one.Page)
	}
}

// TestTheClientThatLeftFails: of a queue that a client has left which fails again and again, that is what is wrong, and what is to be done.
func TestTheClientThatLeftFails(t *testing.T) {
	now := time.Now()
	s := State{
		Now: now, Forecasts: []deadline.Forecast{atRisk(orders, 3000)}, Consumers: map[QueueName]Consumers{orders: {Left: now.Add(-2 * time.Second), Last: "worker-1 (user ann, h)"}},
		ClientErrors: []Finding{{Left: Application("worker-2 (user ann, h)"), Text: "worker-2, 7 times in 1 min: no queue", Do: "declare it"}},
	}
	s.blame(nil)
	found := Evaluate(&s)[ConditionOf("deadline_missed")][0]
	require.Equal(t, "3,000 messages at risk: nobody consumes, the first expires now; worker-1 (user ann, h) left 2 s ago, and fails: worker-2, 7 times in 1 min: no queue", found.Text)
	require.Equal(t, "declare it", found.Do)
}

// TestCommandsThatAreLacking: where there is no broker of Curfew's own, an incident names a command and a page that are there.
func TestCommandsThatAreLacking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.set(func(now *State) { now.Lacks = []string{"queue", "audit", "dlq"} })
		s.Record(missed("orders", 2))
		pass(5 * time.Second)
		require.Len(t, s.List(), 1)
		require.Equal(t, "deadline_missed", s.List()[0].Condition)
		require.Equal(t, "curfew rabbitmq status /rabbitmq", s.List()[0].Command+" "+s.List()[0].Page)
		require.NotContains(t, s.List()[0].Do, "replay", "which does not exist there, either")
	})
}

// TestManyHoldOneQueue: of the clients that hold messages of a queue, the one is named that holds most past their deadlines, for as long as it does, and the
// others are counted: a service that hangs is one incident, however many clients it has.
func TestManyHoldOneQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		holds := func(host string, past int) PastDeadline {
			return PastDeadline{QueueName: orders, Connection: "worker", User: "ann", Address: host + ":5000", Count: past, Past: past, FirstDeadlineAt: time.Now().Add(-40 * time.Second).UnixMilli()}
		}
		s.set(func(now *State) { now.Held = []PastDeadline{holds("a", 3), holds("b", 25), holds("c", 7)} })
		pass(2 * time.Second)
		e := missed("orders", 2)
		e.VHost = "shop"
		s.Record(e)
		pass(3 * time.Second)
		require.Equal(t, []string{"firing CurfewHeldPastDeadline orders"}, s.told())
		s.set(func(now *State) { now.Held = []PastDeadline{holds("a", 30), holds("b", 25)} })
		pass(2 * time.Second)
		require.Len(t, s.List(), 1)
		require.Contains(t, s.List()[0].Summary, "worker (user ann at b:5000) holds 25 messages, the longest 42 s past its deadline; 1 other client holds 30 more; behind it: ")
		require.EqualValues(t, 55, s.List()[0].Count, "what they hold")
		require.Contains(t, s.List()[0].Do, "`curfew connections close worker`")
		s.set(func(now *State) { now.Held = nil })
		pass(2 * time.Minute)
		require.Empty(t, s.List())
		require.Regexp(t, `by worker \(user ann at b:5000\) and 1 other client: \d+ messages, 2 lost$`, s.View().Over[0].Summary)
	})
}

// TestASlowConsumerIsNamed, with what it takes of what comes, and what to do about it.
func TestASlowConsumerIsNamed(t *testing.T) {
	within30, err := deadline.ParseObjective("99% consumed within 30s")
	require.NoError(t, err)
	slow := Slow{Who: "worker (user ann, h)", In: 10, Out: 1.04, Held: 5}
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		f := atRisk(orders, 40)
		f.Consumers, f.Rate = 1, 1
		mails := QueueName{"shop", "mails"}
		s.set(func(now *State) {
			now.Forecasts, now.Objectives = []deadline.Forecast{f}, []Missed{{mails, deadline.Wait{Objective: within30, Missed: 0.2, Burn: 20}}}
			now.Slow = func(q QueueName) Slow {
				slow.Others = map[QueueName]int{orders: 0, mails: 2}[q]
				return slow
			}
		})
		pass(9 * time.Second)
		require.Len(t, s.List(), 2)
		first, second := s.List()[0], s.List()[1]
		require.Equal(t, "Messages expire unconsumed: orders (vhost shop): 40 messages at risk: 1 a second are consumed, the first expires now; worker (user ann, h) takes 1 a second of 10 that come, and holds 5 messages", first.Summary)
		require.Equal(t, "Make worker (user ann, h) faster, or start more of it, or give messages more time. What was dead-lettered can be replayed.", first.Do)
		require.Contains(t, second.Summary, "20 times what it allows; worker (user ann, h) and 2 other consumers take 1.04 a second of 10 that come, and hold 5 messages")
		require.Contains(t, second.Do, "Make worker (user ann, h) and 2 other consumers faster, or start more of it, or change the objective (")
	})
}

// TestWhatIsParkedCountsOnce: where it is parked, also when what expires later in its queue goes elsewhere, and when the parked ones are gone.
func TestWhatIsParkedCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		expired := func(action string, n int64) {
			e := missed("orders", n)
			e.VHost, e.Action = "shop", action
			s.Record(e)
			pass(9 * time.Second)
		}
		counts := func() (list []string) {
			for _, i := range s.List() {
				list = append(list, fmt.Sprint(i.Condition, " ", i.Count, " ", i.Toll))
			}
			return list
		}
		s.set(func(now *State) {
			now.Parked = []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 30}}
		})
		expired("parked", 30)
		require.Equal(t, []string{"dead_letter_unroutable 30 30"}, counts())
		expired("dead_lettered", 10)
		require.Equal(t, []string{"dead_letter_unroutable 30 30", "deadline_missed 10 10"}, counts())
		s.set(func(now *State) { now.Parked[0].Count = 31 })
		expired("parked", 1)
		require.Equal(t, []string{"dead_letter_unroutable 31 41"}, counts(), "what expired before is part of it")
		require.Equal(t, "31 messages expired (parked)", s.List()[0].Worst[1].Text)
		s.set(func(now *State) { now.Parked = nil })
		expired("dead_lettered", 2)
		require.Equal(t, []string{"deadline_missed 12 12"}, counts())
	})
}

// TestWhatIsTakenFromWhereItIsParked at once counts where it expires: nothing else says that it does.
func TestWhatIsTakenFromWhereItIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for range 6 {
			e := missed("orders", 10)
			e.VHost, e.Action = "shop", "parked"
			s.Record(e)
			pass(time.Second)
		}
		require.Len(t, s.List(), 1)
		i := s.List()[0]
		require.Equal(t, []any{"deadline_missed", int64(60), int64(60)}, []any{i.Condition, i.Count, i.Toll})
		require.Contains(t, i.Summary, "60 messages expired (parked)")
	})
}

// TestAHoldDoesNotGrow with what expires behind it and is dead-lettered; it grows with what is lost.
func TestAHoldDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		behind := func(n int64, action string) {
			e := missed("orders", n)
			e.VHost, e.Action = "shop", action
			s.Record(e)
			pass(3 * time.Second)
		}
		s.set(func(now *State) {
			now.Forecasts = []deadline.Forecast{stuckAt(orders, 40)}
			now.Held = []PastDeadline{{QueueName: orders, Connection: "worker", User: "ann", Address: "h:1", Count: 20, Past: 20, FirstDeadlineAt: time.Now().UnixMilli()}}
		})
		pass(4 * time.Second)
		behind(5000, "dead_lettered")
		behind(3, "dropped")
		require.Equal(t, []string{"firing CurfewHeldPastDeadline orders", "firing CurfewHeldPastDeadline orders"}, s.told(), "it began, and became critical")
		behind(300, "dropped")
		require.Equal(t, []string{"20", "20", "20"}, []string{s.receiver.got()[0].CommonAnnotations["count"], s.receiver.got()[1].CommonAnnotations["count"], s.receiver.got()[2].CommonAnnotations["count"]})
		require.Contains(t, s.receiver.got()[2].CommonAnnotations["summary"], "Growing. ")
	})
}

// TestStartItAgain: where the last consumer of a queue has left, that is the first thing to do.
func TestStartItAgain(t *testing.T) {
	const worker = "worker (user ann, 10.0.0.7)"
	now := time.Now()
	s := &State{
		Now: now, Forecasts: []deadline.Forecast{atRisk(orders, 3000)},
		Consumers: map[QueueName]Consumers{orders: {Last: worker, Left: now.Add(-40 * time.Second)}},
	}
	s.blame(nil)
	list := Evaluate(s)[ConditionOf("deadline_missed")]
	require.Len(t, list, 1)
	require.Equal(t, "3,000 messages at risk: nobody consumes, the first expires now; "+worker+" left 40 s ago", list[0].Text)
	require.Equal(t, "Start "+worker+" again, or add other consumers.", list[0].Do)
	s.Consumers[orders] = Consumers{Last: worker, Left: now.Add(-40 * time.Second), ClosedBy: "guest"}
	closed := Evaluate(s)[ConditionOf("deadline_missed")][0]
	require.Contains(t, closed.Text, "; "+worker+" was closed by guest 40 s ago")
	require.Equal(t, "Start "+worker+" again once it is mended, or add other consumers.", closed.Do)
}

// TestAnIncidentIsToldTwice: within ten seconds of its beginning, and when it is over, with how long it took and the whole number.
func TestAnIncidentIsToldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		began := time.Now()
		for range 60 {
			s.Record(missed("a", 1))
			pass(time.Second)
			if len(s.told()) == 1 && time.Since(began) < 10*time.Second {
				began = began.Add(-time.Hour)
			}
		}
		require.Equal(t, []string{"firing CurfewDeadlineMissed a", "firing CurfewDeadlineMissed a"}, s.told(), "it began, and grew tenfold")
		require.Greater(t, time.Since(began), time.Hour, "the beginning was told within ten seconds")
		require.WithinDuration(t, time.Now().Add(-time.Minute), *s.List()[0].Losing, time.Second, "since the first was lost")
		pass(2 * time.Minute)
		require.Equal(t, "resolved CurfewDeadlineMissed a", s.told()[2])
		require.Regexp(t, `^Over after \d min \d+ s: Messages expired unconsumed: a \(vhost /\): 60 messages lost$`, s.receiver.got()[2].CommonAnnotations["summary"])
		require.Equal(t, s.receiver.got()[0].Alerts[0].Fingerprint, s.receiver.got()[2].Alerts[0].Fingerprint)
		require.Empty(t, s.List())
		over := s.View().Over
		require.Len(t, over, 1)
		require.Empty(t, over[0].Do+over[0].Command, "nothing is to be done")
		require.Equal(t, Entry{*over[0].Ended, "over"}, over[0].History[len(over[0].History)-1], "one end")
		pass(time.Hour)
		require.Len(t, s.told(), 3)
	})
}

// TestParkedLettersStand for as long as any are parked, however long nothing more happens.
func TestParkedLettersStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		parked := func(n int) {
			s.set(func(now *State) {
				now.Parked = []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: n}}
			})
		}
		parked(13967)
		pass(9 * time.Second)
		require.Equal(t, []string{"firing CurfewDeadLetterUnroutable curfew.undeliverable"}, s.told())
		require.Equal(t, Failing, s.Overview().Verdict)
		pass(24 * time.Hour)
		require.Len(t, s.told(), 1)
		require.Equal(t, Failing, s.Overview().Verdict)
		parked(1)
		pass(time.Minute)
		require.Equal(t, []string{"Dead letters are parked: curfew.undeliverable (vhost shop): 1 dead letter parked, which had nowhere to go"}, s.wrong())
		s.set(func(now *State) { now.Parked = nil })
		pass(10 * time.Second)
		require.Len(t, s.told(), 2)
		require.Equal(t, OK, s.Overview().Verdict)
		require.Contains(t, s.receiver.got()[1].CommonAnnotations["summary"], "Dead letters were parked: curfew.undeliverable (vhost shop): 13,967 messages")
	})
}

// TestOneCauseIsOneIncident: queues that go wrong together are folded, the worst first; one that follows is an incident of its own, and
// told as soon, unless the same application has left both. Nobody looks at an old incident for the cause of a new one.
func TestOneCauseIsOneIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for n := range 31 {
			s.Record(missed(fmt.Sprint("q", n), int64(n+1)))
		}
		pass(8 * time.Second)
		require.Len(t, s.told(), 1)
		list := s.List()
		require.Len(t, list, 1)
		require.Equal(t, []any{31, "q30", maxWorst, int64(496)}, []any{list[0].Queues, list[0].Worst[0].Queue, len(list[0].Worst), list[0].Count})
		require.Len(t, s.View().Queues, 31)
		require.Equal(t, Concern{Critical, 28, "4 messages lost (expired)", &s.List()[0]}, s.View().Queues[QueueName{"/", "q3"}], "what was dropped is lost")
		require.Contains(t, list[0].Summary, "q30 (vhost /): 31 messages lost (expired); and 30 queues more, 496 lost in all")
		s.Record(missed("other", 1))
		pass(8 * time.Second)
		require.Len(t, s.List(), 2)
		require.Len(t, s.told(), 2)
		for n := range 3 {
			s.Record(missed(fmt.Sprint("late", n), 1))
			pass(4 * time.Second)
		}
		require.Len(t, s.List(), 5)
		for n := range 3 {
			q := QueueName{"/", fmt.Sprint("left", n)}
			s.set(func(now *State) {
				now.Consumers = map[QueueName]Consumers{q: {Left: time.Now(), Last: fmt.Sprintf("worker-%d (user ann, 10.0.0.7)", n)}}
			})
			s.Record(missed(q.Name, 1))
			pass(4 * time.Second)
		}
		require.Len(t, s.List(), 6)
		require.Equal(t, 3, s.View().Queues[QueueName{"/", "left0"}].In.Queues)

		held := func(clients ...string) {
			s.set(func(now *State) {
				now.Held = nil
				for c := range clients {
					for q := range 3 {
						now.Held = append(now.Held, PastDeadline{QueueName: QueueName{"shop", fmt.Sprint("held", c, q)}, Connection: clients[c], Address: fmt.Sprint("h:", c), Count: 2, FirstDeadlineAt: 1})
					}
				}
			})
		}
		pass(time.Hour)
		before := len(s.told())
		require.Empty(t, s.View().Queues)
		held("billing-1")
		pass(9 * time.Second)
		held("billing-1", "shipping")
		pass(9 * time.Second)
		require.Len(t, s.told(), before+2, "one for each client")
		require.Equal(t, 3, s.List()[0].Queues)
		held("billing-1", "shipping", "billing-2", "billing.3")
		pass(9 * time.Second)
		require.Len(t, s.told(), before+2, "and none more for instances of the same application")
	})
}

// TestABacklogIsNotStuck: an overdue deadline is behind others for a while, if others are fired.
func TestABacklogIsNotStuck(t *testing.T) {
	now := time.Now()
	told := func(lag time.Duration, kind Kind, ago time.Duration) bool {
		return len(seeStuck(&State{Now: now, Lag: lag, Tallies: []Tally{{Event: Event{Kind: kind}, Last: now.Add(-ago)}}})) > 0
	}
	require.False(t, told(10*time.Second, Expired, time.Second))
	require.False(t, told(10*time.Second, ExpiredLate, time.Second))
	require.True(t, told(10*time.Second, LockHeld, time.Second), "that is not a deadline")
	require.True(t, told(10*time.Second, Expired, time.Minute))
	require.True(t, told(2*backlogTooLong, Expired, time.Second), "it is another queue's")
}

// TestWhoHolds: instances of an application are one cause, also when they connect again; clients without a name are their hosts.
func TestWhoHolds(t *testing.T) {
	of := func(connection, address string) string {
		return (&PastDeadline{QueueName: QueueName{"shop", "q"}, Connection: connection, User: "ann", Address: address}).cause()
	}
	for _, one := range [][2]string{{"worker-1", "h:1"}, {"worker-2", "i:2"}, {"worker", "h:3"}} {
		require.Equal(t, "worker shop", of(one[0], one[1]))
	}
	require.Equal(t, "ann 10.0.0.7 shop", of("10.0.0.7:5000 -> 10.0.0.1:5672", "10.0.0.7:5000"))
	require.Equal(t, "ann fe80::1 shop", of("fe80::1:5000 -> fe80::2:5672", "[fe80::1]:5000"))
	require.Equal(t, "ann h shop", of("42", "h:1"))
}

// TestLossStandsFirst: messages that were dropped are critical, and stand above more that are parked. What will expire becomes critical, which is
// told, and is so until its end, which goes where that went.
func TestLossStandsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.set(func(now *State) {
			now.Parked = []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 13967}}
			now.Forecasts = []deadline.Forecast{atRisk(QueueName{"/", "a"}, 40)}
		})
		saved := missed("b", 300)
		saved.Action = "dead_lettered"
		s.Record(saved)
		pass(9 * time.Second)
		require.Equal(t, []Level{Critical, Warning}, []Level{s.List()[0].Level, s.List()[1].Level})
		before := len(s.told())
		s.Record(missed("a", 14))
		pass(5 * time.Second)
		first := s.List()[0]
		require.Equal(t, []any{"deadline_missed", Critical, "a"}, []any{first.Condition, first.Level, first.Worst[0].Queue})
		require.Equal(t, Warning, s.View().Queues[QueueName{"/", "b"}].Level)
		require.Len(t, s.told(), before+1)
		pass(2 * time.Minute)
		require.Equal(t, []Level{Critical, Critical}, []Level{s.List()[0].Level, s.List()[1].Level}, "until it is over")
		require.Equal(t, Critical, s.View().Queues[QueueName{"/", "a"}].Level, "as the incident about it")
		require.Len(t, s.told(), before+1)
		s.set(func(now *State) { now.Forecasts = nil })
		pass(2 * time.Minute)
		over := s.View().Over[0]
		require.Equal(t, []any{"deadline_missed", Critical}, []any{over.Condition, over.Level})
		require.Len(t, s.told(), before+2)
	})
}

// TestMostMessagesStandFirst: incidents of a level stand by how many messages they cost, then the oldest first, whatever their conditions are, and their
// queues likewise.
func TestMostMessagesStandFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		few, many, later := QueueName{"/", "few"}, QueueName{"/", "many"}, QueueName{"shop", "later"}
		s.set(func(now *State) {
			now.Schedule = "down"
			now.Forecasts = []deadline.Forecast{atRisk(few, 40)}
			now.Held = []PastDeadline{{QueueName: many, Connection: "worker", User: "ann", Address: "h:1", Count: 100, Past: 100, FirstDeadlineAt: 1}}
		})
		pass(9 * time.Second)
		s.set(func(now *State) {
			now.Forecasts = append(now.Forecasts, atRisk(later, 40))
		})
		pass(9 * time.Second)
		var order []string
		for _, i := range s.List() {
			order = append(order, i.Condition)
		}
		require.Equal(t, []string{"schedule_degraded", "held_past_deadline", "deadline_missed", "deadline_missed"}, order, "that is about everything")
		require.Equal(t, "few", s.List()[2].Worst[0].Queue, "it is older")
		require.IsIncreasing(t, []int{s.View().Queues[many].Place, s.View().Queues[few].Place, s.View().Queues[later].Place})
	})
}

// TestEachConditionStandsOnce before any does twice, and before that what is about all of Curfew.
func TestEachConditionStandsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for n := range 3 {
			s.Record(missed(fmt.Sprint("q", n), int64(30-n)))
			pass(5 * time.Second)
		}
		s.set(func(now *State) {
			now.Blocked = "low on disk"
			now.Parked = []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 7}}
		})
		pass(9 * time.Second)
		var order []string
		for _, i := range s.List() {
			order = append(order, i.Condition)
		}
		require.Equal(t, []string{"publishers_blocked", "deadline_missed", "dead_letter_unroutable", "deadline_missed", "deadline_missed"}, order)
	})
}

// TestQueuesStandByThemselves, not by the incident that they are in.
func TestQueuesStandByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		place := func(queue string) int { return s.View().Queues[QueueName{"/", queue}].Place }
		s.Record(missed("most", 100))
		s.Record(missed("least", 1))
		pass(9 * time.Second)
		s.Record(missed("other", 40))
		pass(9 * time.Second)
		require.Len(t, s.List(), 2)
		require.Equal(t, []int{1, 2, 3}, []int{place("most"), place("other"), place("least")})
	})
}

// TestAQueueThatLosesNowAndThen is one incident: while it is over for less than ten minutes it comes back under its ID, of which somebody is told once,
// and what it lost before is not forgotten. A restart changes nothing in that.
func TestAQueueThatLosesNowAndThen(t *testing.T) {
	dir := t.TempDir()
	q := QueueName{"/", "a"}
	var id string
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.Dir = dir })
		began := time.Now()
		risk := func(in time.Duration) {
			f := atRisk(q, 1)
			f.FirstMiss = time.Now().Add(in).UnixMilli()
			s.set(func(now *State) { now.Forecasts = []deadline.Forecast{f} })
			pass(in)
			s.set(func(now *State) { now.Forecasts = nil })
			s.Record(missed("a", 1))
			pass(2 * time.Second)
		}
		risk(4 * time.Second)
		require.Equal(t, []string{"firing CurfewDeadlineMissed a"}, s.told())
		require.Equal(t, "critical", s.receiver.got()[0].CommonLabels["severity"], "it was not told what was at risk for a moment")
		id = s.List()[0].ID
		require.NoError(t, s.Acknowledge(id, Ack{By: "me"}))
		pass(90 * time.Second)
		require.Empty(t, s.List())
		risk(4 * time.Second)
		require.Equal(t, []any{id, int64(2)}, []any{s.List()[0].ID, s.List()[0].Lost})
		require.Nil(t, s.List()[0].Ack, "it ended with what it was given for")
		require.WithinDuration(t, began, s.List()[0].Since, 5*time.Second)
		require.Equal(t, s.List()[0].Since, s.List()[0].History[0].At, "it began once")
		require.WithinDuration(t, time.Now(), *s.List()[0].Back, 5*time.Second)
		require.Equal(t, []string{"firing CurfewDeadlineMissed a", "resolved CurfewDeadlineMissed a", "firing CurfewDeadlineMissed a"}, s.told())
		require.Empty(t, s.View().Over)

		f := atRisk(q, 1)
		f.FirstMiss = time.Now().Add(5 * time.Minute).UnixMilli()
		s.set(func(now *State) { now.Forecasts = []deadline.Forecast{f} })
		pass(80 * time.Second)
		require.Equal(t, Critical, s.List()[0].Level)
		require.Regexp(t, `1 message at risk: nobody consumes, the first expires in 3 min \d+ s; 2 messages lost before$`, s.List()[0].Summary)
		require.Len(t, s.told(), 3)
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(190 * time.Second) // the first run, which began at the same time, was over by then
		s := run(t, func(o *Options) { o.Dir = dir })
		pass(55 * time.Second)
		require.Len(t, s.List(), 1, "it loses one a minute")
		pass(50 * time.Second)
		require.Empty(t, s.List())
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Minute)
		s := run(t, func(o *Options) { o.Dir = dir })
		s.Record(missed("a", 1))
		pass(8 * time.Second)
		require.Equal(t, []any{id, int64(3)}, []any{s.List()[0].ID, s.List()[0].Lost})
	})
}

// TestWhatIsLostAfterARestartIsAdded, also to what queues lost before that lose nothing now.
func TestWhatIsLostAfterARestartIsAdded(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []int64{400, 410} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Duration(want-400) * 30 * time.Second) // the second run begins after the first
			s := run(t, func(o *Options) { o.Dir = dir })
			if want == 400 {
				s.Record(missed("a", 300))
				s.Record(missed("b", 100))
			} else {
				s.Record(missed("b", 10))
			}
			pass(20 * time.Second)
			require.Equal(t, want, s.List()[0].Lost)
		})
	}
}

// TestOneLossIsOneIncident: messages that expire and are parked, and messages that are held past their deadline and then expire, stand in one
// incident, with one number.
func TestOneLossIsOneIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		exports, undeliverable := QueueName{"billing", "exports"}, QueueName{"billing", "curfew.undeliverable"}
		parked := missed("exports", 60)
		parked.VHost, parked.Action = "billing", "parked"
		s.Record(parked)
		s.set(func(now *State) {
			now.Forecasts = []deadline.Forecast{atRisk(exports, 10)}
			now.Parked = []Depth{{QueueName: undeliverable, Count: 60}}
		})
		pass(9 * time.Second)
		list := s.List()
		require.Len(t, list, 1)
		require.Equal(t, []any{"dead_letter_unroutable", Critical, int64(60), int64(60)}, []any{list[0].Condition, list[0].Level, list[0].Count, list[0].Toll})
		require.Equal(t, "Dead letters are parked: curfew.undeliverable (vhost billing): 60 dead letters parked, which had nowhere to go", list[0].Summary)
		require.Equal(t, Affected{"billing", "exports", 0, 0, "60 messages expired (parked); 10 messages at risk: nobody consumes, the first expires now"}, list[0].Worst[1])
		require.Equal(t, Critical, s.View().Queues[exports].Level)
		s.set(func(now *State) { *now = State{} })
		pass(2 * time.Minute)
		require.Empty(t, s.List())
		before := len(s.told())

		held := []PastDeadline{{QueueName: orders, Connection: "worker", User: "ann", Address: "h:1", Count: 40, Past: 40, FirstDeadlineAt: time.Now().UnixMilli()}}
		s.set(func(now *State) { now.Held = held })
		pass(9500 * time.Millisecond)
		require.Len(t, s.List(), 1)
		s.set(func(now *State) { now.Held = nil })
		lost := missed("orders", 38)
		lost.VHost = "shop"
		s.Record(lost)
		pass(20 * time.Second)
		require.Len(t, s.List(), 1)
		require.Contains(t, s.List()[0].Summary, "worker (user ann at h:1) held 40 messages past their deadlines; 38 messages lost (expired)")
		pass(2 * time.Minute)
		require.Empty(t, s.List())
		require.Len(t, s.told(), before+3, "it began, became critical, and is over")
		require.Equal(t, []int64{40, 38}, []int64{s.View().Over[0].Toll, s.View().Over[0].Lost})

		// It is back. A queue that loses messages already: what its slow consumer holds is not the cause.
		s.Record(lost)
		pass(9500 * time.Millisecond)
		s.set(func(now *State) { now.Held = held })
		pass(9 * time.Second)
		require.Len(t, s.List(), 1)
		require.Contains(t, s.List()[0].Summary, "76 messages lost (expired); worker (user ann at h:1) holds 40 messages, the longest ")
	})
}

// TestAnIncidentGoesOn: what was at risk and is parked then, or was held and is lost since nobody consumes, keeps its number, and only what got worse
// is told. Where there is an incident about it already, the first ends as that one. What is told counts once.
func TestAnIncidentGoesOn(t *testing.T) {
	risky := func(queue string, n int) deadline.Forecast {
		return atRisk(QueueName{"shop", queue}, n)
	}
	expired := func(queue, action string, n int64) Event {
		e := missed(queue, n)
		e.VHost, e.Action = "shop", action
		return e
	}
	parked := func(n int) []Depth { return []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: n}} }
	t.Run("parked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := run(t, nil)
			s.set(func(now *State) { now.Forecasts = []deadline.Forecast{risky("orders", 40), risky("mails", 5)} })
			pass(9500 * time.Millisecond)
			first := s.List()[0]
			require.Equal(t, []any{"deadline_missed", Warning, int64(45)}, []any{first.Condition, first.Level, first.Count})
			s.Record(expired("orders", "parked", 40))
			s.set(func(now *State) { now.Forecasts, now.Parked = nil, parked(40) })
			pass(2 * time.Second)
			require.Len(t, s.List(), 1)
			now := s.List()[0]
			require.Equal(t, []any{first.ID, "dead_letter_unroutable", "CurfewDeadLetterUnroutable", Critical, int64(40)}, []any{now.ID, now.Condition, now.Alertname, now.Level, now.Toll})
			require.Contains(t, now.Summary, "Dead letters are parked: curfew.undeliverable (vhost shop): 40 dead letters parked")
			pass(20 * time.Second)
			require.Equal(t, []string{"firing CurfewDeadlineMissed", "firing CurfewDeadlineMissed"}, s.told(), "with the labels that it began with")
			require.Empty(t, s.View().Over)
			s.set(func(now *State) { now.Parked = nil })
			pass(2 * time.Minute)
			require.Len(t, s.View().Over, 1)
			require.Equal(t, first.ID, s.View().Over[0].ID)
			require.Len(t, s.told(), 3)
		})
	})
	for _, seconds := range []time.Duration{1, 2} {
		t.Run(fmt.Sprintf("one of two queues, the other at risk for %d s more", seconds), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := run(t, nil)
				s.set(func(now *State) { now.Forecasts = []deadline.Forecast{risky("orders", 40), risky("mails", 5)} })
				pass(9 * time.Second)
				s.Record(expired("orders", "parked", 40))
				s.set(func(now *State) { now.Forecasts, now.Parked = now.Forecasts[1:], parked(40) })
				pass(seconds * time.Second)
				require.Len(t, s.List(), 2)
				require.Contains(t, s.List()[1].Summary, "mails (vhost shop): 5 messages at risk")
				require.EqualValues(t, 5, s.List()[1].Count, "the others are told once")
				s.set(func(now *State) { now.Forecasts = nil })
				pass(time.Minute)
				require.Equal(t, "Messages were at risk, and none expired: mails (vhost shop)", s.View().Over[0].Summary)
			})
		})
	}
	t.Run("into another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := run(t, nil)
			s.set(func(now *State) { now.Parked = parked(3) })
			pass(9 * time.Second)
			s.set(func(now *State) { now.Forecasts = []deadline.Forecast{risky("orders", 40)} })
			pass(9500 * time.Millisecond)
			s.Record(expired("orders", "parked", 40))
			s.set(func(now *State) { now.Forecasts, now.Parked = nil, parked(43) })
			pass(2 * time.Second)
			require.Len(t, s.List(), 1)
			over := s.View().Over[0]
			require.Equal(t, s.List()[0].ID, over.Became)
			require.Equal(t, "Messages were at risk: orders (vhost shop); it became incident "+over.Became, over.Summary)
			require.Equal(t, "became incident "+over.Became, over.History[len(over.History)-1].Text)
		})
	})
	t.Run("others are to be told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := run(t, func(o *Options) {
				o.File = settingsFile(t, "rules: [{events: deadline_missed, to: log}]")
			})
			s.set(func(now *State) { now.Forecasts = []deadline.Forecast{risky("orders", 40)} })
			pass(9 * time.Second)
			require.Empty(t, s.told())
			s.Record(expired("orders", "parked", 40))
			s.set(func(now *State) { now.Forecasts, now.Parked = nil, parked(40) })
			pass(3 * time.Second)
			require.Equal(t, []string{"firing CurfewDeadLetterUnroutable"}, s.told())
			require.Equal(t, s.List()[0].ID, s.View().Over[0].Became)
		})
	})
	t.Run("held, then lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := run(t, nil)
			s.set(func(now *State) {
				now.Held = []PastDeadline{{QueueName: orders, Connection: "worker", User: "ann", Address: "h:1", Count: 4, Past: 4, FirstDeadlineAt: time.Now().UnixMilli()}}
			})
			pass(9500 * time.Millisecond)
			first := s.List()[0]
			s.set(func(now *State) { now.Held = nil })
			for range 20 {
				s.Record(expired("orders", "dropped", 1))
				pass(time.Second)
			}
			require.Len(t, s.List(), 1)
			require.Equal(t, []any{first.ID, "deadline_missed", int64(20)}, []any{s.List()[0].ID, s.List()[0].Condition, s.List()[0].Lost})
			require.Contains(t, s.List()[0].Summary, "Messages expire unconsumed: orders (vhost shop): 20 messages lost (expired)")
			require.Empty(t, s.View().Over)
		})
	})
}

// TestTwoConsumersAreTwoIncidents: the one that is to blame after another has a number and messages of its own.
func TestTwoConsumersAreTwoIncidents(t *testing.T) {
	holds := func(client string, n int) PastDeadline {
		return PastDeadline{QueueName: orders, Connection: client, User: "ann", Address: client + ":1", Count: n, Past: n, FirstDeadlineAt: time.Now().UnixMilli()}
	}
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.set(func(now *State) { now.Held = []PastDeadline{holds("first", 40)} })
		pass(9500 * time.Millisecond)
		first := s.List()[0]
		s.set(func(now *State) { now.Held = []PastDeadline{holds("second", 3), holds("first", 40)} })
		pass(9 * time.Second)
		require.Len(t, s.List(), 1)
		require.Contains(t, s.List()[0].Summary, "first (user ann at first:1) holds 40 messages, the longest 8 s past its deadline; 1 other client holds 3 more")
		s.set(func(now *State) { now.Held = now.Held[:1] })
		e := missed("orders", 38)
		e.VHost = "shop"
		s.Record(e)
		pass(4 * time.Second)
		require.Equal(t, []any{first.ID, int64(38)}, []any{s.List()[0].ID, s.List()[0].Lost})
		require.Contains(t, s.List()[0].Summary, "first (user ann at first:1) held 40 messages past their deadlines; 38 messages lost (expired)")
		second := s.List()[1]
		require.Contains(t, second.Summary, "second (user ann at second:1) holds 3 messages")
		require.EqualValues(t, 3, second.Toll)
		pass(2 * time.Minute) // the first is over; the second gives back what it held
		s.set(func(now *State) { now.Held = nil })
		e.Count = 2
		s.Record(e)
		pass(2 * time.Second)
		require.Len(t, s.List(), 1)
		require.Equal(t, second.ID, s.List()[0].ID)
		require.Contains(t, s.List()[0].Summary, "second (user ann at second:1) held 3 messages past their deadlines; 2 messages lost (expired)")
	})

	// While nobody is to blame the first one's incident goes on, but not as that of the second.
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.set(func(now *State) { now.Held = []PastDeadline{holds("first", 4)} })
		pass(9500 * time.Millisecond)
		first := s.List()[0].ID
		s.set(func(now *State) { now.Held = nil })
		e := missed("orders", 1)
		e.VHost = "shop"
		for range 12 {
			s.Record(e)
			pass(time.Second)
		}
		require.Equal(t, []string{first, "deadline_missed"}, []string{s.List()[0].ID, s.List()[0].Condition})
		s.set(func(now *State) {
			now.Held = []PastDeadline{holds("second", 3)}
			now.Forecasts = []deadline.Forecast{stuckAt(orders, 9)}
		})
		pass(5 * time.Second)
		require.Len(t, s.List(), 1)
		require.NotEqual(t, first, s.List()[0].ID)
		require.Equal(t, []string{first, s.List()[0].ID}, []string{s.View().Over[0].ID, s.View().Over[0].Became})
	})
}

// TestTheEndSaysWhatItCost: what is gone is told from what was dead-lettered, what was averted is not said to have happened, and a part of Curfew is
// named.
func TestTheEndSaysWhatItCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		saved := missed("mails", 40)
		saved.Action = "dead_lettered"
		s.Record(saved)
		s.Record(missed("carts", 3))
		pass(9 * time.Second)
		require.Equal(t, []int64{43, 3}, []int64{s.List()[0].Toll, s.List()[0].Lost})
		require.WithinDuration(t, time.Now().Add(-9*time.Second), *s.List()[0].Losing, time.Second)
		pass(2 * time.Minute)
		require.Equal(t, "Messages expired unconsumed: carts (vhost /) and 1 other queue: 43 messages, 3 lost", s.View().Over[0].Summary)

		s.set(func(now *State) {
			now.Forecasts = []deadline.Forecast{atRisk(QueueName{"/", "a"}, 40)}
			now.Blocked = "low on disk"
			now.Refusals = []Refusal{{What: "AMQP", Most: 3}}
		})
		pass(9 * time.Second)
		s.set(func(now *State) { *now = State{} })
		pass(2 * time.Minute)
		var ends []string
		for _, i := range s.View().Over[:3] {
			ends = append(ends, i.Summary)
		}
		require.ElementsMatch(t, []string{"Messages were at risk, and none expired: a (vhost /)", `Publishers were blocked ("low on disk")`, "Connections were refused: AMQP"}, ends)
	})
}

// TestOneDropIsOneLoss: what a queue has dead-lettered before is not lost with it.
func TestOneDropIsOneLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		saved := missed("a", 40)
		saved.Action = "dead_lettered"
		s.Record(saved)
		pass(9 * time.Second)
		s.Record(missed("a", 1))
		pass(2 * time.Second)
		first := s.List()[0]
		require.Contains(t, first.Summary, "1 message lost (expired), 40 dead-lettered")
		require.WithinDuration(t, time.Now(), *first.Losing, 3*time.Second)
	})
}

// TestAcknowledge: nobody is notified of an incident that somebody has taken over, until that ends. Whoever was told the beginning is told
// the end. The verdict stays what it is.
func TestAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.degraded("refused")
		pass(9 * time.Second)
		require.Len(t, s.told(), 1)
		id := s.List()[0].ID
		require.ErrorIs(t, s.Acknowledge("none", Ack{}), ErrNotFound)
		past := time.Now().Add(-time.Second)
		require.ErrorContains(t, s.Acknowledge(id, Ack{Until: &past}), "in the past")
		require.NoError(t, s.Acknowledge(id, Ack{By: "ann"}))
		require.Equal(t, []any{"ann", true}, []any{s.List()[0].Ack.By, s.List()[0].Quiet})
		require.Equal(t, Degraded, s.Overview().Verdict)
		s.degraded("")
		pass(10 * time.Second)
		require.Equal(t, []string{"firing CurfewScheduleDegraded", "resolved CurfewScheduleDegraded"}, s.told())

		s.degraded("refused again")
		pass(4500 * time.Millisecond)
		s.List()
		pass(time.Minute)
		until := time.Now().Add(time.Hour)
		require.NoError(t, s.Acknowledge(s.List()[0].ID, Ack{By: "ann", Until: &until}))
		require.NoError(t, s.Unacknowledge(s.List()[0].ID, "bob"))
		require.False(t, s.List()[0].Quiet)
		var history []string
		for _, e := range s.List()[0].History {
			history = append(history, e.Text)
		}
		require.Equal(t, []string{"acknowledged by ann", "no longer acknowledged, says bob"}, history[1:])
	})
}

// TestAnAcknowledgementIsForItsQueues: somebody is told of a queue that joins later, also after a restart.
func TestAnAcknowledgementIsForItsQueues(t *testing.T) {
	dir := t.TempDir()
	holds := func(s setup, queues ...string) {
		s.set(func(now *State) {
			now.Held = nil
			for _, q := range queues {
				now.Held = append(now.Held, PastDeadline{QueueName: QueueName{"shop", q}, Connection: "worker", User: "ann", Address: "h:1", Count: 4, Past: 4, FirstDeadlineAt: 1})
			}
		})
		pass(9 * time.Second)
	}
	several := make([]string, maxWorst+5)
	for n := range several {
		several[n] = fmt.Sprint("q", n)
	}
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.Dir = dir })
		holds(s, several...)
		require.NoError(t, s.Acknowledge(s.List()[0].ID, Ack{By: "ann"}))
		holds(s, several...)
		require.Len(t, s.told(), 1)
	})
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.Dir = dir })
		holds(s, several...)
		require.Empty(t, s.told())
		require.True(t, s.List()[0].Quiet)
		pass(time.Minute)
		holds(s, append(several, "payments")...)
		require.Equal(t, []string{"firing CurfewHeldPastDeadline"}, s.told())
		require.Regexp(t, `^Another queue: payments \(vhost shop\): worker \(user ann at h:1\) holds 4 messages, .* deadline\. A consumer holds .* 25 queues more, 104 in all$`, s.receiver.got()[0].CommonAnnotations["summary"])
		require.Nil(t, s.List()[0].Ack)
		require.Equal(t, "the acknowledgement ended: another queue, payments (vhost shop)", s.List()[0].History[2].Text)
		holds(s, append(several, "payments", "carts")...)
		require.Len(t, s.told(), 1, "nobody had taken it over")
	})
}

// TestMaintenance: nobody is told of what goes wrong with the queues of a window; whoever looks sees it.
func TestMaintenance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for _, c := range []struct {
			want string
			w    Window
		}{
			{"say when it ends", Window{}}, {"in the past", Window{Until: time.Now().Add(-time.Hour), From: time.Now().Add(-2 * time.Hour)}}, {"days away", Window{Until: time.Now().Add(9000 * time.Hour)}},
			{"before it begins", Window{From: time.Now().Add(2 * time.Hour), Until: time.Now().Add(time.Hour)}}, {"unknown condition", Window{Condition: "x", Until: time.Now().Add(time.Hour)}},
			{"UTF-8", Window{Queue: "\xff", Until: time.Now().Add(time.Hour)}},
		} {
			_, err := s.AddWindow(c.w)
			require.ErrorContains(t, err, c.want)
		}
		made, err := s.AddWindow(Window{Queue: "a*", Condition: "deadline_missed", From: time.Now().Add(time.Minute), Until: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		pass(2 * time.Minute)
		s.Record(missed("abc", 1))
		pass(9 * time.Second)
		require.Empty(t, s.told())
		require.True(t, s.List()[0].Quiet)
		s.Record(missed("b", 1))
		pass(9 * time.Second)
		require.Equal(t, []string{"firing CurfewDeadlineMissed b"}, s.told())
		require.NoError(t, s.EndWindow(made.ID))
		require.ErrorIs(t, s.EndWindow(made.ID), ErrNotFound)
		pass(2 * time.Second)
		require.Equal(t, "firing CurfewDeadlineMissed abc", s.told()[1])
	})
}

// TestKeptOverARestart: what stands is not told again, its acknowledgement and history are kept, what was over meanwhile is told; a
// damaged file is set aside.
func TestKeptOverARestart(t *testing.T) {
	dir := t.TempDir()
	o := func(o *Options) { o.Dir = dir }
	var id string
	synctest.Test(t, func(t *testing.T) {
		s := run(t, o)
		s.degraded("refused")
		s.set(func(now *State) { now.Blocked = "low on disk" })
		pass(9 * time.Second)
		require.Len(t, s.told(), 2)
		id = s.List()[1].ID
		require.NoError(t, s.Acknowledge(id, Ack{By: "ann"}))
		_, err := s.AddWindow(Window{Queue: "x", Until: time.Now().Add(time.Hour)})
		require.NoError(t, err)
	})
	synctest.Test(t, func(t *testing.T) {
		s := run(t, o)
		s.degraded("refused")
		pass(3 * time.Second)
		require.Empty(t, s.told(), "nothing is new")
		require.Len(t, s.Windows(), 1)
		require.Equal(t, []string{id, "ann"}, []string{s.List()[1].ID, s.List()[1].Ack.By})
		pass(7 * time.Second)
		require.Equal(t, []string{"resolved CurfewPublishersBlocked"}, s.told())
		require.Equal(t, id, s.List()[0].ID)
		over := s.View().Over[0]
		require.InDelta(t, 9*time.Second, over.Ended.Sub(over.Since), float64(2*time.Second), "until Curfew was stopped")
		require.Contains(t, over.Summary, "; it ended while Curfew was not running")
		require.Equal(t, "over: it ended while Curfew was not running", over.History[len(over.History)-1].Text)
	})
	path := filepath.Join(dir, keptFile)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		s := run(t, o)
		require.Empty(t, s.List())
		require.Equal(t, 1, s.log.FilterMessageSnippet("is damaged").Len())
		require.FileExists(t, path+".damaged")
		require.NoError(t, os.Mkdir(path+".new", 0o700)) // where it is written
		_, err := s.AddWindow(Window{Until: time.Now().Add(time.Hour)})
		require.ErrorIs(t, err, ErrNotSaved)
		require.Empty(t, s.Windows())
	})
}

// TestTheCountIsKeptOverARestart: what is lost after a restart is added to what was lost before it.
func TestTheCountIsKeptOverARestart(t *testing.T) {
	dir := t.TempDir()
	for _, run := range []struct {
		lost int64
		text string
	}{{2000, "2,000 messages lost (expired)"}, {10, "2,010 messages lost (expired)"}} {
		synctest.Test(t, func(t *testing.T) {
			s := prepare(t, func(o *Options) { o.Dir = dir })
			s.start(t)
			s.Record(missed("a", run.lost))
			pass(9 * time.Second)
			require.Len(t, s.List(), 1)
			require.Contains(t, s.List()[0].Summary, run.text)
		})
	}
}

// TestEndThatWasNotSaved: an end that could not be saved is saved later, though nothing else changes, and is told once.
func TestEndThatWasNotSaved(t *testing.T) {
	dir := t.TempDir()
	o := func(o *Options) { o.Dir = dir }
	blocked := filepath.Join(dir, keptFile) + ".new" // where it is written
	synctest.Test(t, func(t *testing.T) {
		s := run(t, o)
		s.degraded("refused")
		pass(9 * time.Second)
		require.Equal(t, []string{"firing CurfewScheduleDegraded"}, s.told())
		require.NoError(t, os.Mkdir(blocked, 0o700))
		s.degraded("")
		pass(12 * time.Second)
		require.Equal(t, []string{"firing CurfewScheduleDegraded", "resolved CurfewScheduleDegraded"}, s.told())
		require.Less(t, s.log.FilterMessageSnippet("could not be saved").Len(), 4)
		require.NoError(t, os.Remove(blocked))
		pass(11 * time.Second)
		data, err := os.ReadFile(filepath.Join(dir, keptFile))
		require.NoError(t, err)
		var k kept
		require.NoError(t, json.Unmarshal(data, &k))
		require.Empty(t, k.Open)
		require.Len(t, k.Recent, 1)
	})
}

// TestOverWithTheProcess: what a new data folder has begun ends at the next start, which knows that it is not new.
func TestOverWithTheProcess(t *testing.T) {
	dir := t.TempDir()
	o := func(o *Options) { o.Dir = dir }
	synctest.Test(t, func(t *testing.T) {
		s := run(t, o)
		s.set(func(now *State) { now.Orphans = 3 })
		pass(9 * time.Second)
		require.Len(t, s.told(), 1)
	})
	synctest.Test(t, func(t *testing.T) {
		s := run(t, o)
		pass(3 * time.Second)
		require.Equal(t, []string{"resolved CurfewDataFolderNew"}, s.told())
		require.Empty(t, s.List())
	})
}

// TestAHealthyNight: retries, telemetry, restarts of clients and of Redis for a moment, a machine that is busy: nobody is told anything.
func TestAHealthyNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.set(func(now *State) {
			now.Purposes = map[QueueName]deadline.Purpose{{"/", "retry"}: deadline.Retry, {"/", "readings"}: deadline.Telemetry}
			now.Letters, now.OpenFiles, now.SlowSyncs, now.DiskFullIn = 900, 0.5, 0.001, 40*time.Hour
		})
		for minute := range 10 * 60 {
			s.Record(missed("retry", 40))
			s.Record(missed("readings", 900))
			s.set(func(now *State) {
				now.Forecasts = []deadline.Forecast{atRisk(QueueName{"/", "retry"}, 40)}
				now.Starved = 0
			})
			switch minute % 10 {
			case 3: // Redis fails over
				s.degraded("connection refused")
				pass(2 * time.Second)
				s.degraded("")
			case 5: // a consumer is restarted, and a message waits for a moment
				s.set(func(now *State) {
					now.Forecasts = append(now.Forecasts, atRisk(orders, 3))
					now.Held = []PastDeadline{{QueueName: orders, Connection: "worker", Count: 1, FirstDeadlineAt: time.Now().UnixMilli()}}
				})
				pass(1500 * time.Millisecond)
				s.set(func(now *State) { now.Forecasts, now.Held = now.Forecasts[:1], nil })
			case 7: // other processes take the processor
				e := missed("orders", 22)
				e.Kind, e.WorstMillis = ExpiredLate, 1400
				s.set(func(now *State) { now.Starved = 1400 * time.Millisecond })
				s.Record(e)
				pass(time.Second)
			}
			pass(time.Minute)
		}
		require.Empty(t, s.told())
		require.Zero(t, s.log.FilterField(zap.String("status", "firing")).Len())
		require.Equal(t, OK, s.Overview().Verdict)
	})
}

// TestStarvation: a Curfew with a processor has none.
func TestStarvation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		pass(time.Hour)
		require.Zero(t, s.starved.within(starvedFor, time.Now()))
	})
}

// TestLossesRise: what counts is what was added, without a pause of a minute.
func TestLossesRise(t *testing.T) {
	l := losses{}
	now := time.Now()
	at := func(after time.Duration, total uint64) int {
		return l.rising(map[string]uint64{"x": total}, now.Add(after))["x"]
	}
	require.Zero(t, at(0, 5), "that was before")
	require.Equal(t, 2, at(10*time.Second, 7))
	require.Equal(t, 3, at(60*time.Second, 8))
	require.Equal(t, 3, at(119*time.Second, 8))
	require.Zero(t, at(120*time.Second, 8))
}

// TestMetric: each condition has its series all the time, which say how many messages it is about.
func TestMetric(t *testing.T) {
	s := prepare(t, nil)
	s.set(func(now *State) {
		now.Parked = []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 7}}
		now.Starved = 20 * time.Second
	})
	families, err := s.registry.Gather()
	require.NoError(t, err)
	values := make(map[string]float64)
	for _, f := range families {
		if f.GetName() == "curfew_incident" {
			for _, m := range f.GetMetric() {
				values[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	require.Len(t, values, len(Conditions)+1)
	require.Equal(t, []float64{7, 1, 0, 0}, []float64{values["dead_letter_unroutable critical"], values["processor_starved warning"], values["processor_starved info"], values["deadline_missed warning"]})
}

// TestReadersWaitForNoJudgement: while the state is judged, which takes a while where there are thousands of queues, lists and metrics show
// what was judged before.
func TestReadersWaitForNoJudgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := make(chan struct{}, 1)
		s := prepare(t, nil)
		s.options.Look = func(to *State) {
			<-look
			s.look(to)
		}
		s.set(func(now *State) {
			now.Parked = []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 7}}
		})
		look <- struct{}{}
		before := s.List()
		require.Len(t, before, 1)
		window, err := s.AddWindow(Window{VHost: "shop", Until: time.Now().Add(time.Hour)})
		require.NoError(t, err)

		pass(2 * lookEvery)
		judged := make(chan struct{})
		go func() {
			s.judge()
			close(judged)
		}()
		synctest.Wait()
		require.Equal(t, before, s.List())
		require.Empty(t, s.View().Over)
		require.Len(t, s.Windows(), 1)
		require.Equal(t, window.ID, s.Windows()[0].ID)
		_, err = s.registry.Gather()
		require.NoError(t, err)
		look <- struct{}{}
		<-judged
	})
}

// TestOverview: the verdict and what it is about.
func TestOverview(t *testing.T) {
	s := prepare(t, nil)
	s.set(func(now *State) { now.Blocked = "low on disk" })
	o := s.Overview()
	require.Equal(t, Failing, o.Verdict)
	require.Equal(t, "Publishers are blocked: low on disk", o.Incidents[0].Summary)
	require.Equal(t, "curfew status", o.Incidents[0].Command)
}

// TestCommands have the names of queues in them, safe for a shell.
func TestCommands(t *testing.T) {
	c := ConditionOf("deadline_missed").Command
	require.Equal(t, "curfew queue show orders --vhost /", fill(c, QueueName{"/", "orders"}, deadline.Shell))
	require.Equal(t, `curfew queue show 'a '\''b'\''; rm' --vhost shop`, fill(c, QueueName{"shop", "a 'b'; rm"}, deadline.Shell))
	require.Equal(t, "curfew queue show", fill(c, QueueName{}, deadline.Shell))
}

// TestItEndsWithItsCause: within some ten seconds, though messages were lost less than a minute ago. What is only past ends a minute after it.
func TestItEndsWithItsCause(t *testing.T) {
	lost := func(action string) Event {
		e := missed("orders", 40)
		e.VHost, e.Action = "shop", action
		return e
	}
	parked := []Depth{{QueueName: QueueName{"shop", "curfew.undeliverable"}, Count: 40}}
	held := []PastDeadline{{QueueName: orders, Connection: "worker", User: "ann", Address: "h:1", Count: 4, Past: 4, FirstDeadlineAt: 1}}
	for _, c := range []struct {
		name          string
		begins, mends func(*setup, *State)
		most          time.Duration
	}{
		{"a consumer came", func(s *setup, now *State) {
			s.Record(lost("dropped"))
			now.Forecasts = []deadline.Forecast{atRisk(orders, 5)}
		}, func(_ *setup, now *State) {
			now.Forecasts, now.Consumers = nil, map[QueueName]Consumers{orders: {Count: 1, Came: time.Now()}}
		}, 11 * time.Second},
		{"what was parked was moved", func(s *setup, now *State) {
			s.Record(lost("parked"))
			now.Parked = parked
		}, func(_ *setup, now *State) { now.Parked = nil }, 5 * time.Second},
		{"the consumer left that held them", func(_ *setup, now *State) { now.Held = held }, func(s *setup, now *State) {
			s.Record(lost("dropped"))
			now.Held, now.Consumers = nil, map[QueueName]Consumers{orders: {Count: 1, Left: time.Now()}}
		}, 11 * time.Second},
		{"nobody came", func(s *setup, _ *State) { s.Record(lost("dropped")) }, func(_ *setup, now *State) {
			now.Consumers = map[QueueName]Consumers{orders: {Left: time.Now()}}
		}, 70 * time.Second},
		{"dead letters are no longer dropped", func(_ *setup, now *State) { now.Lost = map[string]uint64{"dead_letters_dropped": 2} }, func(*setup, *State) {}, 70 * time.Second},
		{"file descriptors are free", func(_ *setup, now *State) { now.OpenFiles = 0.95 }, func(_ *setup, now *State) { now.OpenFiles = 0.5 }, 12 * time.Second},
		{"there is room on the disk", func(_ *setup, now *State) { now.DiskFullIn = time.Hour }, func(_ *setup, now *State) { now.DiskFullIn = 0 }, 12 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := run(t, nil)
				s.set(func(now *State) { now.Lost = map[string]uint64{"dead_letters_dropped": 1} })
				pass(1500 * time.Millisecond)
				s.set(func(now *State) { c.begins(&s, now) })
				began := time.Now()
				for pass(9 * time.Second); len(s.List()) == 0; pass(time.Minute) {
					require.Less(t, time.Since(began), time.Hour)
				}
				s.set(func(now *State) { c.mends(&s, now) })
				pass(time.Second)
				require.Len(t, s.List(), 1)
				pass(c.most - time.Second)
				require.Empty(t, s.wrong())
				pass(2 * time.Minute)
				require.Len(t, s.View().Over, 1, "it does not come back")
			})
		})
	}
}

// TestTheTollIsOneNumber: what expires again while an incident is open is added to what expired before, however long the pause, and what a queue cost
// that is well again stays in it.
func TestTheTollIsOneNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		lost := func(n int64) {
			e := missed("orders", n)
			e.VHost = "shop"
			s.Record(e)
			pass(2 * time.Second)
		}
		lost(174)
		pass(8 * time.Second)
		first := s.List()[0].ID
		s.set(func(now *State) { now.Consumers = map[QueueName]Consumers{orders: {Count: 1, Came: time.Now()}} })
		pass(5 * time.Second) // the consumer has come
		require.Len(t, s.List(), 1)
		s.set(func(now *State) { now.Consumers = nil })
		lost(5)
		require.Equal(t, []any{first, int64(179), int64(179)}, []any{s.List()[0].ID, s.List()[0].Toll, s.List()[0].Lost})
		require.Contains(t, s.List()[0].Summary, "179 messages lost (expired)")
		require.WithinDuration(t, time.Now(), *s.List()[0].Losing, 3*time.Second)

		s.set(func(now *State) { now.Forecasts = []deadline.Forecast{atRisk(orders, 9)} })
		pass(3 * time.Minute)
		require.Nil(t, s.List()[0].Losing)
		require.EqualValues(t, 9, s.List()[0].Count, "none expired in the last minute")
		lost(3)
		require.Equal(t, []any{first, int64(182)}, []any{s.List()[0].ID, s.List()[0].Toll})
		s.set(func(now *State) { now.Forecasts = nil })
		pass(3 * time.Minute)
		require.EqualValues(t, 182, s.View().Over[0].Toll)
		lost(1)
		pass(8 * time.Second)
		require.Equal(t, []any{first, int64(183)}, []any{s.List()[0].ID, s.List()[0].Toll}, "it is back")
		require.Equal(t, 1, s.tallies.count())
		pass(3*time.Minute + backWithin)
		require.Zero(t, s.tallies.count())
		lost(1)
		pass(8 * time.Second)
		require.NotEqual(t, first, s.List()[0].ID)
		require.EqualValues(t, 1, s.List()[0].Toll, "an incident of its own")
	})
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.Record(missed("a", 100))
		for range 60 {
			s.Record(missed("b", 1))
			pass(2 * time.Second)
		}
		require.Len(t, s.List(), 1)
		require.Equal(t, []any{1, int64(60), int64(160)}, []any{s.List()[0].Queues, s.List()[0].Count, s.List()[0].Toll})
		pass(2 * time.Minute)
		require.Equal(t, []any{2, int64(160)}, []any{s.View().Over[0].Queues, s.View().Over[0].Toll})
	})
}

// TestACriticalIncidentEndsAsSuch: what goes on is an incident of its own if it is not as bad.
func TestACriticalIncidentEndsAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.set(func(now *State) { now.Parked = []Depth{{QueueName: orders, Count: 40}} })
		pass(9 * time.Second)
		s.set(func(now *State) {
			now.Parked, now.Forecasts = nil, []deadline.Forecast{atRisk(orders, 5)}
		})
		pass(9 * time.Second)
		require.Len(t, s.List(), 1)
		require.Equal(t, []Level{Warning, Critical}, []Level{s.List()[0].Level, s.View().Over[0].Level})
	})
}

// TestASinkThatWasCorrected: what failed is forgotten when its URL is corrected, or a test arrives.
func TestASinkThatWasCorrected(t *testing.T) {
	s := prepare(t, nil)
	failing := func() *trouble { return s.Sinks()[1].Trouble }
	s.delivery.sinks()[0].note(errors.New("refused"))
	require.NotNil(t, failing())
	_, err := s.SendTest(t.Context(), "webhook")
	require.NoError(t, err)
	require.Nil(t, failing())
	s.delivery.sinks()[0].note(errors.New("refused"))
	s.delivery.use([]sinkSettings{{name: "webhook", url: "webhook+http://hooks.example/other"}})
	require.Nil(t, failing())
}
