package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadletters"
)

var _ = Group("runs", "List, show and cancel operations that take long: imports, purges and replays")

// Run is an operation that may take long: running, or ended. A replay of dead letters is one too, and continues after a restart; others end with
// the process.
type Run struct {
	ID        string            `json:"id" table:"RUN" hide:"page"`
	Operation Operation         `json:"operation" label:"What" oneof:"start_replay purge_dead_letters purge_queue import_dead_letters import_definitions" texts:"Replay|Purge|Purge|Import|Definitions"` // start_replay, purge_dead_letters, purge_queue, import_dead_letters or import_definitions
	VHost     string            `json:"vhost" label:"Virtual host"`
	Queue     string            `json:"queue" table:"QUEUE?" to:"/dead-letter?vhost={vhost}&name={queue}"`
	User      string            `json:"user" label:"By" table:"BY"` // who started it
	State     deadletters.State `json:"state" is:"state"`           // running, done, cancelled or failed
	Share     int               `json:"-" label:"Progress" is:"share"`
	Started   time.Time         `json:"started"`
	Ended     *time.Time        `json:"ended" hide:"table page"`                   // null: it is running
	Done      int               `json:"done"`                                      // how much is done: messages examined or deleted, definitions checked
	Total     int               `json:"total" faint:"not known"`                   // of how much; 0: not known
	Left      string            `json:"-" label:"Left" faint:"none"`               // of a replay: what stayed where it is
	Result    any               `json:"result" hide:"table page"`                  // what the request would have been answered; of a replay, the replay
	Failure   Failure           `json:"failure,omitzero" label:"Why" table:"WHY?"` // why it failed; none: it has not
}

// Failure is an error with which a request would have been answered: of an answer of the API its status and fields, elsewhere Err.
type Failure struct {
	Status   int                  `json:"status"`
	Kind     string               `json:"error"`
	Reason   any                  `json:"reason"`
	Matched  int                  `json:"matched,omitempty"`  // of a purge: how many messages match
	Position deadletters.Position `json:"position,omitzero"`  // of a purge: how far they were counted
	Imported int                  `json:"imported,omitempty"` // of an import of dead letters: how many messages it published before
	Err      error                `json:"-"`
}

// String is the reason.
func (f Failure) String() string {
	switch {
	case f.Err != nil:
		return f.Err.Error()
	case f.Reason != nil:
		return Plain(f.Reason)
	}
	return ""
}

const (
	// maxRuns is how many may run at a time, and how many that have ended are kept. Of these, maxReplays may be replays that run: each takes a
	// goroutine and the memory of a page.
	maxRuns    = 100
	maxReplays = 8
	// cancelWait is how long CancelRun waits for the end: a run may be waiting for a lock.
	cancelWait = 5 * time.Second
	// saveEvery is how often a running replay is saved.
	saveEvery = time.Second
)

// ErrTooManyRuns is returned for a run that would be one too many.
var ErrTooManyRuns = errors.New("too many long operations are running; try again")

// Underway is a run that its starter may wait for or cancel.
type Underway struct {
	cancel context.CancelFunc // nil: it has not run in this process
	ended  chan struct{}      // nil as well then; closed at the end
	replay *deadletters.Job   // nil: it is none

	mu  sync.Mutex
	run Run
	err error
}

// Ended is closed at the end.
func (u *Underway) Ended() <-chan struct{} { return u.ended }

// Cancel asks it to end.
func (u *Underway) Cancel() { u.cancel() }

