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
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
)

// ErrNoRun is returned for the ID of no run.
var ErrNoRun = errors.New("there is no such run")

// ErrRunning is returned when a run is under way, or ended, that should not be.
var ErrRunning = errors.New("the run is not in a state for that")

// ErrOrder is wrapped by errors about an order that cannot be carried out.
var ErrOrder = errors.New("bad order")

const (
	// maxRuns is how many ended runs are kept.
	maxRuns = 100
	// maxUnderway is how many may be under way: each costs a goroutine and a page.
	maxUnderway = 8
	// saveEvery is how often a run that is under way is saved.
	saveEvery = time.Second
)

// Runs are the replays of a broker. Safe for concurrent use.
type Runs struct {
	b   *broker.Broker
	dir string
	log *zap.Logger

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	works map[string]*work
}

// NewRuns makes the runs of b, kept in dir ("": in memory only), and goes on with those
// that were under way when the process ended. Close ends it, before the broker's.
func NewRuns(b *broker.Broker, dir string, log *zap.Logger) (*Runs, error) {
	if log == nil {
		log = zap.NewNop()
	}
	r := &Runs{b: b, dir: dir, log: log.Named("replay"), works: map[string]*work{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	if dir == "" {
		return r, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("replays: %w", err)
	}
	return r, r.load()
}

// Close stops what is under way, to go on with it at the next start, and waits.
func (r *Runs) Close() {
	r.stop()
	r.wg.Wait()
}

// Start makes a run. With DryRun it is over when Start returns, has moved nothing and is
// not kept. Errors: about the order (ErrOrder), its user (ErrOwner), the queue (404), or
// what a dry run met.
func (r *Runs) Start(ctx context.Context, o Order) (Run, error) {
	if err := o.complete(); err != nil {
		return Run{}, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	if err := o.Filter.Check(); err != nil {
		return Run{}, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	_, q, err := o.find(r.b)
	if err == nil {
		err = o.ownerMay(r.b)
	}
	if err != nil {
		return Run{}, err
	}
	ready, _, _ := q.Counts()
	w := &work{run: Run{
		ID: newID(), Order: o, State: Running, Started: time.Now().UTC(), Total: ready,
		Left: map[Left]int{}, QueueID: q.ID(), UpTo: q.Tails(),
	}}
	if o.DryRun {
		return r.try(ctx, w)
	}
	if err := r.save(w); err != nil {
		return Run{}, err
	}
	if err := r.begin(w); err != nil {
		return Run{}, errors.Join(err, r.forget(w.run.ID))
	}
	return w.snapshot(), nil
}

func (r *Runs) try(ctx context.Context, w *work) (Run, error) {
	err := r.carryOut(ctx, w, func() error { return nil })
	w.change(func(run *Run) { run.State, run.Ended = Done, time.Now().UTC() })
	return w.snapshot(), err
}

// begin puts a run under way.
func (r *Runs) begin(w *work) error {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.underway() {
		cancel()
		return fmt.Errorf("%w: it is under way", ErrRunning)
	}
	if r.underway() >= maxUnderway {
		cancel()
		return fmt.Errorf("%w: %d runs are under way; cancel one or wait", ErrRunning, maxUnderway)
	}
	w.change(func(run *Run) { run.State, run.Error, run.Ended = Running, "", time.Time{} })
	w.cancel, w.ended = cancel, make(chan struct{})
	r.works[w.run.ID] = w
	r.wg.Go(func() {
		defer close(w.ended)
		defer cancel()
		r.work(ctx, w)
	})
	return nil
}

func (r *Runs) underway() (n int) {
	for _, w := range r.works {
		if w.underway() {
			n++
		}
	}
	return n
}

// underway says whether a goroutine is at it. Called with Runs.mu held.
func (w *work) underway() bool {
	if w.ended == nil {
		return false
	}
	select {
	case <-w.ended:
		return false
	default:
		return true
	}
}

// work carries a run out and notes how it ended. One that the process's end stops
// stays running in its file.
func (r *Runs) work(ctx context.Context, w *work) {
	last := time.Now()
	err := r.carryOut(ctx, w, func() error {
		if time.Since(last) < saveEvery {
			return nil
		}
		last = time.Now()
		return r.save(w)
	})
	if r.ctx.Err() == nil {
		w.change(func(run *Run) { run.finish(err) })
	}
	if err := r.save(w); err != nil {
		r.log.Error("a replay's state is not saved; a restart may go over it again, which moves nothing twice", zap.Error(err))
	}
	run := w.snapshot()
	r.log.Info("replay", zap.String("run", run.ID), zap.String("state", string(run.State)), zap.String("vhost", run.VHost), zap.String("queue", run.Queue),
		zap.Int("replayed", run.Replayed), zap.Any("left", run.Left), zap.String("user", run.User), zap.String("error", run.Error))
	r.tidy()
}

func (run *Run) finish(err error) {
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

func (r *Runs) carryOut(ctx context.Context, w *work, saved func() error) error {
	run := w.snapshot()
	vh, q, err := run.find(r.b)
	if err == nil {
		err = run.ownerMay(r.b)
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
	one := &replayer{work: w, b: r.b, q: q, p: p, order: run.Order, id: run.ID, upTo: run.UpTo, saved: saved}
	if err := one.replay(ctx); err != nil || run.DryRun {
		return err
	}
	return r.commit(ctx)
}

// commit waits until what was moved is on the disk.
func (r *Runs) commit(ctx context.Context) error {
	safe := make(chan error, 1)
	r.b.Commit(func(err error) { safe <- err })
	select {
	case err := <-safe:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// List returns the runs that a user may see, the oldest first: an administrator all,
// others their own.
func (r *Runs) List(by *access.User) []Run {
	return slices.DeleteFunc(r.all(), func(run Run) bool { return !mayHandle(by, &run) })
}

// all are the runs, the oldest first.
func (r *Runs) all() []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Run, 0, len(r.works))
	for _, w := range r.works {
		list = append(list, w.snapshot())
	}
	byAge(list)
	return list
}

// Get returns one. Error: ErrNoRun, also for one that the user may not see.
func (r *Runs) Get(by *access.User, id string) (Run, error) {
	w, err := r.find(by, id)
	if err != nil {
		return Run{}, err
	}
	return w.snapshot(), nil
}

// find finds a run that the user may see.
func (r *Runs) find(by *access.User, id string) (*work, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.works[id]; w != nil && mayHandle(by, &w.run) { // whose it is does not change
		return w, nil
	}
	return nil, ErrNoRun
}

// Cancel stops a run and waits until it stands still. One that has ended stays as it
// is. Error: ErrNoRun, also for one that the user may not see.
func (r *Runs) Cancel(by *access.User, id string) (Run, error) {
	w, err := r.find(by, id)
	if err != nil {
		return Run{}, err
	}
	r.mu.Lock()
	cancel, ended := w.cancel, w.ended
	r.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
	return w.snapshot(), nil
}

// Resume goes on with a run that was cancelled or failed, with the rights that its owner
// has now. Errors: ErrNoRun, also for one that the user may not see; ErrRunning; ErrOwner.
func (r *Runs) Resume(by *access.User, id string) (Run, error) {
	w, err := r.find(by, id)
	if err != nil {
		return Run{}, err
	}
	run := w.snapshot()
	if run.State != Cancelled && run.State != Failed {
		return Run{}, fmt.Errorf("%w: it is %s", ErrRunning, run.State)
	}
	if err := run.ownerMay(r.b); err != nil {
		return Run{}, err
	}
	if err := r.begin(w); err != nil {
		return Run{}, err
	}
	return w.snapshot(), nil
}

// tidy forgets the oldest ended runs above maxRuns.
func (r *Runs) tidy() {
	list := r.all()
	for _, run := range list[:max(0, len(list)-maxRuns)] {
		if run.State == Running {
			continue
		}
		if err := r.forget(run.ID); err != nil {
			r.log.Warn("an old replay's file stays", zap.Error(err))
		}
	}
}

func (r *Runs) forget(id string) error {
	r.mu.Lock()
	delete(r.works, id)
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

func (r *Runs) file(id string) string { return filepath.Join(r.dir, id+".json") }

// save replaces the run's file whole: a crash leaves the old one or the new.
func (r *Runs) save(w *work) error {
	if r.dir == "" {
		return nil
	}
	run := w.snapshot()
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

// load reads the runs of the last process and goes on with those under way. A file that
// cannot be read is left alone: it is a record, and no message hangs on it.
func (r *Runs) load() error {
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
		w := &work{}
		if err == nil {
			err = json.Unmarshal(text, &w.run)
		}
		if err != nil || w.run.ID != id {
			r.log.Warn("a replay's file is not readable", zap.String("file", r.file(id)), zap.Error(err))
			continue
		}
		if w.run.Left == nil {
			w.run.Left = map[Left]int{}
		}
		r.mu.Lock()
		r.works[id] = w
		r.mu.Unlock()
		if w.run.State == Running {
			if err := r.begin(w); err != nil {
				w.change(func(run *Run) { run.finish(err) })
			}
		}
	}
	return nil
}
