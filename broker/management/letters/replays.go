package letters

import (
	"net/http"
	"time"

	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
)

func startReplay(r *rest.Request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	replay, err := r.Operations.StartReplay(r.Context(), r.Actor, deadletters.Request{
		VHost: letters.Queue.VHost, Queue: letters.Queue.Name, Filter: letters.Filter, Options: l.Options, DryRun: l.DryRun, Position: l.Position,
	})
	if err != nil || l.DryRun {
		return r.Result(replay, err)
	}
	r.W.Header().Set("Location", rest.RunsPath+"/"+replay.ID)
	rest.AnswerJSON(r.W, http.StatusAccepted, replay)
	return nil
}

func listReplays(r *rest.Request) error {
	return r.Result(r.Operations.ListReplays(r.Context(), r.Actor))
}

func getReplay(r *rest.Request) error {
	return r.Result(r.Operations.Replay(r.Context(), r.Actor, r.Param("replay")))
}

func cancelReplay(r *rest.Request) error {
	return r.Result(r.Operations.CancelReplay(r.Context(), r.Actor, r.Param("replay")))
}

func resumeReplay(r *rest.Request) error {
	return r.Result(r.Operations.ResumeReplay(r.Context(), r.Actor, r.Param("replay")))
}

// run is an operation that may take long: the fields of rest.RunObject.
type run struct {
	ID        string       `json:"id"`
	Operation string       `json:"operation"` // start_replay, purge_dead_letters, purge_queue, import_dead_letters or import_definitions
	VHost     string       `json:"vhost"`
	Queue     string       `json:"queue"`
	User      string       `json:"user"`  // who started it
	State     string       `json:"state"` // running, done, cancelled or failed
	Started   time.Time    `json:"started"`
	Ended     *time.Time   `json:"ended"`             // null: it is running
	Done      int          `json:"done"`              // how much is done
	Total     int          `json:"total"`             // of how much; 0: not known
	Result    *rest.Object `json:"result"`            // what the request would have been answered; of a replay, the replay
	Failure   *runFailure  `json:"failure,omitempty"` // why it failed; none: it has not
}

// runFailure is the error with which the request would have been answered.
type runFailure struct {
	Status   int                  `json:"status"`
	Error    string               `json:"error"`
	Reason   string               `json:"reason"`
	Matched  int                  `json:"matched,omitempty"`  // of a purge: how many messages match
	Position deadletters.Position `json:"position,omitempty"` // of a purge: how far they were counted
	Imported int                  `json:"imported,omitempty"` // of an import of dead letters: how many messages it published before
}

func listRuns(r *rest.Request) error {
	list, err := r.Operations.ListRuns(r.Context(), r.Actor)
	objects := make([]rest.Object, len(list))
	for i := range list {
		objects[i] = rest.RunObject(&list[i])
	}
	return r.Result(objects, err)
}

func getRun(r *rest.Request) error {
	run, err := r.Operations.FindRun(r.Context(), r.Actor, r.Param("run"))
	return r.Result(rest.RunObject(&run), err)
}

func cancelRun(r *rest.Request) error {
	run, err := r.Operations.CancelRun(r.Context(), r.Actor, r.Param("run"))
	return r.Result(rest.RunObject(&run), err)
}
