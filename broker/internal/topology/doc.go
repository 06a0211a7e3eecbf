// Package topology is what is declared in a virtual host: exchanges, queues and bindings, the
// policies that govern them, and where a message goes.
//
//	VHost ─┬─ exchangeTable: exchanges, bindings from them ─┐
//	       ├─ queues ──────────────────────────────────────┼─► Routes.Find ─► targets
//	       ├─ policyTable: the policies, what they govern ──┘
//	       └─ guard: the lock, and what is in the definitions on disk
//	Registry: what the virtual hosts of a broker have in common
//
// Routing is here and not in a package of its own: it reads the exchanges and queues under their
// lock, and what a publisher remembers of it (Routes) is good until they change. How one
// exchange matches keys and headers is package exchange, one queue at work is package delivery,
// what a policy says is package policy.
//
// # What it guarantees
//
// Bindings aside, nothing durable takes effect before it is saved: a queue or exchange becomes visible, and a policy
// is in force, once its definition is on disk. A binding holds at once and goes
// again if it cannot be saved. What is deleted is gone at once.
//
// A declare and a change of policies that meet come out as if one had come before the other,
// though patterns are matched with no lock held (governed.go).
//
// The number and the memory of what is declared are bounded (Ceilings, Memory). What is restored is
// counted and not refused.
//
// # Locks
//
// guard.importing ─► policyTable.governing ─► guard.mu ─► delivery.Queue's ─► leaves: Registry.mu, the
// saver's, the timers'. The first two are held while the disk is waited for; mu is not (saveLocked).
// Functions whose names end in Locked are called with mu held, if only for reading where they say so.
//
// # Calls upwards
//
// Options.Judge, when a queue or an exchange may have been idle for its period: messages may be delayed
// that would go there, which only the broker knows. No lock is held.
package topology
