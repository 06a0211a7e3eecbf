package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	cookieName = "curfew_session"
	// sessionLife is how long a session lasts at most.
	sessionLife = 12 * time.Hour
	// maxSessions bounds how many there are; the one that ends first goes.
	maxSessions = 1000
)

// session is one login.
type session struct {
	name, stamp string // of the user
	until       time.Time
}

// sessions are those that are open, by the hash of their secret: who reads this
// process's memory does not find the cookies in it.
type sessions struct {
	key []byte // of tokens

	mu   sync.Mutex
	open map[[sha256.Size]byte]session
}

func (s *sessions) init() {
	s.key = randomBytes()
	s.open = map[[sha256.Size]byte]session{}
}

func randomBytes() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return b
}

// begin opens a session and returns its secret.
func (s *sessions) begin(u User) (secret string) {
	secret = base64.RawURLEncoding.EncodeToString(randomBytes())
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSessions {
		s.makeRoom()
	}
	s.open[sha256.Sum256([]byte(secret))] = session{u.Name, u.Stamp, time.Now().Add(sessionLife)}
	return secret
}

// makeRoom drops what is over, else what would be first. Callers hold mu.
func (s *sessions) makeRoom() {
	var first [sha256.Size]byte
	now, earliest := time.Now(), time.Time{}
	for hash, one := range s.open {
		if now.After(one.until) {
			delete(s.open, hash)
		} else if earliest.IsZero() || one.until.Before(earliest) {
			first, earliest = hash, one.until
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, first)
	}
}

func (s *sessions) find(secret string) (session, bool) {
	if secret == "" {
		return session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[sha256.Sum256([]byte(secret))]
	return one, ok && time.Now().Before(one.until)
}

func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(secret)))
}

// tokenOf is what a change sends along with a session's secret: the cookie does not tell
// it, the page does.
func (s *sessions) tokenOf(secret string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func secretOf(r *http.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return c.Value
}

// overTLS says whether the browser came by TLS, to here or to a proxy that says so
// (X-Forwarded-Proto, of several proxies the first). Anybody can say it; it only makes the
// cookie stricter.
func overTLS(r *http.Request) bool {
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https")
}

// setCookie hands a secret over; an empty one takes it back.
func setCookie(w http.ResponseWriter, r *http.Request, secret string) {
	c := &http.Cookie{Name: cookieName, Value: secret, Path: "/", HttpOnly: true, Secure: overTLS(r), SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife / time.Second)}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
