package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
)

// ErrTooManyRuns is returned for a run that would be one too many.
var ErrTooManyRuns = errors.New("too many long operations are running; try again")

// Underway is a run that its starter may wait for or cancel.
type Underway struct {
	Cancel context.CancelFunc // asks it to end; nil: it has not run in this process
	Ended  <-chan struct{}    // nil as well then; closed at the end
	replay *deadletters.Job   // nil: it is none

	mu  sync.Mutex
	run Run
	err error
}

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
	if u.Ended == nil {
		return false
	}
	select {
	case <-u.Ended:
		return false
	default:
		return true
	}
}

// runs are the runs of a process, the oldest first.
type runs struct {
	access *Operations
	dir    string // where replays are kept; "": in memory only
	wg     sync.WaitGroup
	mu     sync.Mutex
	list   []*Underway
	closed atomic.Bool
}

// progressKey is the key of a run in its context.
type progressKey struct{}

// Note returns what notes how much of a run is done, if the context is a run's.
func Note(ctx context.Context) func(done, total int) {
	return func(done, total int) {
		if u, is := ctx.Value(progressKey{}).(*Underway); is {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.run.Done, u.run.Total = done, total
		}
	}
}

// Begin starts a run, which the request that started it need not wait for. do calls an operation, which checks what the actor may. Error:
// ErrTooManyRuns.
func (o *Operations) Begin(a Actor, op Operation, at QueueName, do func(context.Context) (result any, err error)) (*Underway, error) {
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
	u.Cancel, u.Ended = cancel, ended
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
	var files []string
	r.mu.Lock()
	above := len(r.list) - maxRuns
	r.list = slices.DeleteFunc(r.list, func(u *Underway) bool {
		run := u.Run()
		forget := above > 0 && run.State != deadletters.Running
		if forget {
			above--
		}
		if forget && u.replay != nil && r.dir != "" {
			files = append(files, r.file(run.ID))
		}
		return forget
	})
	r.mu.Unlock()
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			r.access.log.Warn("cannot remove the file of an old replay", zap.Error(err))
		}
	}
}

// Close cancels the runs and waits for their ends; replays continue at the next start. No run begins later.
func (o *Operations) Close() {
	o.runs.mu.Lock()
	o.runs.closed.Store(true)
	for _, u := range o.runs.list {
		if u.Cancel != nil {
			u.Cancel()
		}
	}
	o.runs.mu.Unlock()
	o.runs.wg.Wait()
}

// own are the runs that the actor may see and cancel: all for an administrator, for others those that they started, and none that a program
// started for no user. Those that run come first, then the others, the newest first.
func (c *Call) own() (list []*Underway) {
	c.runs.mu.Lock()
	list = slices.Clone(c.runs.list)
	c.runs.mu.Unlock()
	list = slices.DeleteFunc(list, func(u *Underway) bool {
		return !c.Actor.Has(Administrator) && (u.Run().User == "" || u.Run().User != c.Actor.Name)
	})
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
	cancel, ended := u.Cancel, u.Ended
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
