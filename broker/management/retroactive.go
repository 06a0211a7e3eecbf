package management

import (
	"curfew/broker"
	"curfew/broker/policy"
)

// putPolicyRetroactively sets a policy whose time to live counts for what is queued
// already too; with dry_run=true it only says for how many messages that would bring
// an earlier deadline. RabbitMQ has nothing like it.
func putPolicyRetroactively(k policy.Kind) func(*request) error {
	return func(q *request) error {
		vh, p, err := q.newPolicy(k)
		if err != nil {
			return err
		}
		var done broker.Retroaction
		if q.flag("dry_run") {
			done, err = vh.TryPolicyRetroactively(k, p)
		} else {
			_, done, err = vh.SetPolicyRetroactively(k, p)
		}
		if err != nil {
			return err
		}
		return q.answer(done)
	}
}
