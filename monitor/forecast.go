package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/incident"
	"curfew/monitor/printable"
)

const (
	// forecastShare: forecasts are made once a second. With very many or large queues it is
	// less often, so that they take at most one part in forecastShare of the time.
	forecastShare = 20
	// forecastSamples is about how many messages of a queue are sampled; at most twice as many
	// are.
	forecastSamples = 2048
	// reconnectTime is how long after a start a queue without consumers is not at risk:
	// clients need some seconds to connect again.
	reconnectTime = 15 * time.Second
	// riskShare is how much of its time to live the first message that will expire must have
	// used up for its queue to be at risk.
	riskShare = 0.5
)

// Forecast estimates what becomes of a queue's messages if its consumers carry on as in the
// last seconds and nothing of a higher priority arrives.
type Forecast struct {
	VHost     string  `json:"vhost"`
	Queue     string  `json:"queue"`
	Ready     int     `json:"ready"`
	Consumers int     `json:"consumers"`
	Rate      float64 `json:"rate"`       // messages handed out a second while any wait
	Deadlines int     `json:"deadlines"`  // ready messages that have one
	AtRisk    int     `json:"at_risk"`    // of these, how many will expire; 0 where that is no loss
	AsMeant   int     `json:"as_meant"`   // how many will, where it is no loss
	Sampled   bool    `json:"sampled"`    // the counts are estimates
	FirstMiss int64   `json:"first_miss"` // the first deadline of those that will expire, Unix ms; 0: none will
	LastMiss  int64   `json:"last_miss"`  // the last of them
	DrainedAt int64   `json:"drained_at"` // when the last message will have been handed out, Unix ms; 0: never
	NearlyDue bool    `json:"nearly_due"` // the first of those at risk has used up half of its time to live
	Stuck     bool    `json:"-"`          // there are consumers, and they take nothing
}

// forecaster is the state of the forecast loop.
type forecaster struct {
	from     Source
	counters *counters
	meant    func(vhost, queue string) bool
	meters   map[uint64]*metered
	began    time.Time // when the loop first started
	missed   []bool    // of the messages of one queue
}

// metered is what the forecaster remembers of one queue.
type metered struct {
	Meter
	waits *Waits // nil: nothing has waited yet
}

// QueueWait is how long messages wait in a queue.
type QueueWait struct {
	VHost, Queue string
	deadline.Wait
}

// Waits returns how long messages wait, by the numbers of the queues in which some have waited. They are measured with the forecasts. Safe for
// concurrent use; the map must not be changed.
func (m *Monitor) Waits() map[uint64]QueueWait {
	if all := m.waits.Load(); all != nil {
		return *all
	}
	return nil
}

// Forecasts returns the forecasts of the queues in which deadlines wait, those first that lose messages
// sooner. They are made once a second, and are those of the last Judged, if it was ever called. Safe for
// concurrent use; the slice must not be changed.
func (m *Monitor) Forecasts() []Forecast {
	all, _ := m.shown()
	return all
}

// Judged returns the latest forecasts, without what has expired since. Until the next call these are the ones that Forecasts returns: whatever shows a
// number at risk has that of the same moment, as have the incidents, which are judged by them.
func (m *Monitor) Judged() []Forecast {
	made := m.made.Load()
	if made == nil {
		return nil
	}
	now, all := m.forecaster.wallMillis(m.options.Source.Now()), slices.Clone(made.all)
	for i := range all {
		if f := &all[i]; f.LastMiss <= now {
			f.AtRisk, f.AsMeant, f.NearlyDue = 0, 0, false
		}
	}
	m.judged.Store(&forecasts{inOrder(all), made.outlook})
	return all
}

// forecasts are those of all queues, of one moment.
type forecasts struct {
	all     []Forecast
	outlook *Outlook // nil: there is none
}

func (m *Monitor) shown() ([]Forecast, *Outlook) {
	is := cmp.Or(m.judged.Load(), m.made.Load(), &forecasts{})
	return is.all, is.outlook
}

// Shares appends, for each span between two neighbouring instants in Unix ms, the shares of its
// deadlines that will not be met, according to the forecasts of all queues. Without a forecast it
// appends nothing. Safe for concurrent use.
func (m *Monitor) Shares(atMillis []int64, out []Share) []Share {
	_, outlook := m.shown()
	if outlook == nil {
		return out
	}
	return outlook.Shares(m.instants(atMillis), out)
}