// Err is what it has returned, once it has ended.
func (u *Underway) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// Run is its state now.
func (u *Underway) Run() Run {
	if u.replay != nil {
		return runOf(u.replay.Replay())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	run := u.run
	switch {
	case run.State != deadletters.Running:
		run.Share = 100
	case run.Total == 0:
		run.Share = -1
	default:
		run.Share = min(run.Done*100/run.Total, 100)
	}
	return run
}

// runOf is a replay as a run.
func runOf(r deadletters.Replay) Run {
	run := Run{
		ID: r.ID, Operation: startReplay, VHost: r.VHost, Queue: r.Queue, User: r.User, State: r.State, Share: int(100 * r.Share()), Started: r.Started, Done: r.Scanned, Total: r.Total,
		Left: r.Skipped.String(), Result: &r,
	}
	if !r.Ended.IsZero() {
		run.Ended = &r.Ended
	}
	if r.Error != "" {
		run.Failure.Err = errors.New(r.Error)
	}
	return run
}

// underway reports whether a goroutine works on it. runs.mu is held.
func (u *Underway) underway() bool {
	if u.ended == nil {
		return false
	}
	select {
	case <-u.ended:
		return false
	default:
		return true
	}
}

// runs are the runs of a process, the oldest first.
type runs struct {
	access *Access
	dir    string // where replays are kept; "": in memory only
	wg     sync.WaitGroup
	mu     sync.Mutex
	list   []*Underway
	closed atomic.Bool
}

// progressKey is the key of a run in its context.
type progressKey struct{}

// report notes how much of a run is done, if the context is a run's.
func report(ctx context.Context, done, total int) {
	if u, is := ctx.Value(progressKey{}).(*Underway); is {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.run.Done, u.run.Total = done, total
	}
}

// Begin starts a run, which the request that started it need not wait for. do calls an operation, which checks what the actor may. Error:
// ErrTooManyRuns.
func (o *Access) Begin(a Actor, op Operation, at QueueName, do func(context.Context) (result any, err error)) (*Underway, error) {
	u := &Underway{run: Run{
		ID: deadletters.NewRunID(), Operation: op, VHost: at.VHost, Queue: at.Name, User: a.Name, State: deadletters.Running, Started: time.Now().UTC(),
	}}
	return u, o.runs.begin(u, do)
}

// begin starts a goroutine that does it. A replay that is stopped by the end of the process stays running in its file.
func (r *runs) begin(u *Underway, do func(context.Context) (result any, err error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	running, replays := 0, 0
	for _, other := range r.list {
		if !other.underway() {
			continue
		}
		if running++; other.replay != nil {
			replays++
		}
	}
	switch {
	case u.underway():
		return fmt.Errorf("%w: it is running", deadletters.ErrRunning)
	case u.replay != nil && replays == maxReplays:
		return fmt.Errorf("%w: %d replays are running; cancel one or wait", deadletters.ErrRunning, maxReplays)
	case r.closed.Load(), running == maxRuns:
		return ErrTooManyRuns
	case u.replay != nil:
		u.replay.Begun()
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), progressKey{}, u))
	u.cancel, u.ended = cancel, ended
	if !slices.Contains(r.list, u) {
		r.list = append(r.list, u)
	}
	r.wg.Go(func() {
		defer close(ended)
		defer cancel()
		result, err := do(ctx)
		if u.replay == nil || !r.closed.Load() {
			u.finish(result, err)
		}
		if u.replay != nil {
			r.ended(u)
		}
		r.forgetOldest()
	})
	return nil
}

func (u *Underway) finish(result any, err error) {
	if u.replay != nil {
		u.replay.Finish(err)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
	u.run.Result, u.run.Ended, u.run.State = result, new(time.Now().UTC()), deadletters.StateOf(err)
	if u.run.State != deadletters.Cancelled {
		u.run.Failure.Err = err
	}
}

// forgetOldest forgets the oldest runs that have ended, above maxRuns.
func (r *runs) forgetOldest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	above := len(r.list) - maxRuns
	r.list = slices.DeleteFunc(r.list, func(u *Underway) bool {
		run := u.Run()
		forget := above > 0 && run.State != deadletters.Running
		if forget {
			above--
		}
		if forget && u.replay != nil && r.dir != "" {
			if err := os.Remove(r.file(run.ID)); err != nil {
				r.access.log.Warn("cannot remove the file of an old replay", zap.Error(err))
			}
		}
		return forget
	})
}

