package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/deadline"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard"
	"curfew/monitor"
	"curfew/monitor/history"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
	"curfew/scheduler/redisstore"
)

// rabbitmqPrimary is RabbitMQ, whose messages are kept or observed. No broker runs here.
type rabbitmqPrimary struct {
	n        *Node
	vhost    string // that is watched
	rabbitmq *rabbitmq.Primary
	user     *oneUser
}

// open implements primary. It does not connect.
func (b *rabbitmqPrimary) open() (err error) {
	n, c := b.n, b.n.settings
	b.user = &oneUser{guard: broker.LoginGuard{GuestFromAnywhere: !c.GuestLoopbackOnly}, user: access.User{
		Name: c.User, PasswordHash: access.Hash(c.Password), Algorithm: access.SHA256, Tags: []string{access.Administrator}}}
	if unused := c.Unused(); len(unused) > 0 {
		n.log.Warn("no broker runs beside RabbitMQ, so these settings have no effect", zap.Strings("unused", unused))
	}
	o := rabbitmq.Options{
		Name: c.Instance, Expiries: n.expiries(), Registerer: n.metrics, Log: n.log, Watch: n.inputs.watch, Cluster: n.inputs.cluster,
	}
	if c.RedisURL != "" {
		redis.SetLogger(redisLogger{n.log.Named("redis")})
		leases, err := redisstore.NewClient(string(c.RedisURL))
		if err != nil {
			return fmt.Errorf("CURFEW_REDIS_URL: %w", err)
		}
		n.closers = append(n.closers, leases.Close)
		o.Redis = leases
	}
	b.vhost = o.Cluster.Address.VHost
	b.rabbitmq, err = rabbitmq.New(o)
	n.allow, n.unreached = b.rabbitmq, func() string {
		s := b.rabbitmq.Status()
		return s.Unreached()
	}
	return err
}

// openMonitor implements primary. RabbitMQ and the keepers fire: the monitor only reports.
func (b *rabbitmqPrimary) openMonitor() (watcher, error) {
	return monitor.New(monitor.Options{
		Source: b.rabbitmq, Pending: b.rabbitmq, Keeps: b.rabbitmq.Keeps, Record: b.n.incidents.Record, Log: b.n.log, Registerer: b.n.metrics,
	})
}

// serve implements primary.
func (b *rabbitmqPrimary) serve(ctx context.Context, _ []net.Listener) error {
	return b.rabbitmq.Run(ctx)
}

// queues implements primary: those that have a forecast.
func (*rabbitmqPrimary) queues(forecasts []deadline.Forecast, fn func(*history.Queue)) history.Stats {
	for _, f := range forecasts {
		fn(&history.Queue{VHost: f.VHost, Name: f.Queue, Depth: f.Ready, AtRisk: f.AtRisk, Consumers: f.Consumers})
	}
	return history.Stats{}
}

// status implements primary.
func (b *rabbitmqPrimary) status(s *Status, _ deadline.Hour) {
	s.Primary = b.n.settings.PrimaryURL.Redacted()
}

// describe implements primary.
func (b *rabbitmqPrimary) describe(string) []string {
	leases := "none: only one Curfew may keep these queues (CURFEW_REDIS_URL is empty)"
	if url := b.n.settings.RedisURL; url != "" {
		leases = url.Redacted()
	}
	return []string{
		"  RabbitMQ  " + b.n.settings.PrimaryURL.Redacted(),
		"  Leases    " + leases,
		"  Look      curfew rabbitmq status",
	}
}

// startGrace is how long after the start nothing is reported, since the queues have not been looked at yet.
const startGrace = 5 * time.Second

// look implements primary: what is wrong with the RabbitMQ, and with queues there.
func (b *rabbitmqPrimary) look(s *incident.State) {
	s.Lacks = []string{"connections", "consumers", "dlq", "policy", "queue"}
	if b.n.audit == nil {
		s.Lacks = append(s.Lacks, "audit")
	}
	if time.Since(b.n.openedAt) <= startGrace {
		return
	}
	for _, c := range b.rabbitmq.Conditions() {
		if c.Affected == "" {
			s.RabbitMQ = append(s.RabbitMQ, c.Reason)
		} else {
			s.NotKept = append(s.NotKept, incident.NotKept{QueueName: incident.QueueName{VHost: b.vhost, Name: c.Affected}, Reason: c.Reason})
		}
	}
	for _, q := range b.rabbitmq.Overdue() {
		s.Overdue = append(s.Overdue, incident.PastDeadline{QueueName: incident.QueueName{VHost: q.VHost, Name: q.Queue}, Count: q.Overdue, FirstDeadlineAt: q.OverdueSince})
	}
}

