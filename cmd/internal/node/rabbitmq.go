package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

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
	n.rabbitmq, err = rabbitmq.New(o)
	return err
}

// watchRabbitMQ adds the RabbitMQ to the health.
func (n *Node) watchRabbitMQ(ops *opsEndpoints) {
	since := time.Now()
	ops.watch("rabbitmq", func() healthReport {
		reasons := n.rabbitmq.Health()
		if time.Since(since) < startGrace {
			reasons = nil
		}
		return healthReport{Reasons: reasons}
	})
}

// startGrace is how long after the start what has not been looked at yet is nothing to report.
const startGrace = 5 * time.Second

// pagesWithoutBroker handles all requests on the sockets of API and dashboard where no broker runs.
func (n *Node) pagesWithoutBroker(ui *dashboard.Dashboard, o *opsEndpoints) *web {
	pages := newWeb()
	pages.mount("/api", http.HandlerFunc(notHere))
	guarded := guard(n.users(), n.log, n.curfewAPI(o))
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

// guard lets users in who are administrators, as all are of whom there is only one, and notes what they change.
func guard(users dashboard.Users, log *zap.Logger, next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, ok := r.BasicAuth()
		if ok {
			_, err := users.Authenticate(r.Context(), name, password, peer(r))
			ok = err == nil
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="Curfew", charset="UTF-8"`)
			answer(w, http.StatusUnauthorized, map[string]string{"error": "not_authorized", "reason": "Login failed"})
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			log.Info("operation", zap.String("user", name), zap.String("method", r.Method), zap.String("path", r.URL.Path))
		}
		r.Body = http.MaxBytesReader(w, r.Body, guardedBody)
		next.ServeHTTP(w, r)
	}))
}

// guardedBody bounds the body of a request.
const guardedBody = 64 << 10

// allowedQueue names a queue that is to be kept again.
type allowedQueue struct {
	Queue string `json:"queue"`
}

// rabbitmqAPI is the part of Curfew's own API about a RabbitMQ.
type rabbitmqAPI struct{ primary *rabbitmq.Primary }

// status answers with the state of its queues.
func (a rabbitmqAPI) status(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, a.primary.Status())
}

// allow has a queue kept again that was let go of.
func (a rabbitmqAPI) allow(w http.ResponseWriter, r *http.Request) {
	var asked allowedQueue
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&asked)
	if err == nil && asked.Queue == "" {
		err = errors.New("the field queue is missing")
	}
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": "bad_request", "reason": err.Error()})
		return
	}
	switch err := a.primary.Allow(r.Context(), asked.Queue); {
	case errors.Is(err, rabbitmq.ErrNotLetGo):
		answer(w, http.StatusNotFound, map[string]string{"error": "not_found", "reason": err.Error()})
	case err != nil:
		answer(w, http.StatusServiceUnavailable, map[string]string{"error": "unavailable", "reason": strings.TrimSpace(err.Error())})
	default:
		answer(w, http.StatusOK, asked)
	}
}
