package letters

import (
	"net/http"

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
