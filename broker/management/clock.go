package management

import (
	"fmt"
	"time"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

var clockRoutes = []route{
	{method: get, path: "/api/curfew/clock", op: operate.ReadClock, handle: func(r *request) error { return r.answerClock(r.Operations.Clock(r.Context(), r.Actor)) }, doc: rest.Doc{
		ID: "getClock", Summary: "What the clock of deadlines shows", Answer: clockTime{},
		Text: "With a manual clock, everything that is due has happened when the answer comes.",
	}},
	{method: post, path: "/api/curfew/clock", op: operate.MoveClock, handle: moveClock, doc: rest.Doc{
		ID: "moveClock", Summary: "Move a manual clock", Body: clockMove{}, Answer: clockTime{},
		Text: "The body has one of `advance` and `next`. Everything that is due until then has happened, in order of time, when the answer comes. 409: the clock is not manual.",
	}},
}

// clockTime is what the clock shows.
type clockTime struct {
	Manual bool  `json:"manual"` // it stands until it is moved
	Now    int64 `json:"now"`    // Unix ms
	Next   int64 `json:"next"`   // with a manual clock: when something is due next, Unix ms; 0: nothing is
}

// clockMove says how far the clock goes.
type clockMove struct {
	Advance string `json:"advance,omitempty"` // by this, such as 90s, 1h30m or 0s
	Next    bool   `json:"next,omitempty"`    // to the next instant at which something happens
}

func moveClock(r *request) error {
	var asked clockMove
	if err := r.ReadJSON(&asked); err != nil {
		return err
	}
	if asked.Next == (asked.Advance != "") {
		return rest.Bad(`want {"advance": "1h"} or {"next": true}`)
	}
	if asked.Next {
		return r.answerClock(r.Operations.NextClock(r.Context(), r.Actor))
	}
	d, err := time.ParseDuration(asked.Advance)
	if err != nil || d < 0 {
		return rest.Bad(fmt.Sprintf("advance: %q is invalid: want a duration such as 90s, 1h30m or 0s", asked.Advance))
	}
	return r.answerClock(r.Operations.AdvanceClock(r.Context(), r.Actor, d))
}

func (r *request) answerClock(t operate.ClockTime, err error) error {
	return r.Result(clockTime{t.Manual, t.NowMillis, t.NextMillis}, err)
}
