// Package policy holds the rules of policies: what a policy may say, which queues and
// exchanges it applies to, and what holds where several apply to the same one
// (RabbitMQ: Policies, Operator Policies).
//
//	declared arguments ─┐
//	policy ─────────────┼─► what holds
//	operator policy ────┘
//
// Of the policies that match a queue or an exchange, only the one with the highest
// priority counts; the same goes for operator policies. Where both kinds set a limit, the
// lower one holds; otherwise the operator's word does (merge). The broker then combines the
// result with what was declared: of two limits the lower holds, and of anything else what
// was declared.
//
// Matching has a budget of steps, for a name and for a virtual host: Rule refuses what is
// beyond it, RuleSaved leaves it out of force. rule.go explains why steps, and how many.
//
// The texts of errors are RabbitMQ's. Keys of later versions that change what Curfew does
// are taken too. Keys that only tell a cluster where to put a queue are taken and
// remembered where RabbitMQ takes them.
//
// Pure, and what it returns is not changed afterwards: safe for concurrent use.
package policy
