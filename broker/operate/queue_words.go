package operate

import (
	"fmt"

	"curfew/broker/policy"
)

// QueueWords are what the settings of a queue come to, and what sets each: on its page, in the API and on the command line.
type QueueWords struct {
	TimeToLive  string `json:"time_to_live"`
	DeadLetters string `json:"dead_letters"` // where they go
	Purpose     string `json:"purpose"`
	Objective   string `json:"objective,omitempty"` // and how it is missed
	TimeInQueue string `json:"time_in_queue"`
}

// InWords says what the settings of a queue come to.
func (d *QueueDetail) InWords() QueueWords {
	given := policy.Given{Queue: d.Name, Args: d.Args, User: d.Policy, Operator: d.OperatorPolicy, Effective: d.Effective}
	w := QueueWords{
		TimeToLive: given.TimeToLive(), DeadLetters: given.DeadLetters(d.ExchangeMissing), Purpose: d.Purpose.String() + " (inferred)", Objective: d.Wait.Objective.String(),
		TimeInQueue: "nothing was consumed in the last minutes",
	}
	if said, by := given.Set("curfew-purpose"); said != nil {
		w.Purpose = fmt.Sprintf("%s (%s)", d.Purpose, by)
	}
	if _, measured := d.Wait.Objective.Allowed(); measured {
		w.Objective += fmt.Sprintf("; %.1f %% missed it in the last minutes, %.1f times what it allows", 100*d.Wait.Missed, d.Wait.Burn)
	}
	if d.Wait.P50 > 0 {
		w.TimeInQueue = "half of what was consumed in the last minutes up to " + policy.Span(d.Wait.P50) + ", 99 in 100 up to " + policy.Span(d.Wait.P99)
	}
	return w
}
