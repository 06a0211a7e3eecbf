// Package dashboard is the web page of a Curfew: what deadlines lie ahead, what was
// missed, how every queue stands, the dead letters, alerts and the audit.
//
//	request ─► headers ─► same site? ─► session or Basic ─► gather a view ─► draw it
//	                                                             ▲
//	          events (every 2 s, while something changed) ───────┘ its live part
//
// What a page gathers is in queue.go, how it looks in queue_page.go, and so for each page.
// They are drawn in Go, by gomponents, so that the compiler checks what they show.
//
// Pages are rendered here; a browser without scripts sees and does everything. With
// scripts the live part of a page follows by server-sent events, and is merged into what
// is shown node by node, so that what somebody types, marks or has open stays.
//
// # Who sees what
//
// Users are the broker's. The tag monitoring is enough to look; changes and dead letters
// that are replayed take administrator. Contents of messages take the permission to read
// their queue, too. Replays are seen and cancelled by who began them, and administrators. A session is a random cookie, kept here as its hash; it ends after
// half a day, and at once when the user's password or tags change. Nothing is kept across
// a restart.
//
// # Hostile names
//
// Names, headers and bodies are whatever clients sent. They are text and values of
// attributes, which are escaped, and never markup; links lead nowhere but to this site; the
// Content-Security-Policy allows the package's own files and nothing inline. A change takes
// a token that only the session's pages have, and is refused when another site sent it.
//
// # Bounds
//
// Sessions, streams, rows of a list and bytes of a body are all bounded. Nobody looking
// costs nothing: what is shown is gathered when asked for.
//
// # Left to others
//
// Where messages are and who may log in is the Broker's, which the command makes of the
// bundled one; what is due, late and expected is monitor's.
package dashboard