// Close cancels the runs and waits for their ends; replays continue at the next start. No run begins later.
func (o *Access) Close() {
	o.runs.mu.Lock()
	o.runs.closed.Store(true)
	for _, u := range o.runs.list {
		if u.cancel != nil {
			u.cancel()
		}
	}
	o.runs.mu.Unlock()
	o.runs.wg.Wait()
}

// mayHandle is the rule for runs: the user who started one may see and cancel it, and so may an administrator. Only administrators may do so with
// a replay that a program started for no user.
func mayHandle(a *Actor, user string) bool {
	return a.Has(Administrator) || user != "" && user == a.Name
}

// own are the runs that the actor may see: those that run, and then the others, the newest first.
func (c *Call) own() (list []*Underway) {
	c.runs.mu.Lock()
	list = slices.Clone(c.runs.list)
	c.runs.mu.Unlock()
	list = slices.DeleteFunc(list, func(u *Underway) bool { return !mayHandle(&c.Actor, u.Run().User) })
	slices.SortStableFunc(list, func(a, b *Underway) int {
		x, y := a.Run(), b.Run()
		runs := func(r *Run) int { return map[bool]int{true: 0, false: 1}[r.State == deadletters.Running] }
		return cmp.Or(runs(&x)-runs(&y), y.Started.Compare(x.Started))
	})
	return list
}

// find returns a run that the actor may see. Error: ErrNotFound.
func (c *Call) find(id string) (*Underway, error) {
	for _, u := range c.own() {
		if u.Run().ID == id {
			return u, nil
		}
	}
	return nil, ErrNotFound
}

// cancel asks a run to end, and waits until it has, or until it has taken five seconds.
func (c *Call) cancel(ctx context.Context, u *Underway) {
	c.runs.mu.Lock()
	cancel, ended := u.cancel, u.ended
	c.runs.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel() // the operation itself records how it ended
	wait := time.NewTimer(cancelWait)
	defer wait.Stop()
	select {
	case <-ended:
	case <-wait.C:
	case <-ctx.Done():
	}
}

// RunName names a run.
type RunName struct {
	ID string `json:"run" form:"id" log:"run" eg:"20300102-150405-1f2e3d4c"`
}

// ListRuns lists the runs that the actor may see: those that run, and then the others, the newest first.
var ListRuns = Define(Op{
	Name: "list_runs", Noun: "run", Title: "List operations that may take long: those that run, and the last that have ended", Rule: Rule{Role: Management}, Watched: true, Quiet: true,
	Text: "Users see their own; administrators see all. A replay is a run, too.", Routes: []string{"GET /api/curfew/runs"}, Command: "runs list",
	Page: Page{On: "/runs", Title: "Runs", Tab: "/dead-letters", Live: true, Empty: "Nothing runs, and nothing has ended since the start."},
}, func(_ context.Context, c *Call, _ None) (list []Run, err error) {
	for _, u := range c.own() {
		list = append(list, u.Run())
	}
	return list, nil
})

// ShowRun returns one run. Error: ErrNotFound, also for one that the actor may not see.
var ShowRun = Define(Op{
	Name: "show_run", Noun: "run", Title: "Show the current state of one run", Rule: Rule{Role: Management}, Watched: true, Quiet: true, Routes: []string{"GET /api/curfew/runs/{run}"}, Command: "runs show <run>",
}, func(_ context.Context, c *Call, q RunName) (Run, error) {
	u, err := c.find(q.ID)
	if err != nil {
		return Run{}, err
	}
	return u.Run(), nil
})