// forecast makes forecasts until ctx ends.
func (m *Monitor) forecast(ctx context.Context, l *Loop) error {
	f := m.forecaster
	if f.began.IsZero() {
		f.began = time.Now()
	}
	for {
		l.Tick()
		started := time.Now()
		all, waits, outlook := f.round()
		m.waits.Store(&waits)
		m.made.Store(&forecasts{all, outlook})
		if !l.Wait(ctx, max(deadline.UntilSecond(time.Now()), forecastShare*time.Since(started))) {
			return nil
		}
	}
}

// round makes a forecast of each queue in which deadlines wait.
func (f *forecaster) round() (all []Forecast, waits map[uint64]QueueWait, outlook *Outlook) {
	meters := make(map[uint64]*metered, len(f.meters)) // of the queues that there are now
	waits = make(map[uint64]QueueWait)
	outlook = NewOutlook(f.from.Now())
	f.from.Survey(forecastSamples, func(s *deadline.Survey) {
		q := f.meters[s.Queue]
		if q == nil {
			q = &metered{}
		}
		meters[s.Queue] = q
		q.Observe(Observation{Now: s.At, Delivered: s.Delivered, Polled: s.Polled, Ready: s.Ready, Consumers: s.Consumers})
		if f.wait(q, s); q.waits != nil {
			waits[s.Queue] = QueueWait{s.VHost, s.Name, q.waits.Wait()}
		}
		if one := f.predict(s, q.Rate(), outlook); one.Deadlines > 0 {
			one.Stuck = q.Stuck()
			all = append(all, one)
		}
	})
	f.meters = meters
	f.counters.keep(meters)
	return inOrder(all), waits, outlook
}

// Standing is what decides how far up a queue is in a list that begins with the worst. Every such list is sorted by it.
type Standing struct {
	Level         incident.Level // of the worst that is wrong
	Place         int            // among the queues of that level, as the incidents stand
	Forecast      *Forecast      // nil: none
	Lost, Rescued int64          // what expired in the last hour and is gone, or was dead-lettered; below 0 where that is no loss
}

// Compare is negative if a queue is worse than the other: first as their incidents stand, then by what it will lose, then by what it has lost.
func (s *Standing) Compare(o *Standing) int {
	return cmp.Or(cmp.Compare(s.Level.Rank(), o.Level.Rank()), cmp.Compare(s.Place, o.Place), s.Forecast.Compare(o.Forecast), cmp.Compare(max(o.Lost, 0), max(s.Lost, 0)), cmp.Compare(max(o.Rescued, 0), max(s.Rescued, 0)))
}

// Compare is the order of forecasts: first that of the queue that loses messages sooner, then of the one that loses more. nil is a queue without one.
func (one *Forecast) Compare(other *Forecast) int {
	safe := Forecast{FirstMiss: math.MaxInt64}
	if one == nil || one.AtRisk == 0 {
		one = &safe
	}
	if other == nil || other.AtRisk == 0 {
		other = &safe
	}
	return cmp.Or(cmp.Compare(one.FirstMiss, other.FirstMiss), cmp.Compare(other.AtRisk, one.AtRisk))
}

// inOrder sorts forecasts by risk, then by what is ahead.
func inOrder(all []Forecast) []Forecast {
	slices.SortFunc(all, func(a, b Forecast) int {
		return cmp.Or(a.Compare(&b), cmp.Compare(b.AsMeant, a.AsMeant), cmp.Compare(b.Deadlines, a.Deadlines), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue))
	})
	return all
}

// wait looks at how long the messages of a queue wait.
func (f *forecaster) wait(q *metered, s *deadline.Survey) {
	if q.waits == nil {
		if s.Ready == 0 && s.Objective == (deadline.Objective{}) {
			return
		}
		q.waits = new(Waits)
	}
	look := WaitLook{Now: s.At, Delivered: s.Delivered, Expired: f.counters.expiredOf(s.Queue), Ready: s.Ready, Objective: s.Objective}
	line := Line{Ready: s.Ready, Step: s.Step}
	for i := range s.Samples {
		entered := s.Samples[i].Entered
		if entered == 0 {
			continue
		}
		if look.Head == 0 || entered < look.Head {
			look.Head = entered
		}
		if _, counts := s.Objective.Allowed(); counts && s.At > entered.AddMillis(s.Objective.Within()) {
			look.Over += line.Weight(&s.Samples[i])
		}
	}
	q.waits.Observe(look)
}

