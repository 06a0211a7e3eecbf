package queue

import (
	"fmt"
	"testing"
	"unique"

	"pgregory.net/rapid"

	"curfew/broker/deadline"
)

var retries = []unique.Handle[Retry]{
	NoRetry,
	unique.Make(Retry{Failed: true, Returned: true, Count: 3, Steps: [MaxSteps]deadline.Millis{1, 3, 2}}),
	unique.Make(Retry{Failed: true, Min: 1, Max: 2}),
	unique.Make(Retry{Returned: true, Min: 2, Max: 5}),
}

func drawOptions(t *rapid.T) Options {
	limit := rapid.OneOf(rapid.Int64Range(-1, 12), rapid.Int64Range(200, 400), rapid.Just(int64(-1)))
	return Options{
		MaxLength:     limit.Draw(t, "max length"),
		MaxBytes:      limit.Draw(t, "max bytes"),
		Overflow:      rapid.SampledFrom([]Overflow{DropHead, RejectPublish, RejectPublishDLX}).Draw(t, "overflow"),
		DeliveryLimit: rapid.Int64Range(-1, 3).Draw(t, "delivery limit"),
		Retry:         rapid.SampledFrom(retries).Draw(t, "retry"),
	}
}

// TestModel drives queue and model with random operations, beginning with what
// a restart may have left behind. Each round is rapid's 100 sequences of some 30
// operations.
func TestModel(t *testing.T) {
	for _, priorities := range []uint8{0, 0, 0, 0, 1, 1, 9, 9, 255, 255} {
		t.Run(fmt.Sprint("priorities ", priorities), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { runModel(t, priorities) })
		})
	}
}

func runModel(t *rapid.T, priorities uint8) {
	o := drawOptions(t)
	o.Priorities = priorities
	k := newMachine(t, o)
	priority := rapid.OneOf(rapid.Uint8Range(0, 2), rapid.Uint8())
	ttl := rapid.OneOf(rapid.Int64Range(-1, 4), rapid.Int64Range(0, 40))
	hole := rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(1<<pageShift-300, 1<<pageShift), rapid.Uint64Range(0, 1<<24))
	pick := rapid.IntRange(0, 1<<20)
	for range rapid.IntRange(0, 4).Draw(t, "restored") {
		k.restore(priority.Draw(t, "priority"), hole.Draw(t, "hole"), ttl.Draw(t, "ttl"))
	}
	some := func(t *rapid.T) Seq {
		if rapid.Bool().Draw(t, "held") {
			return k.held(pick.Draw(t, "which"))
		}
		return k.some(pick.Draw(t, "which"))
	}
	t.Repeat(map[string]func(*rapid.T){
		"publish": func(t *rapid.T) {
			count := rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 200)).Draw(t, "count")
			k.publish(count, priority.Draw(t, "priority"), ttl.Draw(t, "ttl"), rapid.Uint32Range(0, 4).Draw(t, "bytes"))
		},
		"take": func(t *rapid.T) {
			k.take(rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 200)).Draw(t, "count"))
		},
		"ack":     func(t *rapid.T) { k.ack(some(t)) },
		"reject":  func(t *rapid.T) { k.reject(some(t)) },
		"requeue": func(t *rapid.T) { k.requeue(rapid.Bool().Draw(t, "failed"), some(t)) },
		"return":  func(t *rapid.T) { k.giveBack(rapid.Bool().Draw(t, "counted"), rapid.Bool().Draw(t, "failed"), some(t)) },
		"all back": func(t *rapid.T) {
			k.giveBack(rapid.Bool().Draw(t, "counted"), rapid.Bool().Draw(t, "failed"), k.allHeld()...)
		},
		"wake": func(t *rapid.T) {
			k.now += deadline.Instant(rapid.Int64Range(0, 3).Draw(t, "ms") * 1000)
			k.wake()
		},
		"wake now": func(t *rapid.T) {
			s := k.waiting(pick.Draw(t, "which"))
			k.wakeNow(s, k.deadline(s))
		},
		"remove": func(t *rapid.T) {
			s := k.waiting(pick.Draw(t, "which"))
			k.remove(s, k.deadline(s))
		},
		"expire a waiting one": func(t *rapid.T) {
			s := k.waiting(pick.Draw(t, "which"))
			k.expire(s, k.deadline(s))
		},
		"advance": func(t *rapid.T) { k.now += deadline.Instant(rapid.Int64Range(0, 10).Draw(t, "millis")) },
		"expire": func(t *rapid.T) {
			s := some(t)
			k.expire(s, k.deadline(s))
		},
		"expire another": func(t *rapid.T) { k.expire(some(t), deadline.Instant(rapid.Int64Range(-1, 1).Draw(t, "deadline"))) },
		"reschedule": func(t *rapid.T) {
			s := some(t)
			old := k.deadline(s)
			if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
				old++
			}
			next := k.now + deadline.Instant(rapid.Int64Range(-3, 10).Draw(t, "millis"))
			if rapid.IntRange(0, 4).Draw(t, "never") == 0 {
				next = 0
			}
			k.reschedule(s, old, next)
		},
		"track": func(t *rapid.T) {
			s := some(t)
			k.track(s, k.deadline(s))
		},
		"walk":    func(t *rapid.T) { k.walk(some(t) + 1) },
		"options": func(t *rapid.T) { k.setOptions(drawOptions(t)) },
		"trim":    func(*rapid.T) { k.trim() },
		"sweep":   func(*rapid.T) { k.sweep() },
		"rare": func(t *rapid.T) { // more often, and no queue would grow
			switch rapid.IntRange(0, 15).Draw(t, "rare") {
			case 0:
				k.purge()
			case 1:
				k.clear()
			case 2:
				k.shrink()
			}
		},
	})
}
