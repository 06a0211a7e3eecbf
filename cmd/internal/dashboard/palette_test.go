package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/broker/server"
)

// hits are the places that the palette offers for a text.
func (s *site) hits(text string) (list []hit) {
	s.Helper()
	a := s.get("/find?q=" + url.QueryEscape(text))
	require.Equal(s, http.StatusOK, a.status)
	require.NoError(s, json.Unmarshal([]byte(a.body), &list))
	return list
}

// TestThePaletteFindsQueuesExchangesAndPages: the nearest first, at most twenty.
func TestThePaletteFindsQueuesExchangesAndPages(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"old orders", "orders", "Orders.eu", "reorder", "other"} {
		s.queue("/", name, nil)
	}
	vh, _ := s.b.VHost("/")
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Read: ".*", Write: ".*"}))
	require.NoError(t, s.b.RightsOf("root", "/").DeclareExchange(vh, "orders.in", broker.ExchangeDeclare{Kind: "topic"}))
	s.logIn("root")
	require.Equal(t, []hit{
		{"orders", "queue", "/", "/queue?name=orders&vhost=%2F"}, {"Orders.eu", "queue", "/", "/queue?name=Orders.eu&vhost=%2F"},
		{"orders.in", "exchange", "/", "/exchange?name=orders.in&vhost=%2F"}, {"reorder", "queue", "/", "/queue?name=reorder&vhost=%2F"},
		{"old orders", "queue", "/", "/queue?name=old+orders&vhost=%2F"},
	}, s.hits("Order"))
	require.Equal(t, []hit{{"Users", "page", "", "/users"}}, s.hits("users"))
	require.Len(t, s.hits(""), 12, "the pages")
	for i := range 30 {
		s.queue("/", fmt.Sprint("many", i), nil)
	}
	require.Len(t, s.hits("many"), maxHits)
	require.Empty(t, s.hits("none of that name"))
	require.Equal(t, "/vhosts", s.hits("virtual")[0].URL)
	require.Contains(t, s.get("/").body, `id="palette"`)
}

// TestThePaletteFindsOnlyWhatAUserMaySee.
func TestThePaletteFindsOnlyWhatAUserMaySee(t *testing.T) {
	s := newSite(t)
	s.queue("/", "orders", nil)
	s.logIn("eye")
	require.Empty(t, s.hits("users"))
	require.Len(t, s.hits("orders"), 1, "who monitors sees all virtual hosts")
	s.post("/logout", nil)
	require.Equal(t, "/login", s.get("/find?q=orders").path)
	require.NotContains(t, s.get("/login").body, `id="palette"`)
}

// TestFindLooksWhereTheActorMay: into the virtual hosts where the user has permissions, or into all for those who monitor.
func TestFindLooksWhereTheActorMay(t *testing.T) {
	s := newSite(t)
	s.queue("/", "queue 1", nil)
	s.queue("/", "queue 0", nil)
	found := func(user string, tags ...string) int {
		return len(findNames(s.d.Operations, operate.Actor{Name: user, Tags: tags}, "queue", maxHits))
	}
	require.Zero(t, found("nobody", access.Management))
	require.Equal(t, 2, found("eye", access.Monitoring))
	require.Equal(t, 2, found("root", access.Management))
}

// BenchmarkFind is a letter typed into the palette, with 50,000 queues.
func BenchmarkFind(b *testing.B) {
	of, err := broker.New(broker.Options{})
	require.NoError(b, err)
	defer of.Close()
	vh, _ := of.VHost("/")
	for i := range 50_000 {
		_, err := vh.Queues.Declare(nil, fmt.Sprint("queue ", i), broker.QueueDeclare{Durable: true})
		require.NoError(b, err)
	}
	o := operate.New(operate.Options{Broker: of, Server: server.New(server.Options{Broker: of})})
	defer o.Close()
	for b.Loop() {
		if n := len(findNames(o, operate.Actor{Name: "eye", Tags: []string{access.Monitoring}}, "e 4", maxHits)); n != maxHits {
			b.Fatal(n)
		}
	}
}
