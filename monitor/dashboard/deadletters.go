package dashboard

import (
	"context"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// DeadLetters is what the dashboard shows of dead letters, and how it replays them. Safe
// for concurrent use. Errors: ErrForbidden, ErrGone, or one whose text says what is wrong
// with the request.
type DeadLetters interface {
	// Holders lists the queues that dead letters go to or stand in, the fullest first.
	Holders() []Holder
	// Groups sorts those of a queue that f fits by what they died of, the largest first.
	Groups(ctx context.Context, u User, vhost, queue string, f LetterFilter) ([]Group, error)
	// Search looks behind a message (0: from the head); next is where to go on, 0: that
	// was all.
	Search(ctx context.Context, u User, vhost, queue string, f LetterFilter, after uint64, count, bodyBytes int) (list []Letter, next uint64, err error)
	// Purge deletes those that f fits if they are as many as confirmed; else it only says
	// how many they are.
	Purge(ctx context.Context, u User, vhost, queue string, f LetterFilter, confirmed int) (n int, done bool, err error)
	// Export writes them as lines of JSON; Import publishes such lines into the queue, and
	// says how many it has, also when it fails.
	Export(ctx context.Context, u User, vhost, queue string, f LetterFilter, w io.Writer) error
	Import(ctx context.Context, u User, vhost, queue string, r io.Reader) (n int, err error)
	// Draft is what a replay would publish of one dead letter; Resend publishes what
	// became of it and takes it out of its queue, as one. It stays if left says why
	// (Replay.Left), and for an error.
	Draft(u User, vhost, queue string, seq uint64) (Draft, error)
	Resend(ctx context.Context, u User, vhost, queue string, seq uint64, d Draft) (left string, err error)
	// Replay begins a replay with the user's rights; one that is dry is over, and moved
	// nothing.
	Replay(ctx context.Context, u User, o ReplayOrder) (Replay, error)
	// Replays lists those that the user may see and cancel, the latest first: their own, and
	// to an administrator all.
	Replays(u User) []Replay
	// CancelReplay ends one that is under way. Error: ErrGone, also for one that the user
	// may not see.
	CancelReplay(u User, id string) error
}

// Holder is a queue with dead letters.
type Holder struct {
	VHost, Queue   string
	Ready, Unacked int
	Bytes          int64
	From           []string // the queues whose dead letters go there
	Parked         bool     // those end there that no queue is bound for
}

// Group is dead letters with the same last death.
type Group struct {
	Reason, Queue, Exchange string
	Messages                int
	Bytes                   int64
	Oldest, Newest          time.Time // zero: not known
}

// LetterFilter says which dead letters are wanted; empty fields want all.
type LetterFilter struct{ Reason, Queue, Exchange, MessageID, Body string }

// Letter is a dead letter.
type Letter struct {
	Message
	Deaths  []Death // the latest first
	Replays int64
}

// Death is how often a message died in a queue for a reason.
type Death struct {
	Queue, Reason, Exchange string
	Count                   int64
	Time                    time.Time // zero: not known
}

// ReplayOrder is what a replay is to do.
type ReplayOrder struct {
	VHost, Queue string
	Filter       LetterFilter
	TTL          string // fresh, remaining or none
	To           string // origin or queue
	KeepDeaths   bool
	Limit        int
	Rate         float64 // messages a second; 0: no limit
	DryRun       bool
}

// Replay is a replay as it stands.
type Replay struct {
	ID           string
	VHost, Queue string
	User         string
	State        string // running, done, cancelled or failed
	Error        string
	Started      time.Time
	Ended        time.Time // zero: it is under way
	Total        int       // messages in the queue when it began
	Scanned      int
	Matched      int
	Replayed     int
	Left         []Pair // why messages stayed, and how many
}

// Share is how much of it is done, of 100.
func (r Replay) Share() int {
	if r.Total == 0 || r.State == "done" {
		return 100
	}
	return min(r.Scanned*100/r.Total, 100)
}

// letterList is what the page of dead letters shows.
type letterList struct {
	Holders []Holder
	Total   int
	Replays []Replay
	Now     int64
}

const maxReplays = 10 // that the page lists

func (d *Dashboard) deadLetters(_ *http.Request, v visitor) (view, error) {
	l := &letterList{Holders: d.DeadLetters.Holders(), Replays: d.DeadLetters.Replays(v.User), Now: time.Now().UnixMilli()}
	for _, h := range l.Holders {
		l.Total += h.Ready + h.Unacked
	}
	l.Replays = l.Replays[:min(len(l.Replays), maxReplays)]
	return l, nil
}

// cancelReplay takes no administrator: who began a replay may end it.
func (d *Dashboard) cancelReplay(w http.ResponseWriter, r *http.Request, v visitor) {
	id := r.PostFormValue("id")
	if !d.fromHere(w, r, v, r.PostFormValue("token")) {
		return
	}
	if err := d.DeadLetters.CancelReplay(v.User, id); err != nil {
		d.refuse(w, r, err)
		return
	}
	d.log.Info("replay cancelled", zap.String("user", v.Name), zap.String("id", id))
	http.Redirect(w, r, "/dead-letters", http.StatusSeeOther)
}
