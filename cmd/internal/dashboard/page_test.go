package dashboard

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// changing are links to pages whose forms change something in a virtual host.
var changing = regexp.MustCompile(`href="(/(?:publish|queue/(?:new|get|purge|delete)|exchange/(?:new|delete)|binding/(?:new|delete)|deadline))(?:\?[^"]*)?"`)

// offered are the paths of the changing links on all pages that somebody may look at.
func offered(s *site, queue string) map[string]bool {
	paths := map[string]bool{}
	for path := range s.d.pages {
		if path == "/queue" || path == "/exchange" {
			path = ui.At(path, "vhost", "/", "name", queue)
		}
		for _, found := range changing.FindAllStringSubmatch(s.get(path).body, -1) {
			paths[found[1]] = true
		}
	}
	return paths
}

func TestNobodyIsOfferedWhatHeMayNotDo(t *testing.T) {
	s := newSite(t)
	q := s.queue("/", "q", nil)
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Read: ".*", Write: ".*"}))
	vh, _ := s.b.VHost("/")
	require.NoError(t, s.b.RightsOf("root", "/").DeclareExchange(vh, "q", broker.ExchangeDeclare{Kind: "topic"}))
	s.publish(q, amqp.Properties{}, "m")

	s.logIn("root")
	all := offered(s, "q")
	for _, path := range []string{"/publish", "/queue/new", "/queue/get", "/queue/purge", "/queue/delete", "/exchange/new", "/exchange/delete", "/binding/new"} {
		require.True(t, all[path], path)
	}
	s.logIn("eye")
	require.Empty(t, offered(s, "q"), "without permissions")
	forms := []string{"/publish", "/publish?vhost=/&key=q", "/queue/get?vhost=/&name=q", "/queue/purge?vhost=/&name=q", "/queue/delete?vhost=/&name=q"}
	for _, path := range forms {
		refused := s.get(path)
		require.Equal(t, http.StatusForbidden, refused.status, path)
		require.Contains(t, refused.body, "lacks the permission", path)
		require.NotContains(t, refused.body, "<textarea", path)
	}
	s.permit("eye", "/", ".*", "")
	reading := offered(s, "q")
	for _, path := range []string{"/queue/delete", "/exchange/delete", "/deadline"} {
		require.False(t, reading[path], path)
	}
	require.True(t, reading["/queue/get"])
	require.True(t, reading["/queue/purge"])
	for i, path := range forms {
		require.Equal(t, i != 1 && i != 4, s.get(path).status == http.StatusOK, path)
	}
}

// TestNumbersOfAMessage: what a message cannot have is told beside its field, and nothing is published.
func TestNumbersOfAMessage(t *testing.T) {
	s := newSite(t).logIn("root")
	q := s.queue("/", "q", nil)
	for _, one := range []struct{ field, typed, told string }{
		{"expiration", "-5", "A time to live is 0 or more."},
		{"expiration", "-5s", "A time to live is 0 or more."},
		{"expiration", "soon", "want a duration such as 90s"},
		{"priority", "256", "A priority is from 0 to 255."},
		{"deadline", "tomorrow", "want an instant such as"},
	} {
		form := url.Values{"token": {s.ownToken()}, "vhost": {"/"}, "key": {"q"}, "body": {"x"}, one.field: {one.typed}}
		require.Contains(t, s.post("/publish", form).body, one.told, one.typed)
	}
	require.Empty(t, s.standing(q))
}

func TestAddressesSayOnlyWhatIsKnown(t *testing.T) {
	s := newSite(t).logIn("root")
	require.Contains(t, s.get("/incidents?said=window_ended").body, "Maintenance ended.")
	require.NotContains(t, s.get("/incidents?said=free+text").body, `class="done"`)
	away := s.get("/queue?vhost=/&name=away").body
	require.Contains(t, away, "&#34;away&#34; of the virtual host &#34;/&#34; no longer exists, or never did.")
	require.Contains(t, away, `<a href="/queues">Back to: Queues</a>`)
}

// TestLostInTheLastHour is told where an expiry is a loss, and sorts.
func TestLostInTheLastHour(t *testing.T) {
	s := newSite(t)
	lost := map[string]int64{"most": 12, "some": 3, "readings": 400}
	for name := range lost {
		args := amqp.Table{}
		if name == "readings" {
			args["x-curfew-purpose"] = "telemetry"
		}
		s.queue("/", name, args)
	}
	s.queue("/", "without", nil)
	s.queue("/", "parks", amqp.Table{"x-dead-letter-exchange": "gone"})
	lost["parks"] = 0
	for name, n := range lost {
		s.hour[[2]string{"/", name}] = deadline.Toll{Expired: n + 2, Dropped: n}
	}
	s.hour[[2]string{"/", "readings"}] = deadline.Toll{Expired: 400, Meant: 400}
	page := s.logIn("root").get("/queues?sort=lost&desc=1").body
	require.Contains(t, page, `exchange gone <span class="tag warn">does not exist</span>`)
	require.Contains(t, s.get("/queue?vhost=/&name=parks").body, `dead letters → exchange gone <span class="tag warn">does not exist</span>`)
	require.Regexp(t, `(?s)name=most&amp;.*>12<.*name=some&amp;.*>3<.*name=readings&amp;`, page)
	require.NotContains(t, page, ">400<")
	for queue, want := range map[string]string{"most": `<span class="bad">12</span><div><span class="faint">2 dead-lettered</span></div>`, "parks": `<span class="faint">0</span><div><span class="warn">2 parked</span></div>`, "without": `<span class="faint">–</span>`, "readings": `<span class="faint">–</span><div><span class="faint">400 as meant</span></div>`} {
		require.Regexp(t, `Lost, last hour</\w+><\w+>`+want, s.get("/queue?vhost=/&name="+queue).body)
	}
}
