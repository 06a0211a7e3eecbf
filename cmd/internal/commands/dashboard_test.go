package commands

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// visit asks for a page as guest, or sends a form there. It follows redirects.
func (r *running) visit(path string, form url.Values) (status int, body string) {
	r.t.Helper()
	method, sent := http.MethodGet, io.Reader(http.NoBody)
	if form != nil {
		method, sent = http.MethodPost, strings.NewReader(form.Encode())
	}
	status, body = r.ask(method, path, "application/x-www-form-urlencoded", sent)
	return status, strings.ReplaceAll(body, "<wbr>", "") // within names
}

func (r *running) ask(method, path, contentType string, body io.Reader) (int, string) {
	r.t.Helper()
	return r.askAs("guest", "other", method, path, contentType, body)
}

func (r *running) askAs(user, password, method, path, contentType string, body io.Reader) (int, string) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.flags[1]+path, body)
	require.NoError(r.t, err)
	q.SetBasicAuth(user, password)
	q.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(q)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(text)
}

var (
	fieldPattern = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)
	changeLink   = regexp.MustCompile(`href="(/deadline\?[^"]+)"`)
)

// fieldsOf are the hidden fields of a page's forms.
func fieldsOf(page string) url.Values {
	form := url.Values{}
	for _, m := range fieldPattern.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// TestDashboardChangesDeadlines goes the way of a person without scripts: the queue's page, the message's page, the confirmation, the result.
func TestDashboardChangesDeadlines(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	r.send(ch, amqp091.Publishing{Expiration: "3600000", DeliveryMode: 2, MessageId: "m1"})
	change := func(fields ...string) (int, string) {
		_, page := r.visit("/queue?vhost=/&name=orders", nil)
		link := changeLink.FindStringSubmatch(page)
		require.NotNil(t, link, page)
		_, page = r.visit(html.UnescapeString(link[1]), nil)
		form := fieldsOf(page)
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		status, page := r.visit("/deadline", form)
		if status == http.StatusOK {
			require.Contains(t, page, "Dry run again")
			form.Set("do", "set")
			return r.visit("/deadline", form)
		}
		return status, page
	}
	_, page := change("by", "2h")
	require.Contains(t, page, "has its new deadline")
	require.Regexp(t, "due in [23] h", page, "three hours, or just not")
	_, page = change("cancel", "1")
	require.Contains(t, page, "no deadline")
	status, page := change("at", "9999-01-01T00:00:00")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, page, "ten years")
	at := time.Now().Add(30 * time.Minute).Truncate(time.Second)
	_, page = change("at", at.UTC().Format("2006-01-02T15:04:05"))
	require.Contains(t, page, "has its new deadline")
	require.Contains(t, r.ok("deadlines", "list"), at.UTC().Format("2006-01-02T15:04:05.000Z"))

	_, page = r.visit("/queue?vhost=/&name=orders", nil)
	_, page = r.visit(html.UnescapeString(changeLink.FindStringSubmatch(page)[1]), nil)
	old := fieldsOf(page)
	_, page = change("by", "1h")
	require.Contains(t, page, "has its new deadline")
	old.Set("fire", "1")
	old.Set("do", "set")
	status, _ = r.visit("/deadline", old)
	require.Equal(t, http.StatusNotFound, status, "it was changed meanwhile")

	_, page = change("fire", "1")
	require.Contains(t, page, "has expired")
	r.waits("orders.dead", 1)
}

// TestDashboardReplaysWithChanges: the message of the form is in the queue, and the dead letter is gone.
func TestDashboardReplaysWithChanges(t *testing.T) {
	r := startRunning(t)
	r.dead(1)
	_, page := r.visit("/dead-letter/edit?vhost=/&name=orders.dead&seq=1", nil)
	require.Contains(t, page, ">\norder\n0</textarea>")
	form := fieldsOf(page)
	form.Set("routing_key", "orders")
	form.Set("properties", `{"message_id": "m-new", "expiration": "3600000"}`)
	form.Set("body", "put\r\nright")
	other := url.Values{"queue": {"99"}}
	for name := range form {
		if name != "queue" {
			other.Set(name, form.Get(name))
		}
	}
	status, _ := r.visit("/dead-letter/edit", other)
	require.Equal(t, http.StatusNotFound, status, "a queue of that name that was made since")
	_, page = r.visit("/dead-letter/edit", form)
	require.Contains(t, page, "What has changed")
	form.Set("do", "send")
	_, page = r.visit("/dead-letter/edit", form)
	require.Contains(t, page, "1 message replayed.")
	require.Contains(t, page, "no dead letters")
	_, page = r.visit("/queue?vhost=/&name=orders&bodies=1", nil)
	require.Contains(t, page, "put\nright")
	require.Contains(t, page, "m-new")
}

