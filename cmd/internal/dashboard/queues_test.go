package dashboard

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	brokerpolicy "curfew/broker/policy"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/cmd/internal/dashboard/internal/ui"
)

var (
	hiddenPattern = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)
	rowPattern    = regexp.MustCompile(`<a href="/queue\?name=([^&"]+)`)
)

func hiddenFields(page string) (fields [][2]string) {
	for _, m := range hiddenPattern.FindAllStringSubmatch(page, -1) {
		fields = append(fields, [2]string{m[1], html.UnescapeString(m[2])})
	}
	return fields
}

// linkTo is where the link of that relation leads; "" there is none.
func linkTo(page, rel string) string {
	m := regexp.MustCompile(`rel="` + rel + `" href="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

func rows(page string) (names []string) {
	for _, m := range rowPattern.FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestQueuesAreSortedFilteredAndPaged(t *testing.T) {
	s := newSite(t).logIn("eye")
	_, _, err := s.b.PutVHost("", "other", broker.VHostMetadata{})
	require.NoError(t, err)
	for i := range 2*ui.PageRows + 1 {
		vhost := "/"
		if i == 7 {
			vhost = "other"
		}
		q := s.queue(vhost, fmt.Sprintf("q%03d", i), nil)
		if i == 2*ui.PageRows {
			s.publish(q, amqp.Properties{}, "")
		}
	}
	s.foresee(deadline.Forecast{VHost: "/", Queue: "q003", AtRisk: 9, Deadlines: 12})

	var all []string
	for path := "/queues?sort=name"; path != ""; {
		a := s.get(path)
		all = append(all, rows(a.body)...)
		path = linkTo(a.body, "next")
	}
	require.Len(t, all, 2*ui.PageRows+1)
	require.Equal(t, "q000", all[0])
	require.IsIncreasing(t, all)

	body := s.get("/queues").body
	require.Equal(t, []string{"q003", "q000"}, rows(body)[:2])
	require.Contains(t, body, "what is worst")
	require.Equal(t, "q100", rows(s.get("/queues?sort=ready").body)[0])
	require.Equal(t, "q100", rows(s.get("/queues?sort=ready&desc=1").body)[0])
	require.Equal(t, "q003", rows(s.get("/queues?sort=miss&desc=1").body)[0])
	form := formWith(s.get("/queues?sort=name&desc=1").body, "filter")
	form.Set("sort", "name")
	require.Equal(t, "q100", rows(s.get("/queues?" + form.Encode()).body)[0], "the form keeps the direction")
	form.Set("sort", "ready")
	form.Set("desc", "0")
	require.Equal(t, "q100", rows(s.get("/queues?" + form.Encode()).body)[0], "which was that of another column")
	require.Equal(t, []string{"q070", "q071"}, rows(s.get("/queues?q=Q07&sort=name").body)[:2])
	require.Equal(t, []string{"q007"}, rows(s.get("/queues?vhost=other").body))
	require.Contains(t, s.get("/queues?q=nothing").body, "Show all")
	require.Len(t, rows(s.get("/queues?page=99999&sort=nonsense").body), 1, "the last page")
}

func TestNoQueues(t *testing.T) {
	empty := newSite(t).logIn("eye").get("/queues").body
	require.Contains(t, empty, "declare a queue")
	require.Contains(t, empty, "curfew demo --against")
}

func TestPeek(t *testing.T) {
	s := newSite(t).logIn("root")
	q := s.queue("/", "q", nil)
	for i := range peekRows + 1 {
		s.publish(q, amqp.Properties{Expiration: "60000", Has: amqp.HasExpiration}, fmt.Sprint("secret body ", i))
	}
	_, err := q.Messages.Get(false, func(*broker.Delivery) {}) // the first is held past its deadline
	require.NoError(t, err)
	x := s.standing(q)[0]
	s.b.Reschedule(q.Messages.Ref(&x), 1)
	a := s.get("/queue?vhost=/&name=q")
	require.NotContains(t, a.body, "secret body", "bodies only when asked for")
	require.Contains(t, a.body, "past its deadline")
	a = s.get("/queue?vhost=/&name=q&bodies=1")
	require.Contains(t, a.body, "secret body 19")
	require.NotContains(t, a.body, "secret body 20")
	a = s.get(linkTo(a.body, "next"))
	require.Contains(t, a.body, "secret body 20")
	require.Empty(t, linkTo(a.body, "next"))

	a = s.logIn("eye").get("/queue?vhost=/&name=q&bodies=1")
	require.Equal(t, http.StatusOK, a.status)
	require.NotContains(t, a.body, "secret body", "that takes the permission to read")
	require.Contains(t, a.body, "may not read")
}

// TestAnEmptyQueueThatIsFilled is not deleted with what has arrived before somebody has seen that.
func TestAnEmptyQueueThatIsFilled(t *testing.T) {
	s := newSite(t).logIn("root")
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	q := s.queue("/", "filled", nil)
	form := url.Values{"token": {s.ownToken()}, "vhost": {"/"}, "name": {"filled"}, "queue": {fmt.Sprint(q.ID)}, "asked": {"0"}}
	s.publish(q, amqp.Properties{}, "m")
	a := s.post("/queue/delete", form)
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "more than the 0 that may be deleted")
	require.Contains(t, a.body, `name="asked" value="1"`)
	require.Len(t, s.standing(q), 1)
	form.Set("asked", "1")
	form.Set("confirm", "1")
	a = s.post("/queue/delete", form)
	require.Equal(t, "/queues", a.path)
	require.Contains(t, a.body, "Queue deleted.")
}

// TestDeadLettersThatGoWithAQueue are said and have to be confirmed, though the queue has no messages.
func TestDeadLettersThatGoWithAQueue(t *testing.T) {
	s := newSite(t).logIn("root")
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	q := s.queue("/", "own", amqp.Table{"x-dead-letter-queue": true})
	dead, err := q.VHost().Queues.Get("own/$deadletterqueue")
	require.NoError(t, err)
	s.publish(dead, amqp.Properties{}, "dead")
	page := s.get("/queue/delete?vhost=/&name=own").body
	require.Contains(t, page, `<dt>Dead letters</dt><dd><span class="bad"><b>1</b></span></dd>`)
	require.Contains(t, page, "Type 1 to confirm")
	form := url.Values{"token": {s.ownToken()}, "vhost": {"/"}, "name": {"own"}, "queue": {fmt.Sprint(q.ID)}, "asked": {"0"}}
	a := s.post("/queue/delete", form)
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "has 1 messages and dead letters, more than the 0 that may be deleted")
	require.Len(t, s.standing(dead), 1)
	form.Set("asked", "1")
	form.Set("confirm", "1")
	require.Equal(t, "/queues", s.post("/queue/delete", form).path)
}

// TestQueueSaysHowLongMessagesLive: under its title stand the time to live in force, what set it, and where dead letters go.
func TestQueueSaysHowLongMessagesLive(t *testing.T) {
	s := newSite(t).logIn("root")
	vh, _ := s.b.VHost("/")
	_, err := vh.Policies.Set(brokerpolicy.User, brokerpolicy.Policy{Name: "short", Pattern: "^by-", Definition: brokerpolicy.Definition{"message-ttl": int64(30_000)}})
	require.NoError(t, err)
	s.queue("/", "by-policy", nil)
	s.queue("/", "by-argument", amqp.Table{"x-message-ttl": int64(5000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "late"})
	s.queue("/", "free", amqp.Table{"x-dead-letter-exchange": "dlx"})
	for name, want := range map[string][]string{
		"by-policy":   {"Time to live </b>30s (policy short)", "messages that expire are lost"},
		"by-argument": {"Time to live </b>5s (argument x-message-ttl", `dead letters → <a href="/queue?name=late&amp;vhost=%2F">late</a>`},
		"free":        {"Time to live </b>none: only each message", "dead letters → exchange dlx"},
	} {
		page := s.get("/queue?vhost=/&name=" + name).body
		for _, text := range want {
			require.Contains(t, page, text, name)
		}
	}
}

// TestClientsHaveWhatTheyHold: in the lists of connections and consumers, and on the page of a connection.
func TestClientsHaveWhatTheyHold(t *testing.T) {
	s := newSite(t)
	q := s.queue("/", "orders", nil)
	for range 2 {
		s.publish(q, amqp.Properties{Expiration: "60000", Has: amqp.HasExpiration}, "")
	}
	s.dial("stuck", "/", "orders")
	for _, x := range s.standing(q) {
		s.b.Reschedule(q.Messages.Ref(&x), 1)
	}
	one, two := ui.At("/connection", "name", s.server.List()[0].Name), `<span class="bad"><b>2</b></span>`
	s.logIn("eye")
	for path, texts := range map[string][]string{
		"/connections":               {">stuck</a>", two, `title="nothing holds it up">running<`},
		"/connections?q=RUNNING":     {">stuck</a>"},
		"/connections?q=nobody":      {"Nothing matches."},
		"/consumers":                 {">stuck</a>", two, `href="/queue?name=orders&amp;vhost=%2F"`},
		"/queue?vhost=/&name=orders": {">stuck</a>", two},
		one:                          {"<h1>stuck</h1>", two, ">Channels</h2>", ">Consumers</h2>", "<dt>Heartbeat</dt>", "<dt>Unacked</dt><dd>2</dd>"},
	} {
		page := s.get(path).body
		for _, text := range texts {
			require.Contains(t, page, text, path)
		}
		require.NotContains(t, page, "/connection/close", "only its user or an administrator may")
	}
	require.Contains(t, s.logIn("root").get(one).body, "/connection/close?name=")
	require.Equal(t, http.StatusNotFound, s.get("/connection?name=none").status)
}

// TestDeadLettersThatGoWithAVirtualHost are said, though no queue counts them.
func TestDeadLettersThatGoWithAVirtualHost(t *testing.T) {
	s := newSite(t).logIn("root")
	q := s.queue("/", "orders", amqp.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": "gone", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
	s.publish(q, amqp.Properties{}, "x")
	require.NotContains(t, s.get("/vhost/delete?name=/").body, "<dt>Dead letters</dt>")
	require.Equal(t, deadline.Expired, s.b.FireNow(q.Messages.Ref(&s.standing(q)[0]), false))
	require.Contains(t, s.get("/vhost/delete?name=/").body, "<dt>Dead letters</dt><dd>1</dd>")
}

// TestMessagesThatWaitForAnotherTry are among those that a deletion would lose, and are seen in the grid.
func TestMessagesThatWaitForAnotherTry(t *testing.T) {
	s := newSite(t).logIn("root")
	q := s.queue("/", "jobs", amqp.Table{"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": int64(3_600_000)})
	s.publish(q, amqp.Properties{}, "")
	ch, err := s.dial("worker", "/").Channel()
	require.NoError(t, err)
	d, ok, err := ch.Get("jobs", false)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, d.Nack(false, true))
	require.NoError(t, ch.Close()) // the answer comes after it
	require.Contains(t, s.get("/queue/delete?vhost=/&name=jobs").body, `<dt>Messages</dt><dd><span class="bad"><b>1</b></span></dd>`)
	require.Contains(t, s.get("/").body, "jobs: 1 waiting, 0 ready")
}

const (
	manyQueues  = 10_000
	manyLetters = 100_000
)

// TestPagesOfManyQueues: what a page takes does not grow with what the broker holds. The work is counted in allocations, which are the same on a
// busy machine; the time is printed.
func TestPagesOfManyQueues(t *testing.T) {
	s := newSite(t)
	for i := range manyQueues {
		s.queue("/", fmt.Sprintf("queue.%05d", i), amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		s.monitor.forecasts = append(s.monitor.forecasts, deadline.Forecast{VHost: "/", Queue: fmt.Sprintf("queue.%05d", i), Deadlines: i, AtRisk: i % 7})
	}
	vh, err := s.b.VHostOf(s.queue("/", "dlq", nil))
	require.NoError(t, err)
	publisher := vh.OwnPublisher()
	publisher.ForTool = true
	properties := (&amqp.Properties{Headers: died("queue.00001", "expired", ""), Has: amqp.HasHeaders}).Append(nil)
	for i := range manyLetters {
		_, err := publisher.Add(&broker.Publication{RoutingKey: []byte("dlq"), Properties: properties, Body: []byte("abc")})
		require.NoError(t, err)
		if i%1000 == 999 {
			publisher.Flush(nil)
		}
	}
	s.logIn("root")
	for _, path := range []string{
		"/", "/queues", "/queues?sort=miss&desc=1", "/queues?q=queue.00", "/queue?vhost=/&name=queue.00007", "/dead-letters", "/dead-letters/message?vhost=/&name=dlq&seq=5",
		"/connections", "/consumers", "/exchanges", "/vhosts", "/policies", "/users", "/publish",
	} {
		ask := func() {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.AddCookie(s.cookie())
			w := httptest.NewRecorder()
			s.d.Handler().ServeHTTP(w, r)
			require.Equal(t, http.StatusOK, w.Code, path)
			require.Less(t, w.Body.Len(), 200_000, path)
		}
		var took []time.Duration
		for range 7 {
			began := time.Now()
			ask()
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		allocations := testing.AllocsPerRun(1, ask)
		for range 4 { // on a slow machine a sample of all rates falls into some of them
			allocations = min(allocations, testing.AllocsPerRun(1, ask))
		}
		t.Logf("%-50s %6.0f allocations, median %v, most %v", path, allocations, took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
		most := 15_000.0
		if path == "/" {
			most = 40_000 // with a thousand cells
		}
		require.Less(t, allocations, most, path)
	}
}

// TestQueuesNameTheirClients: a queue says who consumes it, and who of them holds messages past their deadlines, up to a number of names.
func TestQueuesNameTheirClients(t *testing.T) {
	s := newSite(t)
	q := s.queue("/", "orders", nil)
	for range 2 {
		s.publish(q, amqp.Properties{Expiration: "60000", Has: amqp.HasExpiration}, "")
	}
	s.dial("stuck", "/", "orders")
	for _, x := range s.standing(q) {
		s.b.Reschedule(q.Messages.Ref(&x), 1)
	}
	require.Contains(t, s.logIn("eye").get("/queues").body, ">stuck</a><span class=\"bad\"> holds 2 past deadline</span>")

	var list []operate.Consumer
	for _, name := range []string{"billing", "mail", "mail", "reports", "shop", "stock"} {
		list = append(list, operate.Consumer{Client: operate.Client{Name: name}})
	}
	text, err := markup(topology.Clients(list))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), ">mail<"))
	require.Contains(t, string(text), "and 2 more")
	require.NotContains(t, string(text), "shop")
}
