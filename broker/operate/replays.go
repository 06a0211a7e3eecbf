package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
)

// saveEvery is how often a running replay is saved.
const saveEvery = time.Second

// Replay makes a replay and starts it. A dry run is complete when it returns; it moves nothing and is not kept. Errors: about the request
// (deadletters.ErrRequest), its user (deadletters.ErrOwner) or the queue (404), deadletters.ErrRunning, or the error that ended a dry run.
func (o *Operations) Replay(ctx context.Context, r deadletters.Request) (deadletters.Replay, error) {
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
	err := deadline.ReplaceFile(r.file(replay.ID), func(to io.Writer) error { return json.NewEncoder(to).Encode(replay) })
	if err != nil {
		return fmt.Errorf("replay %s: %w", replay.ID, err)
	}
	return nil
}

// OpenReplays reads the replays that a folder keeps, and continues those that were running when the process ended. From then on replays are kept
// there; before, they are in memory only. A file that cannot be read is left alone: it is only a record, no message depends on it.
func (o *Operations) OpenReplays(dir string) error {
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
