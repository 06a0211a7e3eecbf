package monitor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"curfew/monitor/alert"
	"curfew/monitor/forecast"
	"curfew/scheduler"
)

const (
	// forecastEvery is how often queues are looked at; forecastShare bounds what part of
	// the time that takes, with very many or large queues.
	forecastEvery = time.Second
	forecastShare = 20
	// forecastSamples bounds what is looked at of one queue, to twice that.
	forecastSamples = 2048
	// defaultRiskShare of its time to live is what the first message to miss has used up
	// when a queue counts as at risk.
	defaultRiskShare = 0.5
)

// Surveyor is a Primary that can say how its queues stand. Without one there is no
// forecast.
type Surveyor interface {
	// Survey calls fn with each queue, in any order, and about samples of its ready
	// messages. What fn is given is valid during the call.
	Survey(samples int, fn func(*QueueSurvey))
	// TimeToLive is how long the message was to live when it entered its queue, in ms;
	// false when nothing says.
	TimeToLive(s scheduler.Shadow) (ttlMillis int64, ok bool)
}

// QueueSurvey is how one queue stands.
type QueueSurvey struct {
	Queue       uint64 // incarnation
	VHost, Name string
	Observed    forecast.Observation
	Step        int
	Standings   []forecast.Standing
}

// Forecast is what will become of a queue's messages, if its consumers go on as in the
// last seconds and nothing of a higher priority arrives.
type Forecast struct {
	VHost     string  `json:"vhost"`
	Queue     string  `json:"queue"`
	Ready     int     `json:"ready"`
	Consumers int     `json:"consumers"`
	Rate      float64 `json:"rate"`      // messages handed out a second while any wait
	Deadlines int     `json:"deadlines"` // ready messages that have one
	WillMiss  int     `json:"will_miss"` // of these, how many will expire
	Sampled   bool    `json:"sampled"`   // the counts are estimates
	// FirstMiss and LastMiss are the deadlines of those that will expire, DrainedAt is when
	// the last message served will have been, in Unix ms; 0: none, never.
	FirstMiss int64 `json:"first_miss"`
	LastMiss  int64 `json:"last_miss"`
	DrainedAt int64 `json:"drained_at"`
	AtRisk    bool  `json:"at_risk"` // enough of the first one's time is gone
}

// forecaster is the loop that looks ahead.
type forecaster struct {
	from   Surveyor
	offset func() time.Duration // of the primary's clock from the wall clock
	alerts *alert.Alerts
	share  float64 // see Options.RiskShare
	meters map[uint64]*metered
	round  uint64
}

// metered is what is remembered of one queue.
type metered struct {
	forecast.Meter
	vhost, name string
	seen        uint64 // the last round it was there
	told        bool   // that it is at risk
}

// Forecasts returns what is expected of the queues in which deadlines wait, those with
// most to miss first. It is made once a second. Safe for concurrent use; the slice is
// not to be changed. Without a Surveyor it is empty.
func (m *Monitor) Forecasts() []Forecast {
	if all := m.forecasts.Load(); all != nil {
		return *all
	}
	return nil
}

// forecast looks ahead until ctx ends.
func (m *Monitor) forecast(ctx context.Context, l *loop) error {
	f := m.forecaster
	defer f.forget()
	for {
		l.tick()
		started := time.Now()
		all := f.look()
		m.forecasts.Store(&all)
		if !sleep(ctx, max(forecastEvery, forecastShare*time.Since(started))) {
			return nil
		}
	}
}

// look makes a forecast of each queue in which deadlines wait.
func (f *forecaster) look() (all []Forecast) {
	f.round++
	f.from.Survey(forecastSamples, func(s *QueueSurvey) {
		q := f.meter(s)
		q.Observe(s.Observed)
		one, at := f.predict(s, q.Rate())
		if one.Deadlines > 0 {
			all = append(all, one)
		}
		f.tell(q, &one, at)
	})
	for id, q := range f.meters {
		if q.seen != f.round {
			f.safe(q)
			delete(f.meters, id)
		}
	}
	slices.SortFunc(all, func(a, b Forecast) int {
		return cmp.Or(cmp.Compare(b.WillMiss, a.WillMiss), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue))
	})
	return all
}

func (f *forecaster) meter(s *QueueSurvey) *metered {
	q, ok := f.meters[s.Queue]
	if !ok {
		q = &metered{vhost: s.VHost, name: s.Name}
		f.meters[s.Queue] = q
	}
	q.seen = f.round
	return q
}

func (f *forecaster) predict(s *QueueSurvey, rate float64) (Forecast, int64) {
	now := s.Observed.Now
	p := forecast.Predict(forecast.Line{Now: now, Ready: s.Observed.Ready, Step: s.Step, Standings: s.Standings, Rate: rate})
	one := Forecast{
		VHost: s.VHost, Queue: s.Name, Ready: s.Observed.Ready, Consumers: s.Observed.Consumers, Rate: rate,
		Deadlines: p.Deadlines, WillMiss: p.Miss, Sampled: s.Step > 1,
		LastMiss: f.shown(p.Last), DrainedAt: f.shown(p.Drained),
	}
	if p.First >= 0 {
		first := s.Standings[p.First]
		one.FirstMiss = f.shown(first.Deadline)
		one.AtRisk = f.nearEnough(scheduler.Shadow{Deadline: first.Deadline, Queue: s.Queue, Seq: first.Seq}, now)
	}
	return one, f.shown(now)
}

// shown is an instant of the primary's clock, Unix µs, as people are told it: in ms of the
// wall clock. 0 stays 0.
func (f *forecaster) shown(at int64) int64 {
	if at == 0 {
		return 0
	}
	return scheduler.Millis(at - f.offset().Microseconds())
}

// nearEnough: the message has used up its share of the time it had. One that nobody
// can say that of is.
func (f *forecaster) nearEnough(s scheduler.Shadow, now int64) bool {
	ttl, ok := f.from.TimeToLive(s)
	return !ok || float64(s.Deadline-now) <= (1-f.share)*float64(ttl)*1000
}

// tell says what has changed, and what is at risk each time, so that counts are up to
// date.
func (f *forecaster) tell(q *metered, one *Forecast, now int64) {
	if !one.AtRisk {
		f.safe(q)
		return
	}
	q.told = true
	f.alerts.AtRisk(alert.Risk{
		VHost: one.VHost, Queue: one.Queue, Count: int64(one.WillMiss),
		FirstDeadlineAt: one.FirstMiss, LastDeadlineAt: one.LastMiss, Reason: one.reason(now),
	})
}

func (f *forecaster) safe(q *metered) {
	if q.told {
		q.told = false
		f.alerts.Safe(q.vhost, q.name)
	}
}

// forget takes back what was told when the loop ends.
func (f *forecaster) forget() {
	for _, q := range f.meters {
		f.safe(q)
	}
}

// reason says in words what the forecast is concluded from.
func (one *Forecast) reason(now int64) string {
	served := "nobody consumes"
	if one.Rate > 0 {
		served = fmt.Sprintf("%.3g a second are consumed", one.Rate)
	} else if one.Consumers > 0 {
		served = fmt.Sprintf("its %d consumers take nothing", one.Consumers)
	}
	in := time.Duration(one.FirstMiss-now) * time.Millisecond
	return fmt.Sprintf("%d messages wait and %s: %d of %d deadlines will be missed, the first in %s",
		one.Ready, served, one.WillMiss, one.Deadlines, max(in, 0).Round(100*time.Millisecond))
}
