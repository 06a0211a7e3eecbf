package dashboard

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/cmd/internal/dashboard/internal/letters"
)

var (
	areaPattern = regexp.MustCompile(`(?s)<textarea name="([^"]+)"[^>]*>\n?(.*?)</textarea>`)
	textPattern = regexp.MustCompile(`<input name="([^"]+)" value="([^"]*)"`)
)

const maxEdited = 256 << 10 // as on the page

func editURL(vhost, queue string, seq uint64) string {
	return letters.EditPath + "?" + url.Values{"vhost": {vhost}, "name": {queue}, "seq": {strconv.FormatUint(seq, 10)}}.Encode()
}

// sent confirms what a review shows.
func (s *site) sent(form url.Values) answer {
	s.Helper()
	review := s.post(letters.EditPath, form)
	if review.status != http.StatusOK {
		return review
	}
	confirmed := formWith(review.body, "doing")
	confirmed.Set("do", "send")
	return s.post(letters.EditPath, confirmed)
}

// filledIn is a page's form as a browser sends it: its lines end with CR LF.
func filledIn(page string) url.Values {
	form := hiddenForm(page)
	for name := range form {
		form.Set(name, strings.ReplaceAll(strings.ReplaceAll(form.Get(name), "\r\n", "\n"), "\n", "\r\n"))
	}
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
	s.dead(0)
	vh, _ := s.b.VHost("/")
	require.NoError(t, vh.Exchanges.Declare("<e>", broker.ExchangeDeclare{Kind: "fanout"}))
	q := s.queue("/", "elsewhere", nil)
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "<e>", Destination: "elsewhere"}))
	dlq, _ := vh.Queues.Get("dlq")
	for i, body := range []string{"", "plain", "\nbegins with a line\n", "a\r\nb\r\n", "a\r\nb\n", "a\rb", "\x00\xff", "</textarea><script>alert(1)</script>", "  spaces  ", "\u202eexe"} {
		p := amqp.Properties{Headers: died("k\"", "expired", "<e>"), MessageID: "a", Has: amqp.HasHeaders | amqp.HasMessageID}
		s.publish(dlq, p, body)
		a := s.get(editURL("/", "dlq", uint64(s.standing(dlq)[0].Seq)))
		require.NotContains(t, a.body, "<script>alert")
		a = s.sent(filledIn(a.body))
		require.Contains(t, a.body, "1 message replayed.", "%q", body)
		require.Empty(t, s.standing(dlq))
		sent := s.standing(q)[i]
		require.Equal(t, body, string(sent.Message.Body))
		require.Equal(t, "k\"", string(sent.Message.RoutingKey))
		decoded, err := sent.Decode()
		require.NoError(t, err)
		require.Equal(t, "a", decoded.MessageID)
	}
}