// predict returns the forecast of a queue. It adds the queue's deadlines to the outlook.
func (f *forecaster) predict(s *deadline.Survey, rate float64, outlook *Outlook) Forecast {
	now := s.At
	f.missed = slices.Grow(f.missed[:0], len(s.Samples))[:len(s.Samples)]
	line := Line{Now: now, Ready: s.Ready, Step: s.Step, Samples: s.Samples, Rate: rate, Missed: f.missed}
	p := Predict(line)
	one := Forecast{
		VHost: s.VHost, Queue: s.Name, Ready: s.Ready, Consumers: s.Consumers, Rate: rate,
		Deadlines: p.Deadlines, AtRisk: p.Miss, Sampled: s.Step > 1,
		LastMiss: f.wallMillis(p.Last), DrainedAt: f.wallMillis(p.Drained),
	}
	if p.First >= 0 {
		first := s.Samples[p.First]
		one.FirstMiss = f.wallMillis(first.Ref.Deadline)
		reconnecting := s.Consumers == 0 && time.Since(f.began) < reconnectTime
		if f.meant(s.VHost, s.Name) {
			one.AtRisk, one.AsMeant = 0, p.Miss
		} else {
			one.NearlyDue = !reconnecting && f.nearEnough(first.Ref, now)
		}
	}
	fate := AtRisk
	switch {
	case one.AsMeant > 0:
		fate = Safe
	case one.NearlyDue:
		fate = NearlyDue
	}
	for i := range s.Samples {
		switch due := s.Samples[i].Ref.Deadline; {
		case due == 0:
		case f.missed[i]:
			outlook.Add(due, line.Weight(&s.Samples[i]), fate)
		default:
			outlook.Add(due, line.Weight(&s.Samples[i]), Safe)
		}
	}
	return one
}

// wallMillis converts an instant of the primary's clock to Unix ms of the wall clock, which
// is what people see. 0 stays 0.
func (f *forecaster) wallMillis(at deadline.Instant) int64 {
	if at == 0 {
		return 0
	}
	return at.Add(-f.from.ClockOffset()).UnixMilli()
}

// nearEnough reports whether the message has used up the share of its time that puts it at
// risk. It counts as having done so if its time to live is not known.
func (f *forecaster) nearEnough(s deadline.Ref, now deadline.Instant) bool {
	ttl, ok := f.from.TimeToLive(s)
	return !ok || float64(s.Deadline.Sub(now)) <= (1-riskShare)*float64(ttl.Duration())
}

// ByQueue has forecasts by their virtual hosts and queues.
func ByQueue(all []Forecast) map[[2]string]*Forecast {
	by := make(map[[2]string]*Forecast, len(all))
	for i := range all {
		by[[2]string{all[i].VHost, all[i].Queue}] = &all[i]
	}
	return by
}

// Reason explains the forecast in words. now is in Unix ms.
func (one *Forecast) Reason(now int64) string {
	waiting, served := "1 message waits", "nobody consumes"
	if one.Ready != 1 {
		waiting = printable.Plural(int64(one.Ready), "message") + " wait"
	}
	switch {
	case one.Rate >= 100:
		served = printable.Number(int64(one.Rate+0.5)) + " a second are consumed"
	case one.Rate > 0:
		served = fmt.Sprintf("%.3g a second are consumed", one.Rate)
	case one.Consumers > 0 && !one.Stuck:
		served = "nothing is consumed yet"
	case one.Consumers == 1:
		served = "its consumer takes nothing"
	case one.Consumers > 1:
		served = fmt.Sprintf("its %d consumers take nothing", one.Consumers)
	}
	which, at := "first", one.FirstMiss
	if at <= now { // it has expired, or is just doing so
		which, at = "last", one.LastMiss
	}
	in := max((time.Duration(at-now) * time.Millisecond).Round(100*time.Millisecond), 100*time.Millisecond)
	return fmt.Sprintf("%s, %s, the %s expires in %s", waiting, served, which, printable.Span(in))
}
