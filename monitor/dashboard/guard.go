package dashboard

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

const (
	// maxForm bounds the body of a request.
	maxForm = 64 << 10
	// importPath is the only one that takes a file.
	importPath = "/dead-letters/import"
)

// policy lets a page have the package's own files and talk to where it came from.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secured sets the headers of every answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody(r.URL.Path))
		next.ServeHTTP(w, r)
	})
}

func maxBody(path string) int64 {
	switch path {
	case importPath:
		return maxUpload
	case editPath:
		return maxEditForm
	}
	return maxForm
}

// visitor is who asks, with the token his changes take.
type visitor struct {
	User
	token string
	basic bool // by HTTP Basic: there is no session to end
	live  bool // asks for the live part of a page
}

type handler func(w http.ResponseWriter, r *http.Request, v visitor)

// known lets in who is logged in, and sends others to do so.
func (d *Dashboard) known(next handler) http.Handler {
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
		case r.Method == http.MethodGet && !v.basic && !strings.HasPrefix(r.URL.Path, "/live"):
			http.Redirect(w, r, "/login?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	})
}

// formWeight is how many bytes of memory a byte of a form takes until it is answered.
const formWeight = 4

// payForm asks for the memory that a long form takes, before it is read.
func (d *Dashboard) payForm(r *http.Request, v visitor) (release func(), err error) {
	most := maxBody(r.URL.Path)
	if r.Method != http.MethodPost || most == maxForm {
		return func() {}, nil
	}
	length := min(r.ContentLength, most)
	if length < 0 {
		length = most
	}
	return d.Broker.Hold(v.Name, formWeight*length)
}

// changes is known for requests that change something: they take an administrator and
// the token of his pages.
func (d *Dashboard) changes(next handler) http.Handler {
	return d.known(func(w http.ResponseWriter, r *http.Request, v visitor) {
		if d.mayChange(w, r, v, r.PostFormValue("token")) {
			next(w, r, v)
		}
	})
}

// mayChange answers a request that may change nothing.
func (d *Dashboard) mayChange(w http.ResponseWriter, r *http.Request, v visitor, token string) bool {
	if !d.fromHere(w, r, v, token) {
		return false
	}
	if !v.Admin {
		d.fail(w, r, http.StatusForbidden, "That takes a user with the tag administrator.")
	}
	return v.Admin
}

// fromHere answers a request that does not come from a page of the visitor's session.
func (d *Dashboard) fromHere(w http.ResponseWriter, r *http.Request, v visitor, token string) bool {
	if subtle.ConstantTimeCompare([]byte(token), []byte(v.token)) == 1 {
		return true
	}
	d.fail(w, r, http.StatusForbidden, "This form is too old: go back, reload the page and try again.")
	return false
}

// visitor finds out who asks.
func (d *Dashboard) visitor(r *http.Request) (visitor, error) {
	if name, password, given := r.BasicAuth(); given {
		u, err := d.Broker.Authenticate(r.Context(), name, password, peerOf(r))
		return visitor{User: u, token: d.sessions.tokenOf("basic\x00" + name), basic: true}, err
	}
	secret := secretOf(r)
	s, ok := d.sessions.find(secret)
	if !ok {
		return visitor{}, errors.New("log in first")
	}
	u, ok := d.Broker.User(s.name)
	if !ok || u.Stamp != s.stamp {
		d.sessions.end(secret)
		return visitor{}, errors.New("log in again")
	}
	return visitor{User: u, token: d.sessions.tokenOf(secret)}, nil
}

// peerOf is the client's address; one that cannot be read is not this machine's.
func peerOf(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return addr.Addr().Unmap()
}