// CancelRun asks a run to end, and returns it when it has, or when it has taken five seconds. It does not change one that has ended. What the run
// has done stays done; an import of definitions is done as a whole or not at all.
var CancelRun = Define(Op{
	Name: "cancel_run", Noun: "run", Title: "Stop a run; what it has done stays done, and an import of definitions changes everything or nothing", Rule: Rule{Role: Management},
	Routes: []string{"DELETE /api/curfew/runs/{run}"}, Command: "runs cancel <run>",
	Page: Page{On: "/runs/cancel", Title: "Cancel the run", Tab: "/dead-letters", Parent: "/runs", Up: "Runs", Rows: "list_runs", Link: "Cancel…", Danger: true, Button: "Cancel it", Done: "Run cancelled.",
		Then: "What it has done stays done. An import of definitions changes everything or nothing, and a replay can be resumed.",
		Only: func(row any) bool { return row.(Run).State == deadletters.Running }},
}, func(ctx context.Context, c *Call, q RunName) (Run, error) {
	u, err := c.find(q.ID)
	if err != nil {
		return Run{}, err
	}
	c.cancel(ctx, u)
	return c.about(u), nil
})

// about is a run that the call's record is about.
func (c *Call) about(u *Underway) Run {
	run := u.Run()
	c.At = QueueName{run.VHost, run.Queue}
	c.Log(zap.String("owner", run.User))
	return run
}

// Replay makes a replay and starts it. A dry run is complete when it returns; it moves nothing and is not kept. Errors: about the request
// (deadletters.ErrRequest), its user (deadletters.ErrOwner) or the queue (404), deadletters.ErrRunning, or the error that ended a dry run.
func (o *Access) Replay(ctx context.Context, r deadletters.Request) (deadletters.Replay, error) {
	job, err := deadletters.NewJob(o.Broker, r)
	if err != nil {
		return deadletters.Replay{}, err
	}
	if r.DryRun {
		err := job.Do(ctx, func() error { return nil })
		return job.Replay(), err
	}
	u := &Underway{replay: job}
	if err = o.runs.save(u); err != nil {
		return deadletters.Replay{}, err
	}
	if err = o.runs.begin(u, o.runs.replaying(u)); err != nil {
		return deadletters.Replay{}, errors.Join(err, os.RemoveAll(o.runs.file(job.Replay().ID)))
	}
	return job.Replay(), nil
}

// replaying carries a replay out.
func (r *runs) replaying(u *Underway) func(context.Context) (any, error) {
	last := time.Now()
	return func(ctx context.Context) (any, error) {
		err := u.replay.Do(ctx, func() error {
			if time.Since(last) < saveEvery {
				return nil
			}
			last = time.Now()
			return r.save(u)
		})
		if err == nil {
			err = r.access.Commit(ctx)
		}
		return nil, err
	}
}

// ended notes how a replay has ended.
func (r *runs) ended(u *Underway) {
	if err := r.save(u); err != nil {
		r.access.log.Error("the state of a replay is not saved; after a restart it may repeat messages it has examined, but moves nothing twice", zap.Error(err))
	}
	now := u.replay.Replay()
	r.access.log.Info("replay", zap.String("replay", now.ID), zap.String("state", string(now.State)), zap.String("vhost", now.VHost), zap.String("queue", now.Queue),
		zap.Int("replayed", now.Replayed), zap.Any("skipped", now.Skipped), zap.String("user", now.User), zap.String("error", now.Error))
}

// resume continues a replay that was cancelled or has failed. Errors: deadletters.ErrRunning, deadletters.ErrOwner.
func (r *runs) resume(u *Underway) (deadletters.Replay, error) {
	err := u.replay.MayResume()
	if err == nil {
		err = r.begin(u, r.replaying(u))
	}
	return u.replay.Replay(), err
}

func (r *runs) file(id string) string {
	if r.dir == "" {
		return ""
	}
	return filepath.Join(r.dir, id+".json")
}

// save replaces the replay's file as a whole: after a crash it is the old one or the new one.
func (r *runs) save(u *Underway) error {
	if r.dir == "" {
		return nil
	}
	replay := u.replay.Replay()
	text, err := json.Marshal(replay)
	if err == nil {
		err = writeSynced(r.file(replay.ID), text)
	}
	if err != nil {
		return fmt.Errorf("replay %s: %w", replay.ID, err)
	}
	return nil
}

func writeSynced(name string, text []byte) error {
	f, err := os.OpenFile(name+".next", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".next", name)
}

