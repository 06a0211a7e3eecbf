package dashboard

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/access"
)

var everyPage = []string{"/", "/queues", "/queue?vhost=/&name=q", "/incidents", "/audit", "/dead-letters", "/dead-letter?vhost=/&name=q"}

func TestEveryPageTakesALogin(t *testing.T) {
	s := newSite(t)
	s.queue("/", "q", nil)
	for _, path := range everyPage {
		a := s.get(path)
		require.Equal(t, "/login", a.path, path)
		require.NotContains(t, a.body, "aria-current", "no menu")
	}
	require.Equal(t, "event: over\ndata: {}\n\n", s.get("/live/").body, "the browser loads the page again, and comes to the login")
	require.Equal(t, http.StatusUnauthorized, s.post("/maintenance", nil).status)
	require.Equal(t, http.StatusUnauthorized, s.post("/dead-letters/replay", nil).status)
	s.logIn("eye")
	for _, path := range everyPage {
		require.Equal(t, http.StatusOK, s.get(path).status, path)
	}
	require.Equal(t, http.StatusNotFound, s.get("/nowhere").status)
	require.Equal(t, http.StatusNotFound, s.get("/queue?vhost=/&name=gone").status)
}

func TestLogin(t *testing.T) {
	s := newSite(t)
	a := s.post("/login", url.Values{"name": {"root"}, "password": {"wrong"}})
	require.Equal(t, http.StatusUnauthorized, a.status)
	require.Contains(t, a.body, "The name or the password is wrong")
	a = s.post("/login", url.Values{"name": {"nobody"}, "password": {"nobody"}})
	require.Contains(t, a.body, "tag monitoring")

	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a = s.post("/login", url.Values{"name": {"root"}, "password": {"root"}, "to": {"/queues?q=a"}})
	require.Equal(t, "/queues?q=a", a.header.Get("Location"))
	cookie := a.header.Get("Set-Cookie")
	require.Contains(t, cookie, "HttpOnly")
	require.Contains(t, cookie, "SameSite=Strict")
	require.NotContains(t, cookie, "Secure", "without TLS it would never come back")
	for _, to := range []string{"//evil.example", "https://evil.example", `/\evil.example`, "javascript:alert(1)", "/a\r\nb"} {
		a = s.post("/login", url.Values{"name": {"root"}, "password": {"root"}, "to": {to}})
		require.Equal(t, "/", a.header.Get("Location"), to)
	}
}

// TestCookieIsSecureOverTLS: here, or at a proxy before.
func TestCookieIsSecureOverTLS(t *testing.T) {
	s := newSite(t)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	form := url.Values{"name": {"root"}, "password": {"root"}}
	for proto, secure := range map[string]bool{"https": true, "HTTPS": true, "https, http": true, "http": false, "http, https": false, "": false} {
		for _, path := range []string{"/login", "/logout"} {
			cookie := s.post(path, form, "X-Forwarded-Proto", proto).header.Get("Set-Cookie")
			require.Equal(t, secure, strings.Contains(cookie, "; Secure"), "%q %s", proto, path)
		}
	}
	over := httptest.NewTLSServer(s.d.Handler())
	defer over.Close()
	client := over.Client()
	client.CheckRedirect = s.client.CheckRedirect
	resp, err := client.PostForm(over.URL+"/login", form)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, resp.Header.Get("Set-Cookie"), "; Secure")
}

func TestSessionsEnd(t *testing.T) {
	s := newSite(t).logIn("root")
	require.Equal(t, "/", s.get("/").path)
	s.post("/logout", nil)
	require.Equal(t, "/login", s.get("/").path)

	s.logIn("root")
	s.user("root", access.Administrator)
	require.Equal(t, "/login", s.get("/").path, "the password was set again")

	s.logIn("root")
	require.NoError(t, s.b.Accounts.DeleteUser("root"))
	require.Equal(t, "/login", s.get("/").path, "the user is gone")
}

