package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"curfew/broker/operate"
)

// RunsPath is the path of the operations that may take long.
const RunsPath = "/api/curfew/runs"

// Run does an operation that may take long, as a run, and answers when it has ended: with its error, or by answer. There is no limit of time
// for that; if the client goes away, the run is cancelled. A client that prefers not to wait (RFC 7240: Prefer: respond-async, with the seconds
// that it would wait as wait=N) gets 202 and the run, which then goes on without it.
func (r *Request) Run(op operate.Operation, at operate.QueueName, do func(context.Context) (any, error), answer func(result any) error) error {
	run, err := r.Operations.Begin(r.Actor, op, at, do)
	if err != nil {
		return err
	}
	async, wait := r.preference()
	ended, tired := run.Ended, (<-chan time.Time)(nil)
	if async {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		tired = timer.C
	}
	if async && wait == 0 {
		ended = nil // the answer is 202 however soon it ends
	}
	c := http.NewResponseController(r.W)
	_ = c.SetReadDeadline(time.Time{}) // one that comes while the request is answered ends its context
	_ = c.SetWriteDeadline(time.Time{})
	defer func() { _ = c.SetWriteDeadline(time.Now().Add(answerTime)) }()
	if r.uploaded != nil { // a client that is sending a file cannot read an answer
		select {
		case <-r.uploaded:
		case <-run.Ended:
		case <-r.HTTP.Context().Done():
		}
	}
	select {
	case <-ended:
	case <-r.HTTP.Context().Done():
		run.Cancel()
		<-run.Ended
	case <-tired:
		r.leave(run)
		now := run.Run()
		r.W.Header().Set("Location", RunsPath+"/"+now.ID)
		r.W.Header().Set("Preference-Applied", "respond-async")
		AnswerJSON(r.W, http.StatusAccepted, object(operate.ListRuns.Op, now))
		return nil
	}
	now := run.Run()
	if run.Err() != nil {
		return run.Err()
	}
	return answer(now.Result)
}

// Upload returns the body for a run that reads it, given the run's context. Whoever prefers not to wait for the run waits until the body has
// been read.
func (r *Request) Upload() func(context.Context) io.Reader {
	read := make(chan struct{})
	r.uploaded = read
	return func(ctx context.Context) io.Reader {
		return &upload{ctx, r.HTTP.Body, http.NewResponseController(r.W), sync.OnceFunc(func() { close(read) })}
	}
}

// upload is a body that tells when it ends. It ends with an error when the run is cancelled, or when nothing has come for uploadSilence.
type upload struct {
	run   context.Context
	body  io.Reader
	limit *http.ResponseController
	ended func()
}

// Read implements io.Reader.
func (u *upload) Read(b []byte) (int, error) {
	_ = u.limit.SetReadDeadline(time.Now().Add(uploadSilence))
	stop := context.AfterFunc(u.run, func() { _ = u.limit.SetReadDeadline(time.Unix(1, 0)) })
	n, err := u.body.Read(b)
	if stop() {
		_ = u.limit.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return n, nil
	case u.run.Err() != nil:
		err = u.run.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = Bad(fmt.Sprintf("nothing more of the body came for %v", uploadSilence))
	}
	u.ended()
	return n, err
}

const (
	// uploadSilence is how long the client of a run may pause while it sends the body.
	uploadSilence = 5 * time.Minute
	// answerTime is how long the client of a run has to read the answer.
	answerTime = time.Minute
	// maxWait is the longest wait that a client may ask for.
	maxWait = 10 * time.Minute
)

// preference reads the header Prefer: whether the client wants 202 for a run, and how long it waits for the end before that.
func (r *Request) preference() (async bool, wait time.Duration) {
	for part := range strings.SplitSeq(strings.Join(r.HTTP.Header.Values("Prefer"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			async = true
		case "wait":
			if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil {
				wait = min(time.Duration(n)*time.Second, maxWait)
			}
		}
	}
	return async, wait
}

// leave keeps what the request holds of the budget until the run has ended.
func (r *Request) leave(run *operate.Underway) {
	r.left.Store(run)
	go func() {
		<-run.Ended
		r.release()
	}()
}

// release gives back what the request holds of the budget.
func (r *Request) release() {
	r.endLong()
	r.Account.Close()
}