// OpenReplays reads the replays that a folder keeps, and continues those that were running when the process ended. From then on replays are kept
// there; before, they are in memory only. A file that cannot be read is left alone: it is only a record, no message depends on it.
func (o *Access) OpenReplays(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("replays: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("replays: %w", err)
	}
	o.runs.dir = dir
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		text, err := os.ReadFile(o.runs.file(id))
		var replay deadletters.Replay
		if err == nil {
			err = json.Unmarshal(text, &replay)
		}
		if err != nil || replay.ID != id {
			o.log.Warn("cannot read the file of a replay", zap.String("file", o.runs.file(id)), zap.Error(err))
			continue
		}
		u := &Underway{replay: deadletters.OldJob(o.Broker, replay)}
		o.runs.mu.Lock()
		o.runs.list = append(o.runs.list, u)
		o.runs.mu.Unlock()
		if replay.State == deadletters.Running {
			if err := o.runs.begin(u, o.runs.replaying(u)); err != nil {
				u.finish(nil, err)
			}
		}
	}
	return nil
}

// ReplayName names a replay.
type ReplayName struct {
	ID string `json:"replay" log:"replay" eg:"20300102-150405-1f2e3d4c"`
}

// replay returns a replay that the actor may see. Error: ErrNotFound.
func (c *Call) replay(id string) (*Underway, error) {
	u, err := c.find(id)
	if err == nil && u.replay == nil {
		return nil, ErrNotFound
	}
	return u, err
}

// replayOp is an operation on one replay, which do does.
func replayOp(name Operation, title, route, command string, quiet bool, do func(context.Context, *Call, *Underway) (deadletters.Replay, error)) Typed[ReplayName, deadletters.Replay] {
	return Define(Op{
		Name: name, Noun: "replay", Title: title, Rule: Rule{Role: Management}, Quiet: quiet, Lists: "curfew dlq replays", Routes: []string{route}, Command: command,
	}, func(ctx context.Context, c *Call, q ReplayName) (deadletters.Replay, error) {
		u, err := c.replay(q.ID)
		if err != nil {
			return deadletters.Replay{}, err
		}
		c.about(u)
		return do(ctx, c, u)
	})
}

// The operations on replays. Of one that the actor may not see the error is ErrNotFound. A cancel does not change a replay that has ended. One that was cancelled
// or has failed can be resumed, with the rights that its owner has now; errors: deadletters.ErrRunning and deadletters.ErrOwner.
var (
	ListReplays = Define(Op{
		Name: "list_replays", Noun: "replay", Title: "List replays: those that run, and the last that ended", Rule: Rule{Role: Management}, Watched: true, Quiet: true,
		Text: "Users see their own; administrators see all.", Routes: []string{"GET /api/curfew/replays"}, Command: "dlq replays", Alias: "runs",
	}, func(_ context.Context, c *Call, _ None) (list []deadletters.Replay, err error) {
		for _, u := range c.own() {
			if u.replay != nil {
				list = append(list, u.replay.Replay())
			}
		}
		return list, nil
	})
	ShowReplay = replayOp("see_replay", "The current state of one replay", "GET /api/curfew/replays/{replay}", "", true,
		func(_ context.Context, _ *Call, u *Underway) (deadletters.Replay, error) {
			return u.replay.Replay(), nil
		})
	CancelReplay = replayOp("cancel_replay", "Stop a replay; messages that it has moved stay moved", "DELETE /api/curfew/replays/{replay}", "dlq cancel <replay>", false,
		func(ctx context.Context, c *Call, u *Underway) (deadletters.Replay, error) {
			c.cancel(ctx, u)
			return u.replay.Replay(), nil
		})
	ResumeReplay = replayOp("resume_replay", "Continue a replay that was cancelled or failed", "POST /api/curfew/replays/{replay}/resume", "", false,
		func(_ context.Context, c *Call, u *Underway) (deadletters.Replay, error) { return c.runs.resume(u) })
)
