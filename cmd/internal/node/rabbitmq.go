package node

import (
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/settings"
	"curfew/monitor/dashboard"
	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/scheduler/redisstore"
)

// openRabbitMQ makes the primary that is a RabbitMQ. It does not connect.
func (n *Node) openRabbitMQ() (err error) {
	c := n.settings
	if unused := c.Unused(); len(unused) > 0 {
		n.log.Warn("no broker runs beside RabbitMQ, so these settings have no effect", zap.Strings("unused", unused))
	}
	o := rabbitmq.Options{Name: string(c.Instance), Expiries: n.expiries(), Registerer: n.metrics, Log: n.log}
	if o.Watch, err = c.WatchRules(); err != nil {
		return err
	}
	at := c.Primary()
	at.Name, at.Log = "curfew "+string(c.Instance), n.log
	if o.Cluster, err = cluster.Open(at); err != nil {
		return settings.Error{Err: fmt.Errorf("CURFEW_PRIMARY_URL, CURFEW_PRIMARY_API_URL: %w", err)}
	}
	if c.RedisURL != "" {
		redis.SetLogger(redisLogger{n.log.Named("redis")})
		if n.leases, err = redisstore.NewClient(string(c.RedisURL)); err != nil {
			return fmt.Errorf("CURFEW_REDIS_URL: %w", err)
		}
		o.Redis = n.leases
	}
	n.looker.vhost = o.Cluster.Address().VHost()
	n.rabbitmq, err = rabbitmq.New(o)
	return err
}

// startGrace is how long after the start nothing is reported, since the queues have not been looked at yet.
const startGrace = 5 * time.Second

// pagesWithoutBroker handles all requests on the sockets of API and dashboard where no broker runs.
func (n *Node) pagesWithoutBroker(ui *dashboard.Dashboard, o *opsEndpoints) *web {
	pages := newWeb()
	pages.mount("/api", http.HandlerFunc(notHere))
	guarded := guard(n.users(), n.curfewAPI(o))
	for _, part := range apiParts(n) {
		pages.mount(part, guarded)
	}
	pages.mount("/", ui.Handler())
	return pages
}

// notHere answers for paths of a broker.
func notHere(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusNotFound, map[string]string{"error": "not_found",
		"reason": "no broker runs here: Curfew runs beside the RabbitMQ of CURFEW_PRIMARY_URL, which has a management API of its own"})
}

// guard lets users in: beside RabbitMQ there is one, who is an administrator. The handlers find the actor in the request's context.
func guard(users dashboard.Users, next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, ok := r.BasicAuth()
		var u access.User
		if ok {
			var err error
			u, err = users.Authenticate(r.Context(), name, password, peer(r))
			ok = err == nil
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="Curfew", charset="UTF-8"`)
			answer(w, http.StatusUnauthorized, map[string]string{"error": "not_authorized", "reason": "Login failed"})
			return
		}
		next.ServeHTTP(w, r.WithContext(operate.WithActor(r.Context(), operate.ActorOf(&u, operate.API))))
	}))
}
