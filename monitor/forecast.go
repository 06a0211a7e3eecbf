package monitor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"curfew/broker/deadline"
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

// Surveyor is a Source that can describe its queues. Without one there is no forecast.
type Surveyor interface {
	// Survey calls fn with each queue, in any order, and about samples of its ready
	// messages. What fn gets is valid during the call.
	Survey(samples int, fn func(*deadline.Survey))
	// TimeToLive returns the time to live that the message had when it entered its queue;
	// false if that is not known.
	TimeToLive(s deadline.Ref) (ttl deadline.Millis, ok bool)
}

// Forecast estimates what becomes of a queue's messages if its consumers carry on as in the
// last seconds and nothing of a higher priority arrives.
type Forecast struct {
	VHost     string  `json:"vhost"`
	Queue     string  `json:"queue"`
	Ready     int     `json:"ready"`
	Consumers int     `json:"consumers"`
	Rate      float64 `json:"rate"`       // messages handed out a second while any wait
	Deadlines int     `json:"deadlines"`  // ready messages that have one
	WillMiss  int     `json:"will_miss"`  // of these, how many will expire
	Sampled   bool    `json:"sampled"`    // the counts are estimates
	FirstMiss int64   `json:"first_miss"` // the first deadline of those that will expire, Unix ms; 0: none will
	LastMiss  int64   `json:"last_miss"`  // the last of them
	DrainedAt int64   `json:"drained_at"` // when the last message will have been handed out, Unix ms; 0: never
	AtRisk    bool    `json:"at_risk"`    // the first message that will expire has used up half of its time to live
}

// forecaster is the state of the forecast loop.
type forecaster struct {
	from    Surveyor
	now     func() deadline.Instant   // by the primary's clock
	offset  func() time.Duration      // of that clock from the wall clock
	expired func(queue uint64) uint64 // messages
	meters  map[uint64]*metered
	began   time.Time // when the loop first started
	rounds  uint64
	missed  []bool // of the messages of one queue
}

// metered is what the forecaster remembers of one queue.
type metered struct {
	Meter
	waits *Waits // nil: nothing has waited yet
	seen  uint64 // the last round in which it existed
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

// Forecasts returns the forecasts of the queues in which deadlines wait, those with the most
// messages at risk first. They are made once a second. Safe for concurrent use; the slice must not be
// changed. Without a Surveyor it is empty.
func (m *Monitor) Forecasts() []Forecast {
	if all := m.forecasts.Load(); all != nil {
		return *all
	}
	return nil
}

// Shares appends, for each span between two neighbouring instants in Unix ms, the shares of its
// deadlines that will not be met, according to the forecasts of all queues. Without a forecast it
// appends nothing. Safe for concurrent use.
func (m *Monitor) Shares(atMillis []int64, out []Share) []Share {
	outlook := m.outlook.Load()
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
		m.forecasts.Store(&all)
		m.outlook.Store(outlook)
		if !l.Wait(ctx, max(deadline.UntilSecond(time.Now()), forecastShare*time.Since(started))) {
			return nil
		}
	}
}

// round makes a forecast of each queue in which deadlines wait.
func (f *forecaster) round() (all []Forecast, waits map[uint64]QueueWait, outlook *Outlook) {
	f.rounds++
	waits = make(map[uint64]QueueWait)
	outlook = NewOutlook(f.now())
	f.from.Survey(forecastSamples, func(s *deadline.Survey) {
		q := f.meter(s)
		q.Observe(Observation{Now: s.At, Delivered: s.Delivered, Polled: s.Polled, Ready: s.Ready, Consumers: s.Consumers})
		if f.wait(q, s); q.waits != nil {
			waits[s.Queue] = QueueWait{s.VHost, s.Name, q.waits.Wait()}
		}
		if one := f.predict(s, q.Rate(), outlook); one.Deadlines > 0 {
			all = append(all, one)
		}
	})
	for id, q := range f.meters {
		if q.seen != f.rounds {
			delete(f.meters, id)
		}
	}
	slices.SortFunc(all, func(a, b Forecast) int {
		return cmp.Or(cmp.Compare(b.WillMiss, a.WillMiss), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue))
	})
	return all, waits, outlook
}

// wait looks at how long the messages of a queue wait.
func (f *forecaster) wait(q *metered, s *deadline.Survey) {
	if q.waits == nil {
		if s.Ready == 0 && s.Objective == (deadline.Objective{}) {
			return
		}
		q.waits = new(Waits)
	}
	look := WaitLook{Now: s.At, Delivered: s.Delivered, Expired: f.expired(s.Queue), Ready: s.Ready, Objective: s.Objective}
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

func (f *forecaster) meter(s *deadline.Survey) *metered {
	q, ok := f.meters[s.Queue]
	if !ok {
		q = &metered{}
		f.meters[s.Queue] = q
	}
	q.seen = f.rounds
	return q
}

// predict returns the forecast of a queue. It adds the queue's deadlines to the outlook.
func (f *forecaster) predict(s *deadline.Survey, rate float64, outlook *Outlook) Forecast {
	now := s.At
	f.missed = slices.Grow(f.missed[:0], len(s.Samples))[:len(s.Samples)]
	line := Line{Now: now, Ready: s.Ready, Step: s.Step, Samples: s.Samples, Rate: rate, Missed: f.missed}
	p := Predict(line)
	one := Forecast{
		VHost: s.VHost, Queue: s.Name, Ready: s.Ready, Consumers: s.Consumers, Rate: rate,
		Deadlines: p.Deadlines, WillMiss: p.Miss, Sampled: s.Step > 1,
		LastMiss: f.wallMillis(p.Last), DrainedAt: f.wallMillis(p.Drained),
	}
	if p.First >= 0 {
		first := s.Samples[p.First]
		one.FirstMiss = f.wallMillis(first.Ref.Deadline)
		reconnecting := s.Consumers == 0 && time.Since(f.began) < reconnectTime
		one.AtRisk = !reconnecting && f.nearEnough(first.Ref, now)
	}
	fate := AtRisk
	if one.AtRisk {
		fate = WillExpire
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
	return at.Add(-f.offset()).UnixMilli()
}

// nearEnough reports whether the message has used up the share of its time that puts it at
// risk. It counts as having done so if its time to live is not known.
func (f *forecaster) nearEnough(s deadline.Ref, now deadline.Instant) bool {
	ttl, ok := f.from.TimeToLive(s)
	return !ok || float64(s.Deadline.Sub(now)) <= (1-riskShare)*float64(ttl.Duration())
}

// Reason explains the forecast in words. now is in Unix ms.
func (one *Forecast) Reason(now int64) string {
	waiting, served := "1 message waits", "nobody consumes"
	if one.Ready != 1 {
		waiting = fmt.Sprintf("%d messages wait", one.Ready)
	}
	switch {
	case one.Rate > 0:
		served = fmt.Sprintf("%.3g a second are consumed", one.Rate)
	case one.Consumers == 1:
		served = "its consumer takes nothing"
	case one.Consumers > 1:
		served = fmt.Sprintf("its %d consumers take nothing", one.Consumers)
	}
	when := "now"
	if in := (time.Duration(one.FirstMiss-now) * time.Millisecond).Round(100 * time.Millisecond); in > 0 {
		when = "in " + printable.Span(in)
	}
	return fmt.Sprintf("%s, %s, the first expires %s", waiting, served, when)
}
