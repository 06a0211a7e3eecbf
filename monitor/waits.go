package monitor

import (
	"math"

	"curfew/broker/deadline"
)

// Waits measures how long messages wait in a queue until they are handed out, from a look about once a second: nothing is measured when a message
// comes or goes. What was ready at one look and is gone at the next waited as long as the oldest then, down to as long as the oldest now. So a wait
// is exact to about two seconds while a queue is consumed in its order. The zero value has seen nothing. Not safe for concurrent use.
type Waits struct {
	counts  [len(waitUpTo) + 1]float64 // messages, by what they waited; they fade
	last    WaitLook
	minutes [lookback]tally
	minute  int64 // of the last look
	hour    tally // fades
}

// tally counts messages: all, and those that missed the objective.
type tally struct{ all, missed float64 }

// waitUpTo are the upper bounds of counts, in seconds.
var waitUpTo = [...]float64{1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1800, 3600, 7200, 4 * 3600, 12 * 3600, 24 * 3600}

const (
	lookback    = 5 // minutes
	waitsFade   = 300 * second
	hourFades   = 3600 * second
	minuteMicro = 60 * second
	// burnFast is from which burn rate in the last minutes an objective is missed badly: a month's allowance is gone in two days.
	burnFast = 14.4
)

// WaitLook is a queue at one instant.
type WaitLook struct {
	Now       deadline.Instant
	Delivered uint64 // messages handed out so far, each counted once
	Expired   uint64 // messages that expired so far
	Ready     int
	Head      deadline.Instant // when the oldest ready message entered; 0: there is none
	Over      int              // of Ready, those that have waited longer than the objective says
	Objective deadline.Objective
}

// Observe adds a look.
func (w *Waits) Observe(o WaitLook) {
	last := w.last
	w.last = o
	if last.Now == 0 || o.Now <= last.Now || o.Delivered < last.Delivered {
		return
	}
	span := float64(o.Now - last.Now)
	for i := range w.counts {
		w.counts[i] *= math.Exp(-span / waitsFade)
	}
	fade := math.Exp(-span / hourFades)
	w.hour.all, w.hour.missed = w.hour.all*fade, w.hour.missed*fade
	if now := int64(o.Now) / minuteMicro; now != w.minute {
		for m := max(w.minute, now-lookback) + 1; m <= now; m++ {
			w.minutes[m%lookback] = tally{}
		}
		w.minute = now
	}
	w.take(&last, &o)
	if _, counts := o.Objective.Allowed(); counts && o.Expired > last.Expired {
		w.count(float64(o.Expired-last.Expired), true)
	}
}

// take counts what was handed out between two looks.
func (w *Waits) take(last, o *WaitLook) {
	taken := float64(o.Delivered - last.Delivered)
	waited := min(taken, float64(last.Ready))
	w.add(taken-waited, 0, &o.Objective)
	if waited == 0 || last.Head == 0 {
		return
	}
	longest, shortest := float64(o.Now-last.Head), 0.0
	if o.Head != 0 && o.Head < last.Now {
		shortest = min(float64(o.Now-o.Head), longest)
	}
	const steps = 8
	for i := range steps {
		w.add(waited/steps, shortest+(longest-shortest)*(float64(i)+0.5)/steps, &o.Objective)
	}
}

// add counts n messages that waited for so long, in µs.
func (w *Waits) add(n, waited float64, objective *deadline.Objective) {
	if n == 0 {
		return
	}
	i := 0
	for i < len(waitUpTo) && waited > waitUpTo[i]*second {
		i++
	}
	w.counts[i] += n
	_, counts := objective.Allowed()
	w.count(n, counts && waited > float64(objective.Within())*1000)
}

// count counts consumed and expired messages.
func (w *Waits) count(n float64, missed bool) {
	for _, t := range []*tally{&w.minutes[w.minute%lookback], &w.hour} {
		t.all += n
		if missed {
			t.missed += n
		}
	}
}

// Wait is what is known now.
func (w *Waits) Wait() deadline.Wait {
	o := &w.last
	is := deadline.Wait{P50: w.most(0.5), P99: w.most(0.99), Objective: o.Objective}
	if o.Head != 0 {
		is.Oldest = deadline.Millis(max(o.Now-o.Head, 0) / 1000)
	}
	allowed, counts := o.Objective.Allowed()
	if !counts {
		return is
	}
	over := float64(o.Over)
	recent := tally{over, over}
	for _, t := range w.minutes {
		recent.all, recent.missed = recent.all+t.all, recent.missed+t.missed
	}
	if recent.all > 0 {
		is.Missed = recent.missed / recent.all
		is.Burn = is.Missed / allowed
		hour := (w.hour.missed + over) / (w.hour.all + over)
		// With an allowance of many in a hundred, no share is as much as burnFast: then half of the rest is.
		is.Burns = is.Missed >= min(burnFast*allowed, allowed+(1-allowed)/2) && hour > allowed
	}
	return is
}

// most is what a share of the messages waited at the most.
func (w *Waits) most(share float64) deadline.Millis {
	total, seen := 0.0, 0.0
	for _, n := range w.counts {
		total += n
	}
	if total < 0.5 { // it was long ago
		return 0
	}
	for i, n := range w.counts {
		if seen += n; seen >= share*total {
			return deadline.Millis(waitUpTo[min(i, len(waitUpTo)-1)] * 1000)
		}
	}
	return deadline.Millis(waitUpTo[len(waitUpTo)-1] * 1000)
}