func TestEdit(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(0)
	q, _ := dlq.VHost().Queues.Get("q")
	s.publish(dlq, amqp.Properties{}, "held")
	_, err := dlq.Messages.Get(false, func(*broker.Delivery) {})
	require.NoError(t, err)
	s.publish(dlq, amqp.Properties{Headers: died("q", "expired", ""), Has: amqp.HasHeaders}, "x")
	page := s.get("/dead-letter?vhost=/&name=dlq").body
	require.Contains(t, page, `href="/dead-letters/message?name=dlq&amp;seq=2&amp;vhost=%2F"`)
	require.Contains(t, s.get("/dead-letters/message?name=dlq&seq=2&vhost=/").body, `href="/dead-letter/edit?name=dlq&amp;seq=2&amp;vhost=%2F"`)
	held := s.get("/dead-letters/message?name=dlq&seq=1&vhost=/").body
	require.Contains(t, held, "a consumer has it")
	require.NotContains(t, held, letters.EditPath)
	form := filledIn(s.get(editURL("/", "dlq", 2)).body)
	form.Set("routing_key", "nowhere")
	a := s.post(letters.EditPath, form)
	require.Contains(t, a.body, "would stay where it is, like those that would reach no queue")
	require.NotContains(t, a.body, `value="send"`)
	form.Set("do", "send")
	a = s.post(letters.EditPath, form)
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "stays where it is, like those that would reach no queue")
	require.Contains(t, a.body, `name="routing_key" value="nowhere"`, "the form is as it was filled in")
	form.Del("do")
	form.Set("form", "base64")
	form.Set("body", "?")
	require.Contains(t, s.post(letters.EditPath, form).body, "not valid base64")
	form.Set("form", "")
	require.Equal(t, http.StatusBadRequest, s.post(letters.EditPath, form).status)
	require.Equal(t, http.StatusNotFound, s.get(editURL("/", "dlq", 7)).status)

	s.publish(dlq, amqp.Properties{Headers: died("q", "expired", ""), Has: amqp.HasHeaders}, strings.Repeat("\x00", maxEdited))
	form = filledIn(s.get(editURL("/", "dlq", 3)).body)
	require.Equal(t, "/dead-letter", s.sent(form).path, "the largest fits into a form")
	s.publish(dlq, amqp.Properties{Headers: died("q", "expired", ""), Has: amqp.HasHeaders}, strings.Repeat("\x00", maxEdited+1))
	require.Contains(t, s.get(editURL("/", "dlq", 4)).body, "larger than 256 KiB")
	require.Len(t, s.standing(q), 1)

	form.Set("seq", "2")
	s.logIn("eye")
	require.Contains(t, s.get(editURL("/", "dlq", 2)).body, "may not read")
	require.Equal(t, http.StatusForbidden, s.post(letters.EditPath, form).status)
	form.Set("token", s.ownToken())
	require.Equal(t, http.StatusForbidden, s.post(letters.EditPath, form).status)
	require.Len(t, s.standing(q), 1)
}

// The memory for a long form is asked for before it is read, and given back.
func TestLongFormsAreAskedFor(t *testing.T) {
	s := newSite(t).logIn("root")
	s.dead(1)
	form := filledIn(s.get(editURL("/", "dlq", 1)).body)
	clients := s.b.Clients
	all := clients.Open("other", func(error) {})
	require.NoError(t, all.Take(clients.Limit))
	roots := clients.Open("root", func(error) {})
	a := s.post(letters.EditPath, form)
	all.Close()
	roots.Close()
	if a.status != http.StatusOK { // otherwise the client that held most has given way
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.Contains(t, a.body, "try again")
	}
	require.Zero(t, clients.Used())
}

// TestPackedBodiesAreEditedAsText, and packed again: the very bytes if the text was not changed, otherwise as the content-encoding says.
func TestPackedBodiesAreEditedAsText(t *testing.T) {
	for _, encoding := range []string{"gzip", "deflate", "zstd"} {
		s := newSite(t).logIn("root")
		dlq := s.dead(0)
		q, _ := dlq.VHost().Queues.Get("q")
		packed, err := deadletters.Pack(encoding, []byte(`{"order": 7}`), nil)
		require.NoError(t, err)
		for range 3 {
			s.publish(dlq, amqp.Properties{Headers: died("q", "expired", ""), ContentEncoding: encoding, Has: amqp.HasHeaders | amqp.HasContentEncoding}, string(packed))
		}
		page := s.get(editURL("/", "dlq", 1)).body
		require.Contains(t, page, "{&#34;order&#34;: 7}")
		require.Contains(t, page, "packed again")
		require.Contains(t, s.sent(filledIn(page)).body, "1 message replayed.")
		require.Equal(t, packed, s.standing(q)[0].Message.Body, "the same bytes")

		form := filledIn(s.get(editURL("/", "dlq", 2)).body)
		form.Set("body", `{"order": 8}`)
		review := s.post(letters.EditPath, form).body
		require.Contains(t, review, "8")
		require.Contains(t, s.sent(form).body, "1 message replayed.")
		plain, _, err := deadletters.Unpack(encoding, s.standing(q)[1].Message.Body, 1000)
		require.NoError(t, err)
		require.JSONEq(t, `{"order": 8}`, string(plain))

		form = filledIn(s.get(editURL("/", "dlq", 3)).body)
		form.Set("properties", "{}")
		require.Contains(t, s.sent(form).body, "1 message replayed.")
		require.JSONEq(t, `{"order": 7}`, string(s.standing(q)[2].Message.Body), "without the content-encoding it is not packed")
	}
}