// pages implements primary.
func (b *rabbitmqPrimary) pages(ops *opsEndpoints, _ *sockets) (*dashboard.Dashboard, *web, error) {
	d := b.n.dashboardOptions()
	d.Users, d.RabbitMQ = b.user, b.rabbitmq
	ui, err := dashboard.New(d)
	if err != nil {
		return nil, nil, err
	}
	notHere := func(w http.ResponseWriter, _ *http.Request) { // for paths of a broker
		answer(w, http.StatusNotFound, map[string]string{"error": "not_found",
			"reason": "no broker runs here: Curfew runs beside the RabbitMQ of CURFEW_PRIMARY_URL, which has a management API of its own"})
	}
	return ui, b.n.mount(http.HandlerFunc(notHere), guard(b.user, b.withDelays(b.n.curfewAPI(ops))), ui), nil
}

// waitingRoutes are those of the operations on delay queues.
func waitingRoutes() []rest.Route {
	return rest.Derived(operate.Those(func(op *operate.Op) bool { return op.NoBroker }))
}

// scheduledPath begins the paths of the operations on delay queues.
const scheduledPath = curfewPrefix + "/scheduled"

// withDelays adds the operations that need no broker.
func (b *rabbitmqPrimary) withDelays(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	waiting := rest.WithoutBroker(operate.New(operate.Options{Delays: delays{b.rabbitmq}, Recorder: b.n.recorder, Log: b.n.log}), waitingRoutes())
	mux.Handle(scheduledPath, waiting)
	mux.Handle(scheduledPath+"/", waiting)
	return mux
}

// delays implements operate.Delays.
type delays struct{ rabbitmq *rabbitmq.Primary }

// ListDelays implements operate.Delays.
func (d delays) ListDelays(queue, id string, before time.Time, limit int) (rows []operate.DelayRow, err error) {
	all, err := d.rabbitmq.Delays(queue, id, before, limit)
	for _, m := range all {
		rows = append(rows, operate.DelayRow{ID: m.ID, Key: m.Key, To: m.To, DueMillis: m.Due.UnixMilli(), Known: string(m.Known)})
	}
	if n := d.rabbitmq.UnlistedDelays(queue); err == nil && id == "" && len(rows) < limit && n != 0 {
		text := "an unknown number of"
		if n > 0 {
			text = strconv.FormatInt(n, 10)
		}
		rows = append(rows, operate.DelayRow{Known: text + " more are put aside, by RabbitMQ's statistics"})
	}
	return rows, refused(err)
}

// CancelDelay implements operate.Delays.
func (d delays) CancelDelay(queue, id string) error {
	return refused(d.rabbitmq.ChangeDelay(queue, id, true, 0))
}

// Reschedule implements operate.Delays.
func (d delays) Reschedule(queue, id string, in time.Duration) error {
	return refused(d.rabbitmq.ChangeDelay(queue, id, false, in))
}

// refused is the error of an operation for one of the RabbitMQ.
func refused(err error) error {
	if err == nil {
		return nil
	}
	if _, later := errors.AsType[*rabbitmq.Conflict](err); later {
		return &rest.Problem{Status: http.StatusConflict, Kind: "conflict", Reason: err.Error()}
	}
	return &rest.Problem{Status: http.StatusNotFound, Kind: "not_found", Reason: err.Error()}
}

// guard lets users in: beside RabbitMQ there is one, who is an administrator. The handlers find the actor in the request's context.
func guard(users dashboard.Users, next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, ok := r.BasicAuth()
		var u access.User
		if ok {
			var err error
			u, err = users.Authenticate(r.Context(), name, password, operate.AddressOf(r.RemoteAddr))
			ok = err == nil
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="Curfew", charset="UTF-8"`)
			answer(w, http.StatusUnauthorized, map[string]string{"error": "not_authorized", "reason": "Login failed"})
			return
		}
		next.ServeHTTP(w, r.WithContext(operate.WithActor(r.Context(), operate.Actor{Name: u.Name, Tags: u.Tags, Face: operate.API})))
	}))
}
