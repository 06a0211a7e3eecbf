package deadletters

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
)

// ErrNoReplay is returned for an ID that no replay has.
var ErrNoReplay = errors.New("there is no such run")

// ErrRunning is returned when a replay is not in the state that a call wants.
var ErrRunning = errors.New("the run is not in a state for that")

// ErrRequest is wrapped by errors about a request that cannot be carried out.
var ErrRequest = errors.New("the replay cannot be started")

const (
	// maxReplays is how many replays that have ended are kept.
	maxReplays = 100
	// maxUnderway is how many may run at a time: each costs a goroutine and a page.
	maxUnderway = 8
	// saveEvery is how often a running replay is saved.
	saveEvery = time.Second
)

// Replays are the replays of a broker. Safe for concurrent use.
type Replays struct {
	b   *broker.Broker
	dir string
	log *zap.Logger

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*job
}

// OpenReplays reads the replays of b that dir keeps ("": in memory only), and goes on with those that were running when the process ended. They
// are to be closed before the broker is.
func OpenReplays(b *broker.Broker, dir string, log *zap.Logger) (*Replays, error) {
	if log == nil {
		log = zap.NewNop()
	}
	r := &Replays{b: b, dir: dir, log: log.Named("replay"), jobs: map[string]*job{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	if dir == "" {
		return r, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("replays: %w", err)
	}
	return r, r.load()
}

// Close stops what is running, which goes on at the next start, and waits.
func (r *Replays) Close() {
	r.stop()
	r.wg.Wait()
}

// Start starts a replay. A dry run is over when Start returns, has moved nothing and is not kept. Errors: about the request (ErrRequest), its
// user (ErrOwner), the queue (404), or what a dry run met.
func (r *Replays) Start(ctx context.Context, o Request) (Replay, error) {
	if err := o.complete(); err != nil {
		return Replay{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := o.Filter.Check(); err != nil {
		return Replay{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	_, q, err := o.find(r.b)
	if err == nil {
		err = o.checkOwner(r.b)
	}
	if err != nil {
		return Replay{}, err
	}
	if o.Position.IsZero() {
		o.Position = positionOf(q)
	}
	if o.Position.QueueID != q.ID() || o.Filter.QueueID != 0 && o.Filter.QueueID != q.ID() {
		return Replay{}, fmt.Errorf("%w: %w", ErrRequest, ErrRedeclared)
	}
	ready, _, _ := q.Counts()
	j := &job{run: Replay{
		ID: newID(), Request: o, State: Running, Started: time.Now().UTC(), Total: ready,
		Skipped: map[SkipReason]int{}, QueueID: q.ID(), UpTo: o.Position.Last,
	}}
	if o.DryRun {
		return r.try(ctx, j)
	}
	if err := r.save(j); err != nil {
		return Replay{}, err
	}
	if err := r.begin(j); err != nil {
		return Replay{}, errors.Join(err, r.forget(j.run.ID))
	}
	return j.snapshot(), nil
}

func (r *Replays) try(ctx context.Context, j *job) (Replay, error) {
	err := r.move(ctx, j, func() error { return nil })
	j.change(func(run *Replay) { run.State, run.Ended = Done, time.Now().UTC() })
	return j.snapshot(), err
}

// begin has a goroutine work on a replay.
func (r *Replays) begin(j *job) error {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.underwayLocked() {
		cancel()
		return fmt.Errorf("%w: it is under way", ErrRunning)
	}
	if r.underwayLocked() >= maxUnderway {
		cancel()
		return fmt.Errorf("%w: %d runs are under way; cancel one or wait", ErrRunning, maxUnderway)
	}
	j.change(func(run *Replay) { run.State, run.Error, run.Ended = Running, "", time.Time{} })
	j.cancel, j.ended = cancel, make(chan struct{})
	r.jobs[j.run.ID] = j
	r.wg.Go(func() {
		defer close(j.ended)
		defer cancel()
		r.run(ctx, j)
	})
	return nil
}

func (r *Replays) underwayLocked() (n int) {
	for _, j := range r.jobs {
		if j.underwayLocked() {
			n++
		}
	}
	return n
}

// underwayLocked reports whether a goroutine works on it. Replays.mu is held.
func (j *job) underwayLocked() bool {
	if j.ended == nil {
		return false
	}
	select {
	case <-j.ended:
		return false
	default:
		return true
	}
}

// run carries a replay out and notes how it ended. One that the end of the process stops stays running in its file.
func (r *Replays) run(ctx context.Context, j *job) {
	last := time.Now()
	err := r.move(ctx, j, func() error {
		if time.Since(last) < saveEvery {
			return nil
		}
		last = time.Now()
		return r.save(j)
	})
	if r.ctx.Err() == nil {
		j.change(func(run *Replay) { run.finish(err) })
	}
	if err := r.save(j); err != nil {
		r.log.Error("a replay's state is not saved; a restart may go over it again, which moves nothing twice", zap.Error(err))
	}
	run := j.snapshot()
	r.log.Info("replay", zap.String("run", run.ID), zap.String("state", string(run.State)), zap.String("vhost", run.VHost), zap.String("queue", run.Queue),
		zap.Int("replayed", run.Replayed), zap.Any("left", run.Skipped), zap.String("user", run.User), zap.String("error", run.Error))
	r.forgetOldest()
}

func (run *Replay) finish(err error) {
	run.Ended = time.Now().UTC()
	switch {
	case err == nil:
		run.State = Done
	case errors.Is(err, context.Canceled):
		run.State = Cancelled
	default:
		run.State, run.Error = Failed, err.Error()
	}
}

func (r *Replays) move(ctx context.Context, j *job, saved func() error) error {
	run := j.snapshot()
	vh, q, err := run.find(r.b)
	if err == nil {
		err = run.checkOwner(r.b)
	}
	if err != nil {
		return err
	}
	if q.ID() != run.QueueID {
		return errors.New("the queue was deleted and made again; start another run")
	}
	p := vh.OwnPublisher()
	if run.User != "" {
		p = vh.NewPublisher(run.User)
	}
	one := &replayer{job: j, b: r.b, q: q, p: p, order: run.Request, id: run.ID, upTo: Position{run.QueueID, run.UpTo}, saved: saved, targets: targets{}}
	if err := one.replay(ctx); err != nil {
		return err
	}
	if run.DryRun {
		j.change(func(run *Replay) { run.Targets = one.targets.list(r.b, q) })
		return nil
	}
	return r.commit(ctx)
}

// commit waits until what was moved is on the disk.
func (r *Replays) commit(ctx context.Context) error {
	safe := make(chan error, 1)
	r.b.Commit(func(err error) { safe <- err })
	select {
	case err := <-safe:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// List returns all replays, the oldest first.
func (r *Replays) List() []Replay {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Replay, 0, len(r.jobs))
	for _, j := range r.jobs {
		list = append(list, j.snapshot())
	}
	byAge(list)
	return list
}

// Get returns one. Error: ErrNoReplay.
func (r *Replays) Get(id string) (Replay, error) {
	j, err := r.find(id)
	if err != nil {
		return Replay{}, err
	}
	return j.snapshot(), nil
}

func (r *Replays) find(id string) (*job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[id]; j != nil {
		return j, nil
	}
	return nil, ErrNoReplay
}

// Cancel stops a replay and waits until it stands still. One that has ended stays as it is. Error: ErrNoReplay.
func (r *Replays) Cancel(id string) (Replay, error) {
	j, err := r.find(id)
	if err != nil {
		return Replay{}, err
	}
	r.mu.Lock()
	cancel, ended := j.cancel, j.ended
	r.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
	return j.snapshot(), nil
}

// Resume goes on with a replay that was cancelled or failed, with the rights that its owner has now. Errors: ErrNoReplay, ErrRunning,
// ErrOwner.
func (r *Replays) Resume(id string) (Replay, error) {
	j, err := r.find(id)
	if err != nil {
		return Replay{}, err
	}
	run := j.snapshot()
	if run.State != Cancelled && run.State != Failed {
		return Replay{}, fmt.Errorf("%w: it is %s", ErrRunning, run.State)
	}
	if err := run.checkOwner(r.b); err != nil {
		return Replay{}, err
	}
	if err := r.begin(j); err != nil {
		return Replay{}, err
	}
	return j.snapshot(), nil
}

// forgetOldest forgets the oldest replays that have ended, above maxReplays.
func (r *Replays) forgetOldest() {
	list := r.List()
	for _, run := range list[:max(0, len(list)-maxReplays)] {
		if run.State == Running {
			continue
		}
		if err := r.forget(run.ID); err != nil {
			r.log.Warn("an old replay's file stays", zap.Error(err))
		}
	}
}

func (r *Replays) forget(id string) error {
	r.mu.Lock()
	delete(r.jobs, id)
	r.mu.Unlock()
	if r.dir == "" {
		return nil
	}
	if err := os.Remove(r.file(id)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:4])
}

func (r *Replays) file(id string) string { return filepath.Join(r.dir, id+".json") }

// save replaces the replay's file as a whole: a crash leaves the old one or the new.
func (r *Replays) save(j *job) error {
	if r.dir == "" {
		return nil
	}
	run := j.snapshot()
	text, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("replay %s: %w", run.ID, err)
	}
	next := r.file(run.ID) + ".next"
	if err := writeSynced(next, text); err != nil {
		return fmt.Errorf("replay %s: %w", run.ID, err)
	}
	if err := os.Rename(next, r.file(run.ID)); err != nil {
		return fmt.Errorf("replay %s: %w", run.ID, err)
	}
	return nil
}

func writeSynced(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// load reads the replays of the last process and goes on with those that were running. A file that cannot be read is left alone: it is a
// record, and no message depends on it.
func (r *Replays) load() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("replays: %w", err)
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		text, err := os.ReadFile(r.file(id))
		j := &job{}
		if err == nil {
			err = json.Unmarshal(text, &j.run)
		}
		if err != nil || j.run.ID != id {
			r.log.Warn("a replay's file is not readable", zap.String("file", r.file(id)), zap.Error(err))
			continue
		}
		if j.run.Skipped == nil {
			j.run.Skipped = map[SkipReason]int{}
		}
		r.mu.Lock()
		r.jobs[id] = j
		r.mu.Unlock()
		if j.run.State == Running {
			if err := r.begin(j); err != nil {
				j.change(func(run *Replay) { run.finish(err) })
			}
		}
	}
	return nil
}
