// Package topology is what is declared in a virtual host: exchanges, queues and bindings, the
// policies that govern them, and where a message goes.
//
//	VHost ─┬─ Exchanges, and bindings from them ───────────┐
//	       ├─ Queues ──────────────────────────────────────┼─► Routes.Find ─► targets
//	       ├─ Policies, and what they govern ──────────────┘
//	       └─ guard: the lock, and the changes of the definitions on disk
//	Registry: what the virtual hosts of a broker have in common
//
// Routing is here and not in a package of its own: it reads the exchanges and queues under their
// lock, and a publisher's remembered routes (Routes) are valid until those change. Package exchange
// matches keys and headers for one exchange, package delivery runs one queue, and package policy
// checks and matches policies.
//
// # What it guarantees
//
// Except for bindings, nothing durable takes effect before it is saved: a queue or exchange becomes
// visible, and a policy is in force, once its definition is on disk. A binding takes effect at once
// and is removed again if it cannot be saved. Deletions take effect at once.
//
// A declare and a concurrent change of policies have the same result as one after the other, though
// patterns are matched with no lock held (policies.go).
//
// No step holds mu for longer than about half a millisecond, however many exchanges and bindings there are. What takes
// longer pauses, and others may change the topology meanwhile: routing (route.go), lists of bindings (info.go), the
// check whether an exchange is idle. What is deleted leads nowhere at once, and its bindings are removed in steps
// (sweep.go). Deleting a whole virtual host, which only an administrator may, is one step.
//
// The number and the memory of what is declared are bounded (Ceilings, Memory). What is restored is
// counted and never refused.
//
// # Locks
//
// guard.importing ─► Policies.governing ─► guard.mu ─► delivery.Queue's ─► leaves: Registry.mu,
// the timers'. The first two are held while waiting for the disk; mu is not (saveLocked).
// Functions whose names end in Locked are called with mu held. Holding it for reading is enough where
// they say so.
//
// # Calls upwards
//
// Options.Judge, when a queue or an exchange may have been idle for its period: only the broker knows
// whether delayed messages would go there. No lock is held.
package topology
