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
var ErrNoReplay = errors.New("there is no such replay")

// ErrRunning is returned when a call is not possible in the replay's state.
var ErrRunning = errors.New("the replay is not in a state for that")

// ErrRequest is wrapped by errors about a request that cannot be carried out.
var ErrRequest = errors.New("the replay cannot be started")

const (
	// maxReplays is how many replays that have ended are kept.
	maxReplays = 100
	// maxUnderway is how many may run at a time: each takes a goroutine and the memory of a page.
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

// OpenReplays reads the replays of b that dir keeps ("": in memory only), and continues those that were running when the process ended. They
// must be closed before the broker.
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

// Close stops the running replays and waits for them; they continue at the next start.
func (r *Replays) Close() {
	r.stop()
	r.wg.Wait()
}

// Start starts a replay. A dry run is complete when Start returns; it moves nothing and is not kept. Errors: about the request (ErrRequest), its
// user (ErrOwner) or the queue (404), or the error that ended a dry run.
func (r *Replays) Start(ctx context.Context, o Request) (Replay, error) {
	if err := o.complete(); err != nil {
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
		o.Position = PositionOf(q, time.UnixMilli(unixMillis(r.b)))
	}
	if _, err := o.Position.on(q, o.Filter); err != nil {
		return Replay{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	ready, _, _ := q.Counts()
	j := &job{replay: Replay{
		ID: NewRunID(), Request: o, State: Running, Started: time.Now().UTC(), Total: ready,
		Skipped: map[SkipReason]int{},
	}}
	if o.DryRun {
		return r.try(ctx, j)
	}
	if err := r.save(j); err != nil {
		return Replay{}, err
	}
	if err := r.begin(j); err != nil {
		return Replay{}, errors.Join(err, r.forget(j.replay.ID))
	}
	return j.snapshot(), nil
}

func (r *Replays) try(ctx context.Context, j *job) (Replay, error) {
	err := r.move(ctx, j, func() error { return nil })
	j.change(func(replay *Replay) { replay.State, replay.Ended = Done, time.Now().UTC() })
	return j.snapshot(), err
}

// begin starts a goroutine that works on a replay.
func (r *Replays) begin(j *job) error {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.underwayLocked() {
		cancel()
		return fmt.Errorf("%w: it is running", ErrRunning)
	}
	if r.underwayLocked() >= maxUnderway {
		cancel()
		return fmt.Errorf("%w: %d replays are running; cancel one or wait", ErrRunning, maxUnderway)
	}
	j.change(func(replay *Replay) { replay.State, replay.Error, replay.Ended = Running, "", time.Time{} })
	j.cancel, j.ended = cancel, make(chan struct{})
	r.jobs[j.replay.ID] = j
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

// run carries out a replay and records how it ended. A replay that is stopped by the end of the process stays running in its file.
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
		j.change(func(replay *Replay) { replay.finish(err) })
	}
	if err := r.save(j); err != nil {
		r.log.Error("the state of a replay is not saved; after a restart it may repeat messages it has examined, but moves nothing twice", zap.Error(err))
	}
	replay := j.snapshot()
	r.log.Info("replay", zap.String("replay", replay.ID), zap.String("state", string(replay.State)), zap.String("vhost", replay.VHost), zap.String("queue", replay.Queue),
		zap.Int("replayed", replay.Replayed), zap.Any("skipped", replay.Skipped), zap.String("user", replay.User), zap.String("error", replay.Error))
	r.forgetOldest()
}

func (replay *Replay) finish(err error) {
	replay.Ended = time.Now().UTC()
	switch {
	case err == nil:
		replay.State = Done
	case errors.Is(err, context.Canceled):
		replay.State = Cancelled
	default:
		replay.State, replay.Error = Failed, err.Error()
	}
}

func (r *Replays) move(ctx context.Context, j *job, saved func() error) error {
	replay := j.snapshot()
	vh, q, err := replay.find(r.b)
	if err == nil {
		err = replay.checkOwner(r.b)
	}
	if err != nil {
		return err
	}
	p := vh.OwnPublisher()
	if replay.User != "" {
		p = vh.NewPublisher(replay.User)
	}
	one := &replayer{job: j, b: r.b, q: q, p: p, order: replay.Request, id: replay.ID, saved: saved, targets: targets{}}
	if err := one.moveAll(ctx); err != nil {
		return err
	}
	if replay.DryRun {
		j.change(func(replay *Replay) { replay.Targets = one.targets.list(r.b, q) })
		return nil
	}
	return r.commit(ctx)
}

// commit waits until the moves are on disk.
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

// Cancel stops a replay and waits until it has stopped. It does not change one that has ended. Error: ErrNoReplay.
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

// Resume continues a replay that was cancelled or has failed, with the rights that its owner has now. Errors: ErrNoReplay, ErrRunning,
// ErrOwner.
func (r *Replays) Resume(id string) (Replay, error) {
	j, err := r.find(id)
	if err != nil {
		return Replay{}, err
	}
	replay := j.snapshot()
	if replay.State != Cancelled && replay.State != Failed {
		return Replay{}, fmt.Errorf("%w: it is %s", ErrRunning, replay.State)
	}
	if err := replay.checkOwner(r.b); err != nil {
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
	for _, replay := range list[:max(0, len(list)-maxReplays)] {
		if replay.State == Running {
			continue
		}
		if err := r.forget(replay.ID); err != nil {
			r.log.Warn("cannot remove the file of an old replay", zap.Error(err))
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

// NewRunID returns the ID of a new run.
func NewRunID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:4])
}

func (r *Replays) file(id string) string { return filepath.Join(r.dir, id+".json") }

// save replaces the replay's file as a whole: after a crash it is the old one or the new one.
func (r *Replays) save(j *job) error {
	if r.dir == "" {
		return nil
	}
	replay := j.snapshot()
	text, err := json.Marshal(replay)
	if err != nil {
		return fmt.Errorf("replay %s: %w", replay.ID, err)
	}
	next := r.file(replay.ID) + ".next"
	if err := writeSynced(next, text); err != nil {
		return fmt.Errorf("replay %s: %w", replay.ID, err)
	}
	if err := os.Rename(next, r.file(replay.ID)); err != nil {
		return fmt.Errorf("replay %s: %w", replay.ID, err)
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

// load reads the replays of the last process and continues those that were running. A file that cannot be read is left alone: it is only a
// record, no message depends on it.
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
			err = json.Unmarshal(text, &j.replay)
		}
		if err != nil || j.replay.ID != id {
			r.log.Warn("cannot read the file of a replay", zap.String("file", r.file(id)), zap.Error(err))
			continue
		}
		if j.replay.Skipped == nil {
			j.replay.Skipped = map[SkipReason]int{}
		}
		r.mu.Lock()
		r.jobs[id] = j
		r.mu.Unlock()
		if j.replay.State == Running {
			if err := r.begin(j); err != nil {
				j.change(func(replay *Replay) { replay.finish(err) })
			}
		}
	}
	return nil
}
