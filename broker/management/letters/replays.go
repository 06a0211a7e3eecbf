package letters

import (
	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
)

func startReplay(r *rest.Request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	return r.Result(r.Operations.StartReplay(r.Context(), r.Actor, deadletters.Request{
		VHost: letters.Queue.VHost, Queue: letters.Queue.Name, Filter: l.Filter, Options: l.Options, DryRun: l.DryRun, Position: l.Position,
	}))
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
