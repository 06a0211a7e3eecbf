// Package policy holds the rules of policies: what one may say, which queues and
// exchanges it speaks of, and what holds where several speak of the same thing
// (RabbitMQ: Policies, Operator Policies).
//
//	declared arguments ─┐
//	policy ─────────────┼─► what holds
//	operator policy ────┘
//
// Of the policies that match a queue or exchange only the one with the highest
// priority counts, and so of the operator policies. Where both set a limit the
// lower holds, else the operator's word (Merge). What was declared is then
// combined with the result by the broker: the lower of two limits, and of
// anything else what was declared.
//
// Matching has a budget in steps, for a name and for a virtual host: Rule refuses what
// is beyond it, RuleSaved leaves it out of force. Why steps, and how many, rule.go says.
//
// Texts of errors are RabbitMQ's. Keys of later versions that change what Curfew
// does are taken too; keys that only tell a cluster where to put a queue are
// taken and remembered where RabbitMQ takes them.
//
// Pure, and what it returns is not changed afterwards: safe for concurrent use.
package policy
