package operate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"curfew/broker/deadletters"
)

// Run is an operation that may take long: running, or ended. A replay of dead letters is one too, and continues after a restart; others end with
// the process.
type Run struct {
	ID        string            `json:"id"`
	Operation Operation         `json:"operation"`
	VHost     string            `json:"vhost"`
	Queue     string            `json:"queue"`
	User      string            `json:"user"`  // who started it
	State     deadletters.State `json:"state"` // running, done, cancelled or failed
	Started   time.Time         `json:"started"`
	Ended     time.Time         `json:"ended,omitzero"`
	Done      int               `json:"done"`             // how much is done: messages examined or deleted, definitions checked
	Total     int               `json:"total"`            // of how much; 0: not known
	Result    any               `json:"result,omitempty"` // what it has returned
	Err       error             `json:"-"`                // why it failed
}

const (
	// maxRuns is how many may run at a time, and how many that have ended are kept.
	maxRuns = 100
	// cancelWait is how long CancelRun waits for the end: a run may be waiting for a lock.
	cancelWait = 5 * time.Second
)

// ErrTooManyRuns is returned for a run that would be one too many.
var ErrTooManyRuns = errors.New("too many long operations are running; try again")

// Underway is a run that its starter may wait for or cancel.
type Underway struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end

	mu  sync.Mutex
	run Run
}

// Ended is closed at the end.
func (u *Underway) Ended() <-chan struct{} { return u.ended }

// Cancel asks it to end.
func (u *Underway) Cancel() { u.cancel() }

// Run is its state now.
func (u *Underway) Run() Run {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.run
}

// runs are the runs of a process, the oldest first.
type runs struct {
	wg   sync.WaitGroup
	mu   sync.Mutex
	list []*Underway
	shut bool
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
	o.runs.mu.Lock()
	defer o.runs.mu.Unlock()
	running := 0
	for _, u := range o.runs.list {
		if u.Run().State == deadletters.Running {
			running++
		}
	}
	if o.runs.shut || running == maxRuns {
		return nil, ErrTooManyRuns
	}
	u := &Underway{ended: make(chan struct{}), run: Run{
		ID: deadletters.NewRunID(), Operation: op, VHost: at.VHost, Queue: at.Name, User: a.Name, State: deadletters.Running, Started: time.Now().UTC(),
	}}
	var ctx context.Context
	ctx, u.cancel = context.WithCancel(context.WithValue(context.Background(), progressKey{}, u))
	o.runs.list = append(o.runs.list, u)
	o.runs.wg.Go(func() {
		defer close(u.ended)
		defer u.cancel()
		result, err := do(ctx)
		u.finish(result, err)
		o.runs.forgetOldest()
	})
	return u, nil
}

func (u *Underway) finish(result any, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.run.Result, u.run.Err, u.run.Ended = result, err, time.Now().UTC()
	switch {
	case err == nil:
		u.run.State = deadletters.Done
	case errors.Is(err, context.Canceled):
		u.run.State = deadletters.Cancelled
	default:
		u.run.State = deadletters.Failed
	}
}

// forgetOldest forgets the oldest runs that have ended, above maxRuns.
func (r *runs) forgetOldest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	above := len(r.list) - maxRuns
	r.list = slices.DeleteFunc(r.list, func(u *Underway) bool {
		forget := above > 0 && u.Run().State != deadletters.Running
		if forget {
			above--
		}
		return forget
	})
}

// Close cancels the runs and waits for their ends; replays are not among them. No run begins later.
func (o *Access) Close() {
	o.runs.mu.Lock()
	o.runs.shut = true
	for _, u := range o.runs.list {
		u.cancel()
	}
	o.runs.mu.Unlock()
	o.runs.wg.Wait()
}

// replayRun is a replay as a run.
func replayRun(r *deadletters.Replay) Run {
	run := Run{
		ID: r.ID, Operation: StartReplay, VHost: r.VHost, Queue: r.Queue, User: r.User, State: r.State, Started: r.Started, Ended: r.Ended, Done: r.Scanned, Total: r.Total, Result: r,
	}
	if r.Error != "" {
		run.Err = errors.New(r.Error)
	}
	return run
}

// mayHandle is the rule for runs: the user who started one may see and cancel it, and so may an administrator. Only administrators may do so with
// a replay that a program started for no user.
func mayHandle(a *Actor, user string) bool {
	return a.Has(Administrator) || user != "" && user == a.Name
}

// ListRuns lists the runs that the actor may see, the oldest first.
func (o *Access) ListRuns(_ context.Context, a Actor) ([]Run, error) {
	if err := o.permit(&a, ListReplays, ""); err != nil {
		return nil, err
	}
	list := []Run{}
	o.runs.mu.Lock()
	for _, u := range o.runs.list {
		list = append(list, u.Run())
	}
	o.runs.mu.Unlock()
	if o.Replays != nil {
		for _, r := range o.Replays.List() {
			list = append(list, replayRun(&r))
		}
	}
	slices.SortStableFunc(list, func(a, b Run) int { return a.Started.Compare(b.Started) })
	return slices.DeleteFunc(list, func(r Run) bool { return !mayHandle(&a, r.User) }), nil
}

// FindRun returns one run. Error: ErrNotFound, also for one that the actor may not see.
func (o *Access) FindRun(ctx context.Context, a Actor, id string) (Run, error) {
	list, err := o.ListRuns(ctx, a)
	if err != nil {
		return Run{}, err
	}
	if i := slices.IndexFunc(list, func(r Run) bool { return r.ID == id }); i >= 0 {
		return list[i], nil
	}
	return Run{}, ErrNotFound
}

// CancelRun asks a run to end, and returns it when it has, or when it has taken five seconds. It does not change one that has ended. What the run
// has done stays done; an import of definitions is done as a whole or not at all.
func (o *Operations) CancelRun(ctx context.Context, a Actor, id string) (Run, error) {
	run, err := o.FindRun(ctx, a, id)
	if err != nil {
		return run, err
	}
	if run.Operation == StartReplay {
		r, err := o.CancelReplay(ctx, a, id)
		return replayRun(&r), err
	}
	o.runs.mu.Lock()
	i := slices.IndexFunc(o.runs.list, func(u *Underway) bool { return u.Run().ID == id })
	var u *Underway
	if i >= 0 {
		u = o.runs.list[i]
	}
	o.runs.mu.Unlock()
	if u == nil {
		return run, nil // it has ended, and was forgotten
	}
	u.cancel() // the operation itself records how it ended
	wait := time.NewTimer(cancelWait)
	defer wait.Stop()
	select {
	case <-u.ended:
	case <-wait.C:
	case <-ctx.Done():
	}
	return u.Run(), nil
}
