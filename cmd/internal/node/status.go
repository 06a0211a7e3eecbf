package node

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/monitor"
)

// Status is the state of Curfew on one screen.
type Status struct {
	Version string   `json:"version"`
	Health  string   `json:"health"`  // ok, degraded, critical or dead
	Phase   phase    `json:"phase"`   // starting, ready or stopping
	Reasons []string `json:"reasons"` // why it is degraded or dead

	LookedAt time.Time `json:"looked_at,omitzero"` // when the incidents and losses were as they are shown

	Primary      string     `json:"primary,omitempty"`       // the RabbitMQ beside which this runs; then nothing is known of a store
	Monitor      bool       `json:"monitor"`                 // false: messages expire only when a delivery meets them
	TTLOff       bool       `json:"ttl_off,omitempty"`       // no message expires (CURFEW_TTL=off)
	Clock        *time.Time `json:"clock,omitempty"`         // what a manual clock shows, which stands until it is moved
	Schedule     string     `json:"schedule,omitempty"`      // what fires: embedded, primary (keepers of queues in RabbitMQ), none (no queue there is kept), or the state of the schedule in Redis: up, rebuilding or down
	Fires        string     `json:"fires,omitempty"`         // the same in words
	Pending      int64      `json:"pending"`                 // deadlines that wait
	Next         *time.Time `json:"next"`                    // the next deadline, not counting those that have passed; null: none
	Held         int        `json:"held"`                    // messages that consumers hold past their deadlines, now
	Fired        uint64     `json:"fired"`                   // messages that expired since the start
	Late         uint64     `json:"late"`                    // of these, how many were late
	HeldExpired  uint64     `json:"held_expired"`            // of these besides, how many a consumer had held past their deadlines
	Lost         *int64     `json:"lost_last_hour"`          // messages that expired where that is a loss, and are gone; null: not known
	Rescued      *int64     `json:"dead_lettered_last_hour"` // likewise, and were dead-lettered
	Meant        int64      `json:"meant_last_hour"`         // messages besides whose expiry was no loss
	LastDay      int64      `json:"expired_last_day"`        // messages
	MeantInADay  int64      `json:"meant_last_day"`          // of these, how many were meant to
	LatenessP50  *float64   `json:"lateness_p50_seconds"`    // in the last hour; null: nothing expired
	LatenessP99  *float64   `json:"lateness_p99_seconds"`
	Ready        uint64     `json:"ready"`        // messages
	Unacked      uint64     `json:"unacked"`      // messages
	Dead         int        `json:"dead_letters"` // messages in the queues whose purpose is to keep dead letters
	Parked       int        `json:"parked"`       // of these, those in the queues curfew.undeliverable, which had nowhere to go
	Delayed      uint64     `json:"delayed"`      // messages that wait until they are due
	Queues       uint64     `json:"queues"`
	Connections  uint64     `json:"connections"`
	Consumers    uint64     `json:"consumers"`
	Blocked      string     `json:"blocked"` // why publishers wait; empty: they do not
	Memory       int64      `json:"memory_bytes"`
	MemoryLimit  int64      `json:"memory_limit_bytes"` // 0: none
	Storage      string     `json:"storage"`            // where messages are kept, in words
	DiskFree     *int64     `json:"disk_free_bytes"`    // there; null: not known
	NewDataDir   bool       `json:"new_data_dir"`       // the data folder was empty at this start
	Segments     uint64     `json:"store_segments"`
	Stored       int64      `json:"store_bytes"`      // on disk
	Live         int64      `json:"store_live_bytes"` // the part that messages still need: an estimate
	SyncP50      *float64   `json:"sync_p50_seconds"` // of the journal, since the start; null: none
	SyncP99      *float64   `json:"sync_p99_seconds"`
	AlarmsFiring int        `json:"alarms"` // resource alarms: of memory and disk

	Undeliverable []undeliverable `json:"undeliverable"` // what is in the queues curfew.undeliverable now

	Incidents openIncidents `json:"incidents"` // that are not over

	AtRisk         []deadline.Forecast `json:"at_risk"`          // the forecasts of the queues at risk, those first that lose messages sooner, at most 10
	QueuesAtRisk   int                 `json:"queues_at_risk"`   // how many there are
	MessagesAtRisk int                 `json:"messages_at_risk"` // in all of them
	AsMeant        int                 `json:"expire_as_meant"`  // messages that will expire in queues where that is no loss
}

// undeliverable is what is parked in the queue curfew.undeliverable of a virtual host.
type undeliverable struct {
	VHost    string `json:"vhost"`
	Messages int    `json:"messages"`

	in    *broker.VHost
	queue *broker.Queue
}

const maxAtRisk = 10

// status gathers the state of all parts.
func (n *Node) status(o *opsEndpoints) Status {
	h := o.health()
	s := Status{Version: n.build.Version, Health: h.Status, Phase: h.Phase, Reasons: append([]string{}, h.Reasons...), LookedAt: h.LookedAt, Monitor: n.monitor != nil, TTLOff: n.settings.TTL == "off", Undeliverable: []undeliverable{}, AtRisk: []deadline.Forecast{}}
	n.primary.status(&s, h.seen.Hour)
	if n.monitor != nil {
		m := n.monitor.Health()
		which, then, _ := m.Schedule.Says()
		late := n.monitor.LatenessWithin(time.Hour)
		s.LatenessP50, s.LatenessP99 = seconds(&late, 0.50), seconds(&late, 0.99)
		s.Schedule, s.Fires, s.Pending = string(m.Schedule), which+then, m.Pending
		if s.Primary == "" { // beside RabbitMQ only keepers hold messages so long
			s.HeldExpired = m.Held
		}
	}
	for _, f := range h.seen.Forecasts {
		s.AsMeant += f.AsMeant
		if f.AtRisk == 0 {
			continue
		}
		s.QueuesAtRisk, s.MessagesAtRisk = s.QueuesAtRisk+1, s.MessagesAtRisk+f.AtRisk
		if len(s.AtRisk) < maxAtRisk {
			s.AtRisk = append(s.AtRisk, f)
		}
	}
	s.Incidents = h.Parts.Incidents
	day := n.history.ExpiredInADay()
	s.LastDay, s.MeantInADay = day.Expired, day.Meant
	s.measure(n.metrics)
	return s
}

