package dashboard

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	areaPattern = regexp.MustCompile(`(?s)<textarea name="([^"]+)"[^>]*>\n?(.*?)</textarea>`)
	textPattern = regexp.MustCompile(`<input name="([^"]+)" value="([^"]*)"`)
)

// filledIn is a page's form as a browser sends it: its lines end with CR LF.
func filledIn(page string) url.Values {
	form := hiddenForm(page)
	for _, m := range textPattern.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	for _, m := range areaPattern.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(html.UnescapeString(m[2]), "\r\n", "\n")
		form.Set(m[1], strings.ReplaceAll(text, "\n", "\r\n"))
	}
	return form
}

// TestEditChangesNothingByItself: whatever a body is, it comes back from the form as it was.
func TestEditChangesNothingByItself(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.letters = make([]Letter, 8)
	for _, body := range []string{"", "plain", "\nbegins with a line\n", "a\r\nb\r\n", "a\r\nb\n", "a\rb", "\x00\xff", "</textarea><script>alert(1)</script>", "  spaces  ", "\u202eexe"} {
		s.letters.draft = Draft{Queue: 1 << 63, Exchange: "<e>", RoutingKey: "k\"", Properties: "{\n  \"a\": 1\n}", Body: []byte(body)}
		a := s.get(editURL("/", "dlq", 7))
		require.NotContains(t, a.body, "<script>alert")
		a = s.post(editPath, filledIn(a.body))
		require.Contains(t, a.body, "1 message replayed.", "%q", body)
		sent := s.letters.sent[len(s.letters.sent)-1]
		sent.Properties = strings.ReplaceAll(sent.Properties, "\r\n", "\n") // JSON does not mind
		require.Equal(t, s.letters.draft, sent, "%q", body)
	}
}

func TestEdit(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.letters = []Letter{{Message: Message{Seq: 0}}, {Message: Message{Seq: 1, Unacked: true}}}
	s.letters.draft = Draft{Body: []byte("x")}
	page := s.get("/dead-letter?vhost=/&name=dlq").body
	require.Contains(t, page, `href="/dead-letter/edit?name=dlq&amp;seq=0&amp;vhost=%2F"`)
	require.NotContains(t, page, "seq=1&amp;", "a consumer holds it")
	form := filledIn(s.get(editURL("/", "dlq", 0)).body)
	form.Set("routing_key", "nowhere")
	a := s.post(editPath, form)
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "stays where it is, as those that would reach no queue")
	form.Set("form", coded)
	require.Contains(t, s.post(editPath, form).body, "no base64")
	form.Set("form", "")
	require.Equal(t, http.StatusBadRequest, s.post(editPath, form).status)
	require.Equal(t, http.StatusNotFound, s.get(editURL("/", "dlq", 2)).status)

	s.letters.draft.Body = make([]byte, maxEdited)
	form = filledIn(s.get(editURL("/", "dlq", 0)).body)
	require.Equal(t, "/dead-letter", s.post(editPath, form).path, "the largest fits into a form")
	s.letters.draft.Body = append(s.letters.draft.Body, 0)
	require.Contains(t, s.get(editURL("/", "dlq", 0)).body, "more than 256 KiB")

	sent := len(s.letters.sent)
	s.logIn("eye")
	require.Contains(t, s.get(editURL("/", "dlq", 0)).body, "may not read")
	require.Equal(t, http.StatusForbidden, s.post(editPath, form).status)
	form.Set("token", s.d.sessions.tokenOf(s.secret()))
	require.Equal(t, http.StatusForbidden, s.post(editPath, form).status)
	require.Len(t, s.letters.sent, sent)
}

// The memory for a long form is asked for before it is read, and given back.
func TestLongFormsAreAskedFor(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.letters = make([]Letter, 1)
	form := filledIn(s.get(editURL("/", "dlq", 0)).body)
	s.broker.held = 1 << 30
	a := s.post(editPath, form)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, a.body, "no memory; try again")
	s.broker.held = 0
	require.Equal(t, http.StatusOK, s.post(editPath, form).status)
	require.Zero(t, s.broker.held)
}
