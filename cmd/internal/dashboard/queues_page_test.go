package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/monitor"
)

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
		s.monitor.forecasts = append(s.monitor.forecasts, monitor.Forecast{VHost: "/", Queue: fmt.Sprintf("queue.%05d", i), Deadlines: i, AtRisk: i % 7})
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
		s.b.Reschedule(q.Ref(&x), 1)
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