// TestLoginChangesTheSecret: whoever had planted a cookie before does not know the one after.
func TestLoginChangesTheSecret(t *testing.T) {
	s := newSite(t).logIn("eye")
	before := s.cookie()
	s.logIn("root")
	require.NotEqual(t, before.Value, s.cookie().Value)
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.AddCookie(before)
	name, _ := s.d.sessions.Find(r)
	require.Empty(t, name)
}

func TestBasic(t *testing.T) {
	s := newSite(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/queues", http.NoBody)
	require.NoError(t, err)
	r.SetBasicAuth("eye", "eye")
	a := s.do(r)
	require.Equal(t, http.StatusOK, a.status)
	require.NotContains(t, a.body, "Log out")
	require.Empty(t, a.header.Get("Set-Cookie"))
}

func TestHeaders(t *testing.T) {
	s := newSite(t)
	for _, path := range append([]string{"/login", "/nowhere", s.d.assets.URLs["live.js"]}, everyPage...) {
		h := s.get(path).header
		require.Equal(t, policy, h.Get("Content-Security-Policy"), path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	}
	for _, directive := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
		require.Contains(t, policy, directive)
	}
	require.NotContains(t, policy, "unsafe")
	a := s.get(s.d.assets.URLs["style.css"])
	require.Contains(t, a.header.Get("Cache-Control"), "immutable")
	require.Contains(t, a.header.Get("Content-Type"), "text/css")
	require.Equal(t, http.StatusNotFound, s.get("/assets/style.css").status, "only with its hash")
}

// TestChangesTakeAToken: neither another site nor a page of another session changes anything.
func TestChangesTakeAToken(t *testing.T) {
	s := newSite(t).logIn("root")
	form := url.Values{"duration": {"1h"}, "queue": {"q"}}
	require.Equal(t, http.StatusForbidden, s.post("/maintenance", form).status, "no token")
	form.Set("token", newSite(t).logIn("root").token("/incidents"))
	require.Equal(t, http.StatusForbidden, s.post("/maintenance", form).status, "another session's")
	form.Set("token", s.token("/incidents"))
	require.Equal(t, http.StatusForbidden, s.post("/maintenance", form, "Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, http.StatusForbidden, s.post("/maintenance", form, "Origin", "https://evil.example").status)
	require.Empty(t, s.incidents.Windows())
	require.Equal(t, http.StatusOK, s.post("/maintenance", form, "Sec-Fetch-Site", "same-origin").status)
	require.Len(t, s.incidents.Windows(), 1)
	require.Equal(t, "root", s.incidents.Windows()[0].Author)

	a := s.post("/maintenance/end", url.Values{"token": form["token"], "id": {s.incidents.Windows()[0].ID}})
	require.Equal(t, http.StatusOK, a.status)
	require.Empty(t, s.incidents.Windows())
}

func TestChangesTakeAnAdministrator(t *testing.T) {
	s := newSite(t).logIn("eye")
	require.NotContains(t, s.get("/incidents").body, `action="/maintenance"`)
	form := url.Values{"duration": {"1h"}, "token": {s.ownToken()}}
	require.Equal(t, http.StatusForbidden, s.post("/maintenance", form).status)
	require.Empty(t, s.incidents.Windows())
}

// cookie is the one of the session.
func (s *site) cookie() *http.Cookie {
	s.Helper()
	u, err := url.Parse(s.url)
	require.NoError(s, err)
	return s.client.Jar.Cookies(u)[0]
}

// ownToken is what the pages of the session have for changes.
func (s *site) ownToken() string {
	s.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.AddCookie(s.cookie())
	v, err := s.d.visitor(r)
	require.NoError(s, err)
	return v.Token
}

// TestFormOfASessionThatEnded: the answer says what to do, and the same form counts for the same user in the next session. For another user, and
// after a change of the password, it does not.
func TestFormOfASessionThatEnded(t *testing.T) {
	s := newSite(t).logIn("root")
	form := url.Values{"duration": {"1h"}, "token": {s.ownToken()}}
	s.post("/logout", nil)
	a := s.post("/maintenance", form)
	require.Equal(t, http.StatusUnauthorized, a.status)
	require.Contains(t, a.body, "Your session has ended, and nothing was done")
	require.Contains(t, a.body, `<a href="/login" target="_blank">Log in again in another tab</a>`)
	s.logIn("eye")
	require.Equal(t, http.StatusForbidden, s.post("/maintenance", form).status)
	s.logIn("root")
	require.Equal(t, http.StatusOK, s.post("/maintenance", form).status)
	require.Len(t, s.incidents.Windows(), 1)
	s.user("root", access.Administrator, "/")
	s.logIn("root")
	require.Contains(t, s.post("/maintenance", form).body, "This form is too old")
}

// TestLongForms: what is too long is said to be that. A message may be longer than other forms.
func TestLongForms(t *testing.T) {
	s := newSite(t).logIn("root")
	long := strings.Repeat("%", maxForm)
	form := url.Values{"token": {s.ownToken()}, "for": {"1h"}, "comment": {long}}
	a := s.post("/maintenance", form)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
	require.Contains(t, a.body, "The form is longer than 64 KiB, and nothing was done")
	q := s.queue("/", "q", nil)
	form = url.Values{"token": {s.ownToken()}, "vhost": {"/"}, "key": {"q"}, "body": {long}}
	require.Contains(t, s.post("/publish", form).body, "a queue took it")
	require.Len(t, s.standing(q), 1)
	form.Set("body", strings.Repeat(long, 11))
	require.Contains(t, s.post("/publish", form).body, "The form is longer than 2.0 MiB, and nothing was done")
}

// TestStream: a change comes without asking, and the stream ends with the session.
func TestStream(t *testing.T) {
	s := newSite(t).logIn("root")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/live/", http.NoBody)
	require.NoError(t, err)
	resp, err := s.client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	until := func(part string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), part) {
				return
			}
		}
		t.Fatalf("the stream ended before %q", part)
	}
	until("All is well")
	s.memory.Store(2 * gibibyte)
	until("Publishers are blocked")
	s.user("root", access.Monitoring)
	until("event: over")
	for left := 2; lines.Scan(); left-- {
		require.Positive(t, left, "it ends")
	}
}

