//go:build !race

package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dozeFor  = 2 * time.Millisecond
	syncWait = 10 * time.Millisecond // between two bare syncs
	stall    = 20 * time.Millisecond // later than that a bare timer is stalled
)

// machine notes when the machine let nobody work.
type machine struct {
	over chan struct{}
	done sync.WaitGroup

	processor, disk stalls // the disk's are those of the processor, too: a process that does not run does not sync
}

// stalls are spans in which something stood still. They may be asked for when they are merged and in order.
type stalls struct {
	mu    sync.Mutex
	spans []span
}

// span is in Unix µs.
type span struct{ from, to int64 }

// watchMachine keeps bare timers until stop: a thread on each processor, since a virtual machine may be given one and not the other; a
// goroutine, since this process has its own stalls; and bare syncs of a file in dir, since others may use that disk, too.
func watchMachine(t *testing.T, dir string) *machine {
	t.Helper()
	m := &machine{over: make(chan struct{})}
	t.Cleanup(m.stop)
	m.done.Go(func() { m.loop(&m.processor, func() { <-time.After(dozeFor) }, func() {}) })
	var allowed unix.CPUSet
	check(t, unix.SchedGetaffinity(0, &allowed))
	for cpu := range 1024 {
		if allowed.IsSet(cpu) {
			m.done.Go(func() { m.pinned(cpu, allowed) })
		}
	}
	f, err := os.Create(filepath.Join(dir, "bare"))
	check(t, err)
	t.Cleanup(func() { f.Close() })
	sync := func() { // of a file that grows, as a journal does
		_, _ = f.Write(noise[:4096]) // what fails shows in the broker
		_ = unix.Fdatasync(int(f.Fd()))
	}
	m.done.Go(func() { m.loop(&m.disk, sync, func() { <-time.After(syncWait) }) })
	return m
}

// loop does something short over and over, and notes when it took long.
func (m *machine) loop(s *stalls, do, between func()) {
	for {
		select {
		case <-m.over:
			return
		default:
		}
		from := now()
		do()
		if to := now(); to-from > (dozeFor + stall).Microseconds() {
			s.mu.Lock()
			s.spans = append(s.spans, span{from, to})
			s.mu.Unlock()
		}
		between()
	}
}

// pinned sleeps on one processor. It gives its thread back as it was: were that to end, the processes that were started on it would be
// killed (see Pdeathsig).
func (m *machine) pinned(cpu int, allowed unix.CPUSet) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one) // without it the thread could sleep on either
	defer func() { _ = unix.SchedSetaffinity(0, &allowed) }()
	short := unix.NsecToTimespec(int64(dozeFor))
	m.loop(&m.processor, func() { _ = unix.Nanosleep(&short, nil) }, func() {})
}

// stop ends the timers and makes the stalls ready to be asked for.
func (m *machine) stop() {
	select {
	case <-m.over:
		return
	default:
	}
	close(m.over)
	m.done.Wait()
	m.disk.spans = append(m.disk.spans, m.processor.spans...)
	m.processor.merge()
	m.disk.merge()
}

func (s *stalls) merge() {
	slices.SortFunc(s.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var merged []span
	for _, next := range s.spans {
		if n := len(merged); n > 0 && next.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, next.to)
			continue
		}
		merged = append(merged, next)
	}
	s.spans = merged
}

// within is for how long something stood still between two instants in Unix µs, and in how many stalls.
func (s *stalls) within(from, to int64) (sum time.Duration, count int) {
	for _, stall := range s.spans {
		if stall.from < to && stall.to > from {
			sum += time.Duration(min(to, stall.to)-max(from, stall.from)) * time.Microsecond
			count++
		}
	}
	return sum, count
}

// memory watches what the broker holds, and kills it when that is far too much.
type memory struct {
	p     *process
	limit int64 // of the broker, in bytes
	over  chan struct{}
	ended chan struct{}

	mu                sync.Mutex
	most, mostAll     int64 // without and with what is backed by files
	before, beforeAll int64 // when it began to count
	killed            bool
}

func watchMemory(p *process, limit int64) *memory {
	m := &memory{p: p, limit: limit, over: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		sample := time.NewTicker(10 * time.Millisecond)
		defer sample.Stop()
		for {
			select {
			case <-sample.C:
				m.sample()
			case <-p.exited:
				return
			case <-m.over:
				return
			}
		}
	}()
	return m
}

