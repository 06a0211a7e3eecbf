package dashboard

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/letters"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// maxForm bounds the body of a request.
const maxForm = 64 << 10

// policy lets pages load this package's own files and talk only to this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secured sets the headers of every answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody(r.URL.Path))
		next.ServeHTTP(w, r)
	})
}

func maxBody(path string) int64 {
	switch path {
	case letters.ImportPath:
		return letters.MaxUpload
	case letters.EditPath, topology.PublishPath:
		return letters.MaxEditForm
	}
	return maxForm
}

// known admits users who are logged in, and sends others to the login page.
func (d *Dashboard) known(next ui.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := d.visitor(r)
		switch {
		case err == nil:
			release, err := d.payForm(r, v)
			defer release()
			if err != nil {
				w.Header().Set("Connection", "close") // the form is not read
				http.Error(w, err.Error()+"; try again", http.StatusServiceUnavailable)
				return
			}
			next(w, r, v)
		case v.Basic:
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			// The form can be sent again: its token is the user's.
			d.Show(w, r, http.StatusUnauthorized, ui.Visitor{}, "/failed", alert("Log in again", g.Group{
				g.Text("Your session has ended, and nothing was done. "), h.A(h.Href("/login"), h.Target("_blank"), g.Text("Log in again in another tab")),
				g.Text(", then reload this page: your form is sent again as it was."),
			}))
		case strings.HasPrefix(r.URL.Path, "/live"):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(over)) // it fails only if the client is gone
		default:
			http.Redirect(w, r, "/login?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		}
	})
}

// formWeight is how many bytes of memory each byte of a form takes until the answer.
const formWeight = 4

// payForm reserves the memory for a long form before it is read.
func (d *Dashboard) payForm(r *http.Request, v ui.Visitor) (release func(), err error) {
	most := maxBody(r.URL.Path)
	if r.Method != http.MethodPost || most == maxForm || d.Operations == nil {
		return func() {}, nil
	}
	length := min(r.ContentLength, most)
	if length < 0 {
		length = most
	}
	return d.Operations.Hold(v.Name, formWeight*length)
}

// changes is like known, for requests that change something: they need the token from a page for the user. The handler checks what the
// user may change.
func (d *Dashboard) changes(next ui.Handler) http.Handler {
	return d.known(func(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
		if tooLong, is := errors.AsType[*http.MaxBytesError](r.ParseForm()); is {
			d.Fail(w, r, http.StatusRequestEntityTooLarge, "The form is longer than "+ui.Bytes(tooLong.Limit)+", and nothing was done. The command line and clients take more.")
			return
		}
		if d.FromHere(w, r, v, r.PostFormValue("token")) {
			next(w, r, v)
		}
	})
}

// FromHere reports whether a request comes from a page that was made for the visitor. If not, it answers it.
func (d *Dashboard) FromHere(w http.ResponseWriter, r *http.Request, v ui.Visitor, token string) bool {
	if subtle.ConstantTimeCompare([]byte(token), []byte(v.Token)) == 1 {
		return true
	}
	d.Fail(w, r, http.StatusForbidden, "This form is too old: go back, reload the page and try again.")
	return false
}

// visitor returns the user of a request.
func (d *Dashboard) visitor(r *http.Request) (ui.Visitor, error) {
	if name, password, given := r.BasicAuth(); given {
		u, err := d.authenticate(r, name, password)
		return ui.Visitor{User: u, Token: d.sessions.Token("basic\x00" + name), Basic: true}, err
	}
	name, stamp := d.sessions.Find(r)
	if name == "" {
		return ui.Visitor{}, errors.New("log in first")
	}
	u, ok := d.user(name)
	if !ok || u.Stamp != stamp {
		d.sessions.End(r)
		return ui.Visitor{}, errors.New("log in again")
	}
	return ui.Visitor{User: u, Token: d.sessions.Token("session\x00" + name + "\x00" + stamp)}, nil
}