// TestStreamIsCompressed: what the overview of a large broker sends every two seconds is a fraction of its markup, for clients that unpack it.
func TestStreamIsCompressed(t *testing.T) {
	s := newSite(t).logIn("root")
	for i := range 1000 {
		s.queue("/", fmt.Sprintf("orders.%04d", i), nil)
	}
	first := func(encoding string) (sent int, event string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/live/", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Accept-Encoding", encoding)
		resp, err := s.client.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		counted := &counter{Reader: resp.Body}
		var from io.Reader = counted
		if encoding == "gzip" {
			require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
			from, err = gzip.NewReader(counted)
			require.NoError(t, err)
		}
		event, err = bufio.NewReader(from).ReadString('\n')
		require.NoError(t, err)
		return counted.n, event
	}
	_, plain := first("identity")
	sent, packed := first("gzip")
	t.Logf("%d bytes of %d", sent, len(packed))
	for _, event := range []string{plain, packed} {
		require.Contains(t, event, "orders.0999: 0 ready")
		require.NotContains(t, event, "u003c", "it is no part of HTML")
	}
	require.Less(t, sent, len(packed)/5)
}

// counter counts what is read.
type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestStreamsAreBounded(t *testing.T) {
	s := newSite(t).logIn("root")
	for range maxStreams {
		s.d.streams <- struct{}{}
	}
	a := s.get("/live/")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.NotEmpty(t, a.header.Get("Retry-After"))
}
