package lease

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/keeper"
)

const (
	recordSize    = 16
	mostWaiting   = 1 << 21 // shadows that wait to be written; when there are more, all wait for a rewrite
	writeAtOnce   = 1 << 16
	writeEvery    = 50 * time.Millisecond
	checkEvery    = time.Second
	callTimeout   = 2 * time.Second
	keepPast      = 2 * time.Minute
	keepLasting   = 7 * 24 * time.Hour
	minutesAtOnce = 64
	sweepAtOnce   = 1000
)

// Shadows keep a queue's deadlines in Redis. Run writes them. It is safe for concurrent use.
type Shadows struct {
	client  redis.UniversalClient
	prefix  string
	minutes string // the key
	ahead   func() time.Duration
	past    time.Duration // how long after its minute a shadow is kept
	log     *zap.Logger
	lost    chan struct{}

	mu       sync.Mutex
	waiting  []keeper.Shadow
	dropped  bool  // something was not written
	passed   int64 // minutes before this one are no longer needed
	anything bool  // something was written or read, so the key minutes must be there

	latest, swept int64 // the last minute that was written, the first that was not swept; of the goroutine that writes
}

var _ keeper.Shadows = (*Shadows)(nil)

// NewShadows makes the shadows of a queue. It does not connect. With lasting they are kept for a week after they are due, unless Passed is called.
// ahead says how far the clock of the deadlines is ahead of the wall clock, which those in Redis go by.
func NewShadows(client redis.UniversalClient, at Space, queue string, lasting bool, ahead func() time.Duration, log *zap.Logger) *Shadows {
	s := &Shadows{client: client, ahead: ahead, prefix: at.prefix(queue), minutes: at.prefix(queue) + ":minutes", past: keepPast, log: log, lost: make(chan struct{}, 1)}
	if lasting {
		s.past = keepLasting
	}
	return s
}

// Passed implements delay.Lasting.
func (s *Shadows) Passed(before deadline.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = max(s.passed, before.Add(-s.ahead()).Time().Unix()/60)
}

// sweep deletes the minutes that have passed.
func (s *Shadows) sweep(ctx context.Context) {
	s.mu.Lock()
	passed := s.passed
	s.mu.Unlock()
	if passed <= s.swept {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	minutes, err := s.client.ZRange(ctx, s.minutes, 0, sweepAtOnce-1).Result()
	if err == nil {
		_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, m := range minutes {
				if minute, err := strconv.ParseInt(m, 10, 64); err == nil && minute < passed {
					p.Del(ctx, s.minuteKey(minute))
					p.ZRem(ctx, s.minutes, m)
				}
			}
			return nil
		})
	}
	if err != nil {
		s.log.Debug("shadows that have passed are not deleted; they expire by themselves", zap.Error(err))
		return
	}
	s.swept = passed
}

// Put implements keeper.Shadows.
func (s *Shadows) Put(shadows []keeper.Shadow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped = s.dropped || len(s.waiting)+len(shadows) > mostWaiting; s.dropped {
		s.waiting = nil
		return
	}
	ahead := s.ahead()
	for _, shadow := range shadows {
		shadow.Deadline = shadow.Deadline.Add(-ahead)
		s.waiting = append(s.waiting, shadow)
	}
}

// Lost implements keeper.Shadows.
func (s *Shadows) Lost() <-chan struct{} { return s.lost }

// Run writes what was put until ctx ends, and what waits then.
func (s *Shadows) Run(ctx context.Context) error {
	write, check := time.NewTicker(writeEvery), time.NewTicker(checkEvery)
	defer write.Stop()
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
			defer cancel()
			for {
				if err := s.write(last); err != nil || !s.waits() {
					return err
				}
			}
		case <-write.C:
			if err := s.write(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("shadows are not written; all are written again when Redis is back", zap.Error(err))
			}
		case <-check.C:
			s.check(ctx)
			s.sweep(ctx)
		}
	}
}

