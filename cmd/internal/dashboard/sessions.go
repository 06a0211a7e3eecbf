package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/alexedwards/scs/v2/memstore"
)

const (
	cookieName = "curfew_session"
	// sessionLife is the longest that a session lasts.
	sessionLife = 12 * time.Hour
	// maxSessions bounds how many there are. If there are more, the one that ends first is dropped.
	maxSessions = 1000
)

// sessions are those of users who are logged in. They are stored under the hash of their secret, the value of the
// cookie: whoever reads this process's memory does not find cookies in it. A session holds a user's name and stamp, which is compared
// with the user's. Nothing is kept across a restart.
type sessions struct {
	manager *scs.SessionManager
	store   *memstore.MemStore
	key     []byte // for tokens
}

// The values in a session: the user's name and stamp.
const (
	nameKey  = "name"
	stampKey = "stamp"
)

// newSessions returns sessions without a session. Tokens are worth nothing after a restart.
func newSessions() *sessions {
	manager := scs.New()
	// The store removes expired sessions once a minute, as long as the process lives.
	s := &sessions{manager: manager, store: manager.Store.(*memstore.MemStore), key: make([]byte, 32)}
	_, _ = rand.Read(s.key) // never fails
	s.manager.HashTokenInStore, s.manager.Lifetime = true, sessionLife
	s.manager.Cookie.Name, s.manager.Cookie.SameSite = cookieName, http.SameSiteStrictMode
	return s
}

// Begin opens a session for the user with that name and stamp, replaces the one that r has, and sends its secret as a cookie.
func (s *sessions) Begin(w http.ResponseWriter, r *http.Request, name, stamp string) error {
	s.makeRoom()
	ctx, err := s.manager.Load(r.Context(), secret(r))
	if err != nil {
		return err
	}
	if err := s.manager.RenewToken(ctx); err != nil {
		return err
	}
	s.manager.Put(ctx, nameKey, name)
	s.manager.Put(ctx, stampKey, stamp)
	secret, until, err := s.manager.Commit(ctx)
	if err != nil {
		return err
	}
	s.cookies(r).WriteSessionCookie(ctx, w, secret, until)
	return nil
}

// makeRoom drops the session that ends first, if there are maxSessions.
func (s *sessions) makeRoom() {
	all, _ := s.store.All() // never fails
	if len(all) < maxSessions {
		return
	}
	first, earliest := "", time.Time{}
	for hash, data := range all {
		if until, _, err := s.manager.Codec.Decode(data); err == nil && (first == "" || until.Before(earliest)) {
			first, earliest = hash, until
		}
	}
	_ = s.store.Delete(first) // never fails
}

// Find is the user's name and stamp in the session of r; empty if there is none.
func (s *sessions) Find(r *http.Request) (name, stamp string) {
	ctx, err := s.manager.Load(r.Context(), secret(r))
	if err != nil {
		return "", ""
	}
	return s.manager.GetString(ctx, nameKey), s.manager.GetString(ctx, stampKey)
}

// End ends the session of r, if it has one.
func (s *sessions) End(r *http.Request) {
	if ctx, err := s.manager.Load(r.Context(), secret(r)); err == nil {
		_ = s.manager.Destroy(ctx) // never fails
	}
}

// cookies is the manager with the settings for r's cookies.
func (s *sessions) cookies(r *http.Request) *scs.SessionManager {
	m := *s.manager
	m.Cookie.Secure = overTLS(r)
	return &m
}

// Token is the token that a change needs in addition to the session's secret. The browser has it
// from a page, not from the cookie. It is the same for all sessions with the same who, so that a form
// can still be sent after its session has ended.
func (s *sessions) Token(who string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(who))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// secret is the secret of the session that r has; empty if it has none.
func secret(r *http.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return c.Value
}

// overTLS reports whether the browser uses TLS, to this process or to a proxy in front of it
// (X-Forwarded-Proto; with several proxies, the first). Anybody can send that header, but it only
// makes the cookie stricter.
func overTLS(r *http.Request) bool {
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https")
}
