package monitor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"curfew/broker/deadline"
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
	if made := m.made.Load(); made != nil {
		return made.waits
	}
	return nil
}

// Forecasts returns the latest forecasts of the queues in which deadlines wait, those first that lose messages sooner, without what has expired
// since; nil: there is none yet. They are made once a second; the incidents are judged by them, and whatever shows one takes it from there (incident.View), so that all
// are of the same moment. Safe for concurrent use.
func (m *Monitor) Forecasts() []deadline.Forecast {
	made := m.made.Load()
	if made == nil {
		return nil
	}
	now, all := m.forecaster.wallMillis(m.options.Source.Now()), append([]deadline.Forecast{}, made.all...)
	for i := range all {
		if f := &all[i]; f.LastMiss <= now {
			f.AtRisk, f.AsMeant, f.NearlyDue = 0, 0, false
		}
	}
	slices.SortFunc(all, func(a, b deadline.Forecast) int { // by risk, then by what is ahead
		return cmp.Or(a.Compare(&b), cmp.Compare(b.AsMeant, a.AsMeant), cmp.Compare(b.Deadlines, a.Deadlines), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue))
	})
	return all
}

// forecasts are those of all queues, of one moment.
type forecasts struct {
	all     []deadline.Forecast
	waits   map[uint64]QueueWait
	outlook *Outlook
}

// Shares appends, for each span between two neighbouring instants in Unix ms, the shares of its
// deadlines that will not be met, according to the forecasts of all queues. Without a forecast it
// appends nothing. Safe for concurrent use.
func (m *Monitor) Shares(atMillis []int64, out []Share) []Share {
	made := m.made.Load()
	if made == nil {
		return out
	}
	return made.outlook.Shares(m.instants(atMillis), out)
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
		m.made.Store(f.round())
		if !l.Wait(ctx, max(deadline.UntilSecond(time.Now()), forecastShare*time.Since(started))) {
			return nil
		}
	}
}

// round makes a forecast of each queue in which deadlines wait.
func (f *forecaster) round() *forecasts {
	meters := make(map[uint64]*metered, len(f.meters)) // of the queues that there are now
	made := &forecasts{waits: make(map[uint64]QueueWait), outlook: NewOutlook(f.from.Now())}
	f.from.Survey(forecastSamples, func(s *deadline.Survey) {
		q := f.meters[s.Queue]
		if q == nil {
			q = &metered{}
		}
		meters[s.Queue] = q
		q.Observe(Observation{Now: s.At, Delivered: s.Delivered, Polled: s.Polled, Ready: s.Ready, Consumers: s.Consumers})
		if f.wait(q, s); q.waits != nil {
			made.waits[s.Queue] = QueueWait{s.VHost, s.Name, q.waits.Wait()}
		}
		if one := f.predict(s, q.Rate(), made.outlook); one.Deadlines > 0 {
			one.Stuck = q.Stuck()
			made.all = append(made.all, one)
		}
	})
	f.meters = meters
	f.counters.keep(meters)
	return made
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
func (f *forecaster) predict(s *deadline.Survey, rate float64, outlook *Outlook) deadline.Forecast {
	now := s.At
	f.missed = slices.Grow(f.missed[:0], len(s.Samples))[:len(s.Samples)]
	line := Line{Now: now, Ready: s.Ready, Step: s.Step, Samples: s.Samples, Rate: rate, Missed: f.missed}
	p := Predict(line)
	one := deadline.Forecast{
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
