// Package dashboard is Curfew's web interface: the deadlines ahead, the messages that
// expired, the queues, the dead letters, incidents and the audit.
//
//	request ─► headers ─► same site? ─► session or Basic ─► gather a view ─► draw it
//	                                                             ▲
//	          events (every 2 s, while something changed) ───────┘ its live part
//
// Pages that belong together are a group, in a package of its own under internal (ui.Group). Some
// are in this package. For each page, queue.go and the like gather its content, and draw it: in Go,
// by gomponents, so that the compiler checks it. Large pages are drawn in a file of their own.
//
// A browser without scripts shows and does everything. With scripts, the live part of a page
// follows by server-sent events. It is merged into the page node by node, so that what the user
// has typed, selected or unfolded stays.
//
// # Who sees what
//
// Users are the broker's. The tag monitoring or administrator is enough to log in.
// As for the management API, broker/operate decides what the user may do to the broker, and
// monitor/changes decides about the rest. A session (sessions.go) ends after half a day, and
// at once when the user's password or tags change.
//
// # Hostile names
//
// Clients choose names, headers and bodies. On a page they are texts and values of attributes,
// which are escaped, and never markup. Links lead only to this site. The Content-Security-Policy
// allows the package's own files and nothing inline. A change needs a token that only pages
// made for the user have, and is refused if another site sent it.
//
// # Bounds
//
// Sessions, streams, rows of a list and bytes of a body are all bounded. While nobody looks,
// nothing is gathered.
//
// # Left to others
//
// broker/operate and monitor/changes know what can be done and who may do it; monitor knows what
// is due, late and at risk. Without a bundled broker there are no pages of queues.
package dashboard
