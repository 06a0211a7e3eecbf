package node

import (
	"sync"
	"time"

	"curfew/broker"
)

// trends remember what one look cannot tell: how fast the disk fills up, how long syncs take. Safe for concurrent use.
type trends struct {
	mu      sync.Mutex
	disk    []diskLook // one a minute of the last hour
	syncs   [2]syncCount
	files   float64
	filesAt time.Time
}

// diskLook is how many bytes were free.
type diskLook struct {
	at   time.Time
	free int64
}

// syncCount counts the syncs of a span, and those that were slow.
type syncCount struct {
	began       time.Time
	total, slow int
}

const (
	diskEvery  = time.Minute
	diskLooks  = 60
	diskFrom   = 10 // looks that make a trend
	filesEvery = 10 * time.Second
	syncSpan   = 5 * time.Minute
	slowSync   = 500 * time.Millisecond
	// syncsFrom are enough syncs to tell.
	syncsFrom = 20
)

// diskFullIn is how long the disk lasts down to its limit, at the rate of the last hour; 0: it does not fill up, or nobody knows.
func (t *trends) diskFullIn(now time.Time, free, limit int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.disk); n == 0 || now.Sub(t.disk[n-1].at) >= diskEvery {
		t.disk = append(t.disk, diskLook{now, free})
		t.disk = t.disk[max(len(t.disk)-diskLooks, 0):]
	}
	first := t.disk[0]
	used, took := first.free-free, now.Sub(first.at)
	if len(t.disk) < diskFrom || used <= 0 || free <= limit {
		return 0
	}
	return time.Duration(float64(free-limit) / float64(used) * float64(took))
}

// synced counts a sync.
func (t *trends) synced(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.syncs[1].began) >= syncSpan {
		t.syncs = [2]syncCount{t.syncs[1], {began: now}}
	}
	t.syncs[1].total++
	if took > slowSync {
		t.syncs[1].slow++
	}
}

// slowSyncs is the share of the syncs of the last minutes that were slow.
func (t *trends) slowSyncs() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum syncCount
	for _, c := range t.syncs {
		if time.Since(c.began) < 2*syncSpan {
			sum.total, sum.slow = sum.total+c.total, sum.slow+c.slow
		}
	}
	if sum.total < syncsFrom {
		return 0
	}
	return float64(sum.slow) / float64(sum.total)
}

// openFiles is the share of the file descriptors that are in use.
func (t *trends) openFiles() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.filesAt) >= filesEvery {
		t.files, t.filesAt = broker.OpenFiles(), time.Now()
	}
	return t.files
}
