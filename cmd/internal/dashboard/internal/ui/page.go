package ui

import (
	"net/http"

	"curfew/broker/operate"

	g "maragu.dev/gomponents"
)

// View draws what a page shows, when all of it is gathered.
type View func(s *Info) Drawing

// Drawing is the content of a page. Live is updated; the parts above and below it are not. A part may
// be nil.
type Drawing struct {
	Top, Live, Bottom g.Node
	// Charts: there are charts that a script draws.
	Charts bool
}

// Info is what every page has: its title, the menu, the user and the like.
type Info struct {
	Title, Tab        string
	Instance, Version string
	Visitor
	Live  string // URL of the events of the live part; "" if there is none
	Here  string // path and query
	Theme string // the colors chosen: "system", "light" or "dark"
	Said  string // what the change that led here has done; "": it was none
}

// Visitor is the user of a request, with the token that changes need.
type Visitor struct {
	User
	Token string
	Basic bool // logged in by HTTP Basic: there is no session to end
	Live  bool // the request is for the live part of a page
}

// User is a user of the dashboard.
type User struct {
	operate.Actor
	Admin bool // may change things that do not belong to a queue
	// Stamp changes with the user's password and tags, and ends the user's sessions.
	Stamp string
}

// Page is one page of a Group.
type Page struct {
	Title string
	Tab   string // the entry of the menu it belongs to
	Live  bool   // part of it is updated
	// Build gathers what the page shows. nil: handlers show the page by Site.Show, with a view of theirs.
	Build func(r *http.Request, v Visitor) (View, error)
}

// Handler answers a request from a user who is logged in. It checks itself what the user may do.
type Handler func(w http.ResponseWriter, r *http.Request, v Visitor)

// Group is some pages that belong together, by path.
type Group struct {
	Pages map[string]Page
	// Changes answer POST requests, which have the token of a page.
	Changes map[string]Handler
	// Uploads answer POST requests with a file. They check the token themselves (Site.FromHere), before they read the file.
	Uploads map[string]Handler
	// Files answer GET requests with something other than a page.
	Files map[string]Handler
}

// Site is what the handlers of a Group answer with.
type Site interface {
	// Show answers with the page at path, which shows content.
	Show(w http.ResponseWriter, r *http.Request, status int, v Visitor, path string, content View)
	// Fail answers with a page that says what went wrong.
	Fail(w http.ResponseWriter, r *http.Request, status int, text string)
	// Refuse answers with a page about an operation's error.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
	// FromHere reports whether a request has the token of a page that was made for the visitor. If not, it answers it.
	FromHere(w http.ResponseWriter, r *http.Request, v Visitor, token string) bool
}
