package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// TestOneFilterOnAllFaces: the same text selects the same dead letters in the API, in an address of it, by the command and on the page; and what is wrong
// with a text is said in the same words.
func TestOneFilterOnAllFaces(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	ch := openChannel(t, dial(t, c.url))
	_, err := ch.QueueDeclare("dead", true, false, false, false, nil)
	check(t, err)
	_, err = ch.QueueDeclare("work", true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 0})
	check(t, err)
	for i := range 6 {
		check(t, ch.PublishWithContext(t.Context(), "", "work", false, false, amqp091.Publishing{
			MessageId: fmt.Sprint("m", i), Headers: amqp091.Table{"tenant": string(rune('a' + i%2)), "n": i}, Body: fmt.Appendf(nil, `{"customer":{"id":%d},"tags":["t%d"],"name":"Björn"}`, i, i),
		}))
	}
	eventually(t, startLimit, "dead letters", func() bool {
		q, err := ch.QueueDeclarePassive("dead", true, false, false, false, nil)
		return err == nil && q.Messages == 6
	})
	f := faces{t, c, logIn(t, c)}
	for filter, want := range map[string]string{
		``: "m0 m1 m2 m3 m4 m5",
		`reason == "expired" && headers["tenant"] == "a" && json.customer.id > 0`:                   "m2 m4",
		`any(json.tags, # in ["t1", "t5"]) and died > ago("1h")`:                                    "m1 m5",
		`body contains "Björn" && body matches "\"id\":[34]" || message_id == 'm0'`:                 "m0 m3 m4",
		`headers.n >= 4 && !(queue != "work") && type == "" && deaths[0].routing_keys[0] == "work"`: "m4 m5",
		`seq in [1, 6]`: "m0 m5",
	} {
		for face, selects := range map[string]func(string) string{"API": f.api, "address": f.address, "command": f.command, "page": f.page} {
			if got := selects(filter); got != want {
				t.Errorf("%s: by the %s it selects %q, not %q", filter, face, got, want)
			}
		}
	}
	const wrong, says = `reasn == "expired"`, `filter, character 1: there is no field "reasn"; did you mean reason?`
	for face, selects := range map[string]func(string) string{"API": f.api, "address": f.address, "command": f.command, "page": f.page} {
		if got := selects(wrong); !strings.Contains(got, says) {
			t.Errorf("the %s says %q", face, got)
		}
	}
}

// faces select dead letters by a filter. Each method returns their ids in the order of delivery, or what is wrong with the filter.
type faces struct {
	t      *testing.T
	c      *curfew
	client *http.Client
}

func (f *faces) api(filter string) string {
	body, err := json.Marshal(map[string]any{"filter": filter, "count": 100})
	check(f.t, err)
	return f.search("", string(body))
}

func (f *faces) address(filter string) string {
	return f.search("?filter="+url.QueryEscape(filter), `{"count":100}`)
}

func (f *faces) search(query, body string) string {
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.c.http+"/api/curfew/deadletters/%2F/dead/search"+query, strings.NewReader(body))
	check(f.t, err)
	r.SetBasicAuth("guest", "guest")
	return idsIn(f.read(r))
}

func (f *faces) command(filter string) string {
	cmd := exec.CommandContext(f.t.Context(), mustBinary(f.t, release), "dlq", "search", "dead", "--filter", filter, "--count", "100", "-o", "json", "--url", f.c.http, "--user", "guest")
	cmd.Env = append(environment(nil), "CURFEW_PASSWORD=guest")
	out, _ := cmd.CombinedOutput() // it fails for a wrong filter
	return idsIn(string(out))
}

func (f *faces) page(filter string) string {
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.c.http+"/dead-letter?vhost=/&name=dead&order=oldest&filter="+url.QueryEscape(filter), http.NoBody)
	check(f.t, err)
	text := f.read(r)
	if wrong := regexp.MustCompile(`class="wrong"[^>]*>([^<]*)<`).FindStringSubmatch(text); wrong != nil {
		return strings.ReplaceAll(wrong[1], "&#34;", `"`)
	}
	var ids []string
	for _, m := range regexp.MustCompile(`<a class="what"[^>]*>(m\d)<`).FindAllStringSubmatch(text, -1) {
		ids = append(ids, m[1])
	}
	return strings.Join(ids, " ")
}

func (f *faces) read(r *http.Request) string {
	answer, err := f.client.Do(r)
	check(f.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(f.t, err)
	return string(text)
}

// idsIn are the ids of the messages in an answer of JSON, or the answer.
func idsIn(text string) string {
	if !strings.Contains(text, `"payload_bytes"`) {
		if plain := regexp.MustCompile(`"reason":("(?:[^"\\]|\\.)*")`).FindStringSubmatch(text); plain != nil {
			_ = json.Unmarshal([]byte(plain[1]), &text)
		}
		return text
	}
	var ids []string
	for _, m := range regexp.MustCompile(`"message_id": ?"(m\d)"`).FindAllStringSubmatch(text, -1) {
		ids = append(ids, m[1])
	}
	return strings.Join(slices.Compact(ids), " ")
}

// logIn returns a client with a session of the dashboard.
func logIn(t *testing.T, c *curfew) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check(t, err)
	client := &http.Client{Jar: jar}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.http+"/login", strings.NewReader(url.Values{"name": {"guest"}, "password": {"guest"}, "to": {"/"}}.Encode()))
	check(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(r)
	check(t, err)
	check(t, answer.Body.Close())
	return client
}