// TestReplaysAreTheirOwnersOnTheDashboard: a user with the tag monitoring who may read the queue sees and cancels their own replays, but not those of an
// administrator.
func TestReplaysAreTheirOwnersOnTheDashboard(t *testing.T) {
	r := startRunning(t)
	r.dead(3)
	asEye := func(method, path, body string) (int, string) {
		contentType := "application/json"
		if !strings.HasPrefix(path, "/api/") {
			contentType = "application/x-www-form-urlencoded"
		}
		return r.askAs("eye", "p", method, path, contentType, strings.NewReader(body))
	}
	for _, put := range [][2]string{
		{"/api/users/eye", `{"password":"p","tags":"monitoring"}`}, {"/api/permissions/%2F/eye", `{"configure":"","write":"","read":".*"}`},
	} {
		status, answer := r.ask(http.MethodPut, put[0], "application/json", strings.NewReader(put[1]))
		require.Equal(t, http.StatusCreated, status, answer)
	}
	r.ok("dlq", "replay", "orders.dead", "--rate", "0.01", "--background")
	link := regexp.MustCompile(`/runs/cancel\?id=([0-9a-f-]+)`)
	_, page := r.visit("/runs", nil)
	admins := link.FindStringSubmatch(page)[1]
	_, page = asEye(http.MethodGet, "/runs", "")
	require.NotContains(t, page, admins)

	status, answer := asEye(http.MethodPost, "/api/curfew/deadletters/%2F/orders.dead/replay", `{"rate":0.01}`)
	require.Equal(t, http.StatusAccepted, status, answer)
	_, page = asEye(http.MethodGet, "/runs", "")
	require.NotContains(t, page, admins)
	own := link.FindStringSubmatch(page)
	require.Contains(t, answer, own[1])
	_, page = asEye(http.MethodGet, own[0], "")
	form := fieldsOf(page)
	other := url.Values{"token": form["token"], "id": {admins}}
	status, _ = asEye(http.MethodPost, "/runs/cancel", other.Encode())
	require.Equal(t, http.StatusNotFound, status)
	status, _ = asEye(http.MethodPost, "/runs/cancel", form.Encode())
	require.Equal(t, http.StatusOK, status)
	require.Regexp(t, admins+` .*running`, r.ok("dlq", "runs"))
	require.Regexp(t, form.Get("id")+` .*cancelled`, r.ok("dlq", "runs"))
}

// TestDashboardMovesDeadLettersInFiles: what is exported and deleted comes back by import.
func TestDashboardMovesDeadLettersInFiles(t *testing.T) {
	r := startRunning(t)
	r.dead(3)
	const letters = "/dead-letter?vhost=/&name=orders.dead"
	_, file := r.visit("/dead-letters/export?vhost=/&name=orders.dead", nil)
	require.Equal(t, 3, strings.Count(file, "\n"))
	_, page := r.visit(letters, nil)
	form := fieldsOf(page)
	_, page = r.visit("/dead-letters/purge", form)
	require.Contains(t, page, "Delete 3 messages for good?")
	form = fieldsOf(page)
	form.Set("confirm", "3")
	_, page = r.visit("/dead-letters/purge", form)
	require.Contains(t, page, "3 messages deleted.")

	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, name := range []string{"token", "vhost", "name"} {
		require.NoError(t, w.WriteField(name, form.Get(name)))
	}
	part, err := w.CreateFormFile("file", "letters.jsonl")
	require.NoError(t, err)
	_, err = io.WriteString(part, file+"no JSON\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	status, page := r.ask(http.MethodPost, "/dead-letters/import", w.FormDataContentType(), &body)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, page, "3 messages imported, then: line 4")
	_, page = r.visit(letters, nil)
	require.Equal(t, 3, strings.Count(page, `name="pick"`))
}