// status implements primary.
func (o *ownBroker) status(s *Status, hour deadline.Hour) {
	is := o.operations.State()
	where, more, _ := is.Storage()
	if is.DiskFree >= 0 {
		s.DiskFree = &is.DiskFree
	}
	s.Storage, s.NewDataDir, s.Blocked, s.Memory, s.MemoryLimit = where+": "+more, is.NewFolder, is.Blocked, is.Memory, is.MemoryMax
	s.Undeliverable = append(s.Undeliverable, o.parked()...)
	for _, p := range s.Undeliverable {
		s.Parked += p.Messages
	}
	everything := operate.Actor{Tags: []string{"administrator"}} // may see all of them
	letters, _ := operate.ListDeadLetterQueues.Do(context.Background(), o.operations, everything, operate.VHostFilter{})
	s.Dead = deadletters.Kept(letters)
	queues, _ := o.operations.ListQueues(context.Background(), everything)
	if losses := operate.LossesOfAll(queues, hour, o.operations.Visible(everything)); losses.Lost >= 0 {
		s.Lost, s.Rescued, s.Meant = &losses.Lost, &losses.Rescued, losses.Meant
	}
	memory, disk := o.broker.Alarm.Low()
	for _, on := range []bool{memory, disk} {
		if on {
			s.AlarmsFiring++
		}
	}
	if o.broker.Manual != nil {
		s.Clock = new(o.broker.Now().Time().UTC())
	}
}

// parked are the queues of parked messages that have some.
func (o *ownBroker) parked() (list []undeliverable) {
	for _, vh := range o.broker.VHosts() {
		q, err := vh.Queues.Get(policy.UndeliverableQueue)
		if err != nil {
			continue
		}
		if ready, unacked, _ := q.Messages.Counts(); ready+unacked > 0 {
			list = append(list, undeliverable{vh.Name(), ready + unacked, vh, q})
		}
	}
	return list
}

// measure reads the numbers from the metrics, which are counted anyway. A metric that cannot be
// gathered stays zero.
func (s *Status) measure(metrics prometheus.Gatherer) {
	families, _ := metrics.Gather()
	sums := map[string]*uint64{
		"curfew_deadlines_fired_total": &s.Fired, "curfew_messages_ready": &s.Ready, "curfew_messages_unacked": &s.Unacked, "curfew_messages_delayed": &s.Delayed,
		"curfew_queues": &s.Queues, "curfew_connections": &s.Connections, "curfew_consumers": &s.Consumers, "curfew_store_segments": &s.Segments,
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			value := cmp.Or(m.GetCounter().GetValue(), m.GetGauge().GetValue())
			if sum := sums[family.GetName()]; sum != nil {
				*sum += uint64(value)
			}
			switch family.GetName() {
			case "curfew_deadlines_failed_total":
				if slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
					return l.GetName() == "reason" && (l.GetValue() == "late" || l.GetValue() == "stalled")
				}) {
					s.Late += uint64(value)
				}
			case "curfew_deadlines_held":
				s.Held += int(value)
			case "curfew_store_bytes":
				s.Stored = int64(value)
			case "curfew_store_live_bytes":
				s.Live = int64(value)
			case "curfew_deadline_next_timestamp_seconds":
				if value > 0 {
					next := time.UnixMilli(int64(math.Ceil(math.Round(value*1e6) / 1e3))).UTC() // as all deadlines are shown
					s.Next = &next
				}
			case "curfew_journal_fsync_duration_seconds":
				s.SyncP50, s.SyncP99 = quantiles(m.GetHistogram())
			}
		}
	}
}

// seconds is what the share of messages were late at most, up to the last bound; nil: nothing expired.
func seconds(l *monitor.Lateness, share float64) *float64 {
	if l.Total() == 0 {
		return nil
	}
	millis, ok := l.Within(share)
	if !ok {
		millis = l.UpTo[len(l.UpTo)-1]
	}
	return new(float64(millis) / 1000)
}

// quantiles are the median and the 99th percentile, as quantile has them.
func quantiles(h *dto.Histogram) (p50, p99 *float64) {
	var bounds []float64
	var counts []uint64
	for _, b := range h.GetBucket() {
		bounds, counts = append(bounds, b.GetUpperBound()), append(counts, b.GetCumulativeCount())
	}
	total := h.GetSampleCount()
	return quantile(0.50, bounds, counts, total), quantile(0.99, bounds, counts, total)
}

// quantile is at most that of the observations in a histogram: the bound of the bucket in which it
// lies, as Prometheus counts, and above the last bound that bound. nil: there are none.
func quantile(q float64, bounds []float64, cumulative []uint64, total uint64) *float64 {
	if total == 0 || len(bounds) == 0 {
		return nil
	}
	rank := uint64(math.Ceil(q * float64(total)))
	for i, n := range cumulative {
		if n >= rank && !math.IsInf(bounds[i], 1) {
			return &bounds[i]
		}
	}
	return &bounds[len(bounds)-1]
}