func (s *Shadows) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// write sends what waits, or a part of it, in one pipeline.
func (s *Shadows) write(ctx context.Context) error {
	s.mu.Lock()
	batch := s.waiting[:min(len(s.waiting), writeAtOnce)]
	if s.waiting = s.waiting[len(batch):]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	s.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records := map[int64][]byte{}
	for _, shadow := range batch {
		m := shadow.Deadline.Time().Unix() / 60
		records[m] = appendRecord(records[m], shadow)
		s.latest = max(s.latest, m)
	}
	var there *redis.IntCmd // what was written before
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		there = p.Exists(ctx, s.minutes)
		for m, b := range records {
			p.Append(ctx, s.minuteKey(m), string(b))
			p.ExpireAt(ctx, s.minuteKey(m), s.endOf(m))
			p.ZAdd(ctx, s.minutes, redis.Z{Score: float64(m), Member: m})
		}
		p.ZRemRangeByScore(ctx, s.minutes, "-inf", strconv.FormatInt(time.Now().Add(-s.past-keepPast).Unix()/60, 10))
		p.ExpireAt(ctx, s.minutes, s.endOf(s.latest))
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.dropped = true
		return fmt.Errorf("lease: write shadows: %w", err)
	}
	s.dropped = s.dropped || s.anything && there.Val() == 0
	s.anything = true
	return nil
}

// check asks for all again when something was not written and Redis answers, or when it has lost what it had.
func (s *Shadows) check(ctx context.Context) {
	s.mu.Lock()
	ask := s.dropped || s.anything
	s.mu.Unlock()
	if !ask {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := s.client.Exists(ctx, s.minutes).Result()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dropped && n == 1 {
		return
	}
	s.dropped, s.anything = false, false
	deadline.Wake(s.lost)
}

// Load implements keeper.Shadows.
func (s *Shadows) Load(ctx context.Context) (all []keeper.Shadow, err error) {
	minutes, err := s.client.ZRange(ctx, s.minutes, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("lease: read shadows: %w", err)
	}
	for len(minutes) > 0 {
		n := min(len(minutes), minutesAtOnce)
		answers := make([]*redis.StringCmd, n)
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, m := range minutes[:n] {
				answers[i] = p.Get(ctx, s.prefix+":at:"+m)
			}
			return nil
		})
		if err != nil && err != redis.Nil {
			return nil, fmt.Errorf("lease: read shadows: %w", err)
		}
		for _, a := range answers {
			b, _ := a.Bytes() // none: it has expired
			all = appendShadows(all, b)
		}
		minutes = minutes[n:]
	}
	ahead := s.ahead()
	for i := range all {
		all[i].Deadline = all[i].Deadline.Add(ahead)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.anything = s.anything || len(all) > 0
	return all, nil
}

func (s *Shadows) minuteKey(m int64) string { return s.prefix + ":at:" + strconv.FormatInt(m, 10) }

// endOf is when nobody needs what is of a minute any more.
func (s *Shadows) endOf(minute int64) time.Time {
	return time.Unix(minute*60, 0).Add(time.Minute + s.past)
}

func appendRecord(b []byte, s keeper.Shadow) []byte {
	b = binary.BigEndian.AppendUint64(b, s.Fingerprint)
	at := uint64(s.Deadline) << 1
	if s.AgeUnknown {
		at |= 1
	}
	return binary.BigEndian.AppendUint64(b, at)
}

func appendShadows(all []keeper.Shadow, b []byte) []keeper.Shadow {
	for ; len(b) >= recordSize; b = b[recordSize:] {
		at := binary.BigEndian.Uint64(b[8:])
		all = append(all, keeper.Shadow{Fingerprint: binary.BigEndian.Uint64(b), Deadline: deadline.Instant(at >> 1), AgeUnknown: at&1 == 1})
	}
	return all
}
