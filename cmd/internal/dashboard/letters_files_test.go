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

	"curfew/broker/amqp"
	"curfew/cmd/internal/dashboard/internal/letters"
)

// TestPurgeTakesTheNumber: nothing is deleted before somebody has typed in how many messages they are.
func TestPurgeTakesTheNumber(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(12)
	form := url.Values{"token": {s.token("/dead-letter?vhost=/&name=dlq")}, "vhost": {"/"}, "name": {"dlq"}, "reason": {"expired"}}
	a := s.post("/dead-letters/purge", form)
	require.Contains(t, a.body, "Delete 12 messages for good?")
	require.NotContains(t, a.body, "Nothing was deleted")

	form = formWith(a.body, "/dead-letters/purge")
	a = s.post("/dead-letters/purge", form)
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "Nothing was deleted: type 12 to confirm.")
	form.Set("confirm", "11")
	a = s.post("/dead-letters/purge", form)
	require.Contains(t, a.body, "Nothing was deleted: &#34;11&#34; is not the text to type.")
	require.Len(t, s.standing(dlq), 12)
	form.Set("confirm", "all")
	require.Equal(t, http.StatusBadRequest, s.post("/dead-letters/purge", form).status)

	form.Set("confirm", "99")
	require.Contains(t, s.post("/dead-letters/purge", form).body, "Nothing was deleted: &#34;99&#34; is not the text to type.")
	require.Len(t, s.standing(dlq), 12)

	s.publish(dlq, amqp.Properties{Headers: died("q", "expired", ""), Has: amqp.HasHeaders}, "later")
	form.Set("confirm", "12")
	a = s.post("/dead-letters/purge", form)
	require.Equal(t, "/dead-letter", a.path)
	require.Contains(t, a.body, "12 messages deleted.", "though another one has arrived since")
	left := s.standing(dlq)
	require.Len(t, left, 1)
	require.Equal(t, "later", string(left[0].Message.Body))
	form.Del("position")
	form.Set("asked", "1")
	form.Set("confirm", "1")
	require.Contains(t, s.post("/dead-letters/purge", form).body, "1 message deleted.")
	form.Del("confirm")
	require.Contains(t, s.post("/dead-letters/purge", form).body, "nothing to delete")
}

func TestExportIsOfWhatFits(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(1)
	s.publish(dlq, amqp.Properties{Headers: died("q", "rejected", ""), Has: amqp.HasHeaders}, "")
	page := s.get("/dead-letter?vhost=/&name=dlq&filter=" + url.QueryEscape(`reason == "expired"`)).body
	form := formWith(page, "letters")
	form.Set("of", "all")
	require.Equal(t, 1, strings.Count(s.post("/dead-letters/export", form).body, "\n"))
	form.Set("of", "selected")
	require.Contains(t, s.post("/dead-letters/export", form).body, "Select messages first")
	form["pick"] = []string{"1", "2"}
	require.Equal(t, 2, strings.Count(s.post("/dead-letters/export", form).body, "\n"))
	a := s.get("/dead-letters/export?name=dlq&vhost=%2F&filter=" + url.QueryEscape(`reason == "expired"`))
	require.Equal(t, 1, strings.Count(a.body, "\n"))
	require.Contains(t, a.body, `"payload":"YWJj"`)
	require.Equal(t, "application/jsonl", a.header.Get("Content-Type"))
	require.Contains(t, a.header.Get("Content-Disposition"), "attachment")

	a = s.logIn("eye").get("/dead-letters/export?name=dlq&vhost=%2F")
	require.Equal(t, http.StatusForbidden, a.status)
	require.NotContains(t, a.body, "payload")
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
	dlq := s.dead(0)
	page := s.get("/dead-letter?vhost=/&name=dlq").body
	require.Contains(t, page, `enctype="multipart/form-data"`, "also into an empty queue")
	fields := url.Values{"token": {s.token("/incidents")}, "vhost": {"/"}, "name": {"dlq"}}
	file := strings.Repeat(`{"properties":{}}`+"\n", 5_000) // more than other forms may have
	a := s.upload("/dead-letters/import", fields, file)
	require.Equal(t, "/dead-letter", a.path)
	require.Contains(t, a.body, "5,000 messages imported.")
	require.Len(t, s.standing(dlq), 5_000)

	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/import", fields).status, "no file, and no fields before one")
	fields.Set("token", "wrong")
	require.Equal(t, http.StatusForbidden, s.upload("/dead-letters/import", fields, "{}\n").status)
	s.logIn("eye")
	require.NotContains(t, s.get("/dead-letter?vhost=/&name=dlq").body, "multipart")
	fields.Set("token", s.ownToken())
	require.Equal(t, http.StatusForbidden, s.upload("/dead-letters/import", fields, "{}\n").status, "no permission")
	require.Len(t, s.standing(dlq), 5_000)
}

func TestImportIsBounded(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(0)
	const before = "--b\r\nContent-Disposition: form-data; name=\"vhost\"\r\n\r\n/\r\n--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\ndlq\r\n--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n%s\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
	body := io.MultiReader(strings.NewReader(fmt.Sprintf(before, s.token("/incidents"))), io.LimitReader(&endless{}, letters.MaxUpload), strings.NewReader("\r\n--b--\r\n"))
	r := httptest.NewRequest(http.MethodPost, "/dead-letters/import", body) // over no network: the answer comes before all is sent
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.AddCookie(s.cookie())
	w := httptest.NewRecorder()
	s.d.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "larger than 64 MiB: use curfew dlq import")
	require.LessOrEqual(t, len(s.standing(dlq)), letters.MaxUpload>>16)
}

// endless is a file without an end: one message in each 64 KiB.
type endless struct{ rest string }

func (e *endless) Read(b []byte) (int, error) {
	if e.rest == "" {
		e.rest = fmt.Sprintf("%-65535s\n", `{"properties":{}}`)
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
