package dashboard

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPurgeTakesTheNumber: nothing is deleted before somebody has typed in how many messages they are.
func TestPurgeTakesTheNumber(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.letters = make([]Letter, 12)
	form := url.Values{"token": {s.token("/dead-letter?vhost=/&name=dlq")}, "vhost": {"/"}, "name": {"dlq"}, "reason": {"expired"}}
	a := s.post("/dead-letters/purge", form)
	require.Contains(t, a.body, "Delete 12 messages for good?")
	require.NotContains(t, a.body, "Nothing was deleted")

	form = hiddenForm(a.body)
	form.Set("confirm", "11")
	a = s.post("/dead-letters/purge", form)
	require.Contains(t, a.body, "Nothing was deleted: 11 is not how many")
	require.Zero(t, s.letters.deleted)
	form.Set("confirm", "all")
	require.Equal(t, http.StatusBadRequest, s.post("/dead-letters/purge", form).status)

	form.Set("confirm", "12")
	a = s.post("/dead-letters/purge", form)
	require.Equal(t, "/dead-letter", a.path)
	require.Contains(t, a.body, "12 messages deleted.")
	require.Equal(t, 12, s.letters.deleted)
	for _, f := range s.letters.filters[:3] {
		require.Contains(t, []LetterFilter{{}, {Reason: "expired"}}, f)
	}
	require.Contains(t, s.post("/dead-letters/purge", url.Values{"token": form["token"]}).body, "nothing to delete")
}

func TestExportIsOfWhatFits(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.letters, s.letters.lines = make([]Letter, 1), "{\"queue\":\"<b>\"}\n"
	page := s.get("/dead-letter?vhost=/&name=dlq&reason=expired&bodies=1").body
	require.Contains(t, page, `href="/dead-letters/export?name=dlq&amp;reason=expired&amp;vhost=%2F"`)
	a := s.get("/dead-letters/export?name=dlq&reason=expired&vhost=%2F")
	require.Equal(t, s.letters.lines, a.body)
	require.Equal(t, "application/jsonl", a.header.Get("Content-Type"))
	require.Contains(t, a.header.Get("Content-Disposition"), "attachment")
	require.Equal(t, LetterFilter{Reason: "expired"}, s.letters.filters[len(s.letters.filters)-1])

	a = s.logIn("eye").get("/dead-letters/export?name=dlq&vhost=%2F")
	require.Equal(t, http.StatusForbidden, a.status)
	require.NotContains(t, a.body, "queue&#34;")
	require.Contains(t, a.header.Get("Content-Type"), "text/html")
}

// upload sends a file behind the fields of a form.
func (s *site) upload(path string, fields url.Values, file string) answer {
	s.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name := range fields {
		require.NoError(s, form.WriteField(name, fields.Get(name)))
	}
	part, err := form.CreateFormFile("file", "letters.jsonl")
	require.NoError(s, err)
	_, err = part.Write([]byte(file))
	require.NoError(s, err)
	require.NoError(s, form.Close())
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+path, &body)
	require.NoError(s, err)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return s.do(r)
}

func TestImport(t *testing.T) {
	s := newSite(t).logIn("root")
	page := s.get("/dead-letter?vhost=/&name=dlq").body
	require.Contains(t, page, `enctype="multipart/form-data"`, "also into an empty queue")
	fields := url.Values{"token": {s.token("/alerts")}, "vhost": {"/"}, "name": {"dlq"}}
	file := strings.Repeat("{}\n", 50_000) // more than other forms may have
	a := s.upload("/dead-letters/import", fields, file)
	require.Equal(t, "/dead-letter", a.path)
	require.Contains(t, a.body, "50\u202f000 messages imported.")
	require.Equal(t, 50_000, s.letters.imported)

	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/import", fields).status, "no file, and no fields before one")
	fields.Set("token", "wrong")
	require.Equal(t, http.StatusForbidden, s.upload("/dead-letters/import", fields, "{}\n").status)
	s.logIn("eye")
	require.NotContains(t, s.get("/dead-letter?vhost=/&name=dlq").body, "multipart")
	fields.Set("token", s.d.sessions.tokenOf(s.secret()))
	require.Equal(t, http.StatusForbidden, s.upload("/dead-letters/import", fields, "{}\n").status, "no administrator")
	require.Equal(t, 50_000, s.letters.imported)
}

func TestImportIsBounded(t *testing.T) {
	s := newSite(t).logIn("root")
	const before = "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n%s\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
	body := io.MultiReader(strings.NewReader(fmt.Sprintf(before, s.token("/alerts"))), io.LimitReader(endless{}, maxUpload), strings.NewReader("\r\n--b--\r\n"))
	r := httptest.NewRequest(http.MethodPost, "/dead-letters/import", body) // over no network: the answer comes before all is sent
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.AddCookie(&http.Cookie{Name: cookieName, Value: s.secret()})
	w := httptest.NewRecorder()
	s.d.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "more than 64.0 MiB: use curfew dlq import")
	require.Zero(t, s.letters.imported)
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