func (m *memory) sample() {
	own, all := m.p.resident()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most, m.mostAll = max(m.most, own), max(m.mostAll, all)
	if own > m.limit+residentKill && !m.killed {
		m.killed = true
		_ = m.p.cmd.Process.Kill() // it may have ended
	}
}

// begin has it count from now on.
func (m *memory) begin() {
	m.mu.Lock()
	m.most, m.mostAll = 0, 0
	m.mu.Unlock()
	m.sample()
	m.mu.Lock()
	m.before, m.beforeAll = m.most, m.mostAll
	m.mu.Unlock()
}

// stop says what is wrong with what it saw.
func (m *memory) stop() []string {
	close(m.over)
	<-m.ended
	switch {
	case m.killed:
		return []string{fmt.Sprintf("killed: it had %d MiB of memory, with a limit of %d MiB", m.most>>20, m.limit>>20)}
	case m.most > m.limit+m.limit/5:
		return []string{fmt.Sprintf("its memory reached %d MiB, with a limit of %d MiB and a fifth on top", m.most>>20, m.limit>>20)}
	}
	return nil
}

func (m *memory) String() string {
	return fmt.Sprintf("memory %d MiB before, %d MiB at most (%d and %d MiB with pages of files)", m.before>>20, m.most>>20, m.beforeAll>>20, m.mostAll>>20)
}

// resident is what the process holds in memory, without and with what is backed by files, which the kernel can take back; the limit does
// not count that. 0 when it has ended.
func (p *process) resident() (own, all int64) {
	fields := p.proc("status")
	return fields["RssAnon"] << 10, fields["VmRSS"] << 10
}

// proc reads the numbers of one of its files in /proc.
func (p *process) proc(file string) map[string]int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file)) // it may have ended
	fields := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			fields[name] = n
		}
	}
	return fields
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// healthWatch asks for health over a connection that it keeps.
type healthWatch struct {
	cancel context.CancelFunc
	ended  chan struct{}

	answers, failures int
	worst             time.Duration
	seen              map[string]bool
	dead              string // what it said then
}

func watchHealth(p *process) *healthWatch {
	ctx, cancel := context.WithCancel(context.Background())
	h := &healthWatch{cancel: cancel, ended: make(chan struct{}), seen: map[string]bool{}}
	url := p.word("Health")
	client := &http.Client{Transport: &http.Transport{}}
	go func() {
		defer close(h.ended)
		defer client.CloseIdleConnections()
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for ctx.Err() == nil && p.running() {
			h.ask(ctx, client, url)
			select {
			case <-every.C:
			case <-ctx.Done():
			}
		}
	}()
	return h
}

func (h *healthWatch) ask(watching context.Context, client *http.Client, url string) {
	ctx, cancel := context.WithTimeout(watching, 10*time.Second)
	defer cancel()
	asked := time.Now()
	var answer struct {
		Status  string
		Reasons []string
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err == nil {
		var resp *http.Response
		if resp, err = client.Do(req); err == nil {
			err = json.NewDecoder(resp.Body).Decode(&answer)
			resp.Body.Close()
		}
	}
	switch {
	case watching.Err() != nil:
		return
	case err != nil:
		h.failures++
		return
	}
	h.answers++
	h.worst = max(h.worst, time.Since(asked))
	h.seen[answer.Status] = true
	for _, reason := range answer.Reasons {
		h.seen[strings.TrimRight(reason, "0123456789s")] = true // without for how long
	}
	if answer.Status == "dead" {
		h.dead = fmt.Sprint(answer.Reasons)
	}
}

// stop says what is wrong with what it saw.
func (h *healthWatch) stop() (texts []string) {
	h.cancel()
	<-h.ended
	if h.dead != "" {
		texts = append(texts, "health was dead: "+h.dead)
	}
	if h.answers == 0 {
		texts = append(texts, "health never answered")
	}
	return texts
}

func (h *healthWatch) String() string {
	return fmt.Sprintf("health %q, %d answers and %d failures, within %v", slices.Sorted(maps.Keys(h.seen)), h.answers, h.failures, h.worst.Round(time.Millisecond))
}
