package management

import (
	"net/http"
	"regexp"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"curfew/broker/deadline"
	"curfew/broker/management/rest"
	"curfew/broker/policy"
	"curfew/broker/server"
)

// The scrape paths of RabbitMQ's Prometheus plugin, by the endpoint in rabbitmq_identity_info.
const (
	aggregated = "aggregated"
	perObject  = "per-object"
	detailed   = "detailed"
)

// Metrics answers on the paths of RabbitMQ's Prometheus plugin: on /metrics, together with what own gathers, and on /metrics/per-object and
// /metrics/detailed, by the names that RabbitMQ's dashboards and alerts use (RabbitMQ: Monitoring with Prometheus and Grafana). It asks for no
// credentials and shows no message data. Everything is counted elsewhere; a scrape only reads it.
func (a *API) Metrics(own prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		all := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			if err := a.server.Turns.Take(r.Context()); err != nil {
				return nil, err
			}
			defer a.server.Turns.End()
			return prometheus.Gatherers{own, a.gatherer(&view{endpoint: aggregated})}.Gather()
		})
		promhttp.HandlerFor(all, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /metrics/per-object", func(w http.ResponseWriter, r *http.Request) {
		a.scrapeObjects(w, r, &view{endpoint: perObject})
	})
	mux.HandleFunc("GET /metrics/detailed", func(w http.ResponseWriter, r *http.Request) {
		v, err := detailedView(r)
		if err != nil {
			http.Error(w, "queue: "+err.Error(), http.StatusBadRequest)
			return
		}
		a.scrapeObjects(w, r, v)
	})
	return mux
}

// scrapeObjects answers with the metrics of every object, in Prometheus's text format. They
// are written as they are made, since a registry would hold all of them in memory.
func (a *API) scrapeObjects(w http.ResponseWriter, r *http.Request, v *view) {
	if a.server.Turns.Take(r.Context()) != nil {
		return
	}
	defer a.server.Turns.End()
	s := &rest.Stream{Turns: a.server.Turns, W: w, Kind: string(expfmt.NewFormat(expfmt.TypeTextPlain))}
	few, err := a.gatherer(v).Gather()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, f := range few {
		if _, err := expfmt.MetricFamilyToText(&s.Buf, f); err != nil {
			s.Fail(err)
		}
		s.Pass()
	}
	(&collector{a, v}).objects(s)
	s.End()
}

func (a *API) gatherer(v *view) prometheus.Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{a, v})
	return r
}

// view selects the metrics of one scrape.
type view struct {
	endpoint string
	families []string       // of detailed; the others show all
	vhosts   []string       // none: all
	queue    *regexp.Regexp // nil: all
}

// detailedView reads family=, vhost= and queue=; the first two may be given more than once.
func detailedView(r *http.Request) (*view, error) {
	q := r.URL.Query()
	v := &view{endpoint: detailed, families: q["family"], vhosts: q["vhost"]}
	if text := q.Get("queue"); text != "" {
		if len(text) > rest.MaxNameFilter {
			text = text[:rest.MaxNameFilter]
		}
		pattern, err := policy.Linear(text)
		if err != nil {
			return nil, err
		}
		v.queue = pattern
	}
	return v, nil
}

func (v *view) shows(family string) bool {
	return v.endpoint != detailed || slices.Contains(v.families, family)
}

func (v *view) prefix() string {
	if v.endpoint == detailed {
		return "rabbitmq_detailed_"
	}
	return "rabbitmq_"
}

// collector makes the metrics of one view, again for each scrape.
type collector struct {
	*API
	*view
}

// Describe implements prometheus.Collector. It is not known beforehand which metrics there will be.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := sink{ch: ch, prefix: "rabbitmq_"}
	c.identity(&s)
	if c.endpoint != detailed {
		c.node(&s)
		c.global(&s)
	}
	s.prefix = c.prefix()
	c.queues(&s)
	c.connections(&s)
	c.churn(&s)
	s.prefix = "rabbitmq_cluster_"
	c.exchanges(&s)
}

// sink receives metrics.
type sink struct {
	ch     chan<- prometheus.Metric
	prefix string
}

func (s *sink) add(kind prometheus.ValueType, name, help string, v float64, labels ...label) {
	var names, values []string
	for _, l := range labels {
		names, values = append(names, l.name), append(values, deadline.Label(l.value))
	}
	s.ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(s.prefix+name, help, names, nil), kind, v, values...)
}

func (s *sink) gauge(name, help string, v float64, labels ...label) {
	s.add(prometheus.GaugeValue, name, help, v, labels...)
}

func (s *sink) counter(name, help string, v uint64, labels ...label) {
	s.add(prometheus.CounterValue, name, help, float64(v), labels...)
}

type label struct{ name, value string }

// counted is a counter with its value.
type counted struct {
	name, help string
	n          uint64
}

// counters adds those of a table, whose names have a beginning in common.
func (s *sink) counters(begin string, labels []label, table ...counted) {
	for _, m := range table {
		s.counter(begin+m.name, m.help, m.n, labels...)
	}
}

// identity shows the metrics that dashboards join everything else to.
func (c *collector) identity(s *sink) {
	id, _ := c.b.GlobalParameters()[clusterIDParameter].(string)
	s.gauge("identity_info", "RabbitMQ node & cluster identity info", 1,
		label{"rabbitmq_node", c.Node}, label{"rabbitmq_cluster", c.clusterName()},
		label{"rabbitmq_cluster_permanent_id", id}, label{"rabbitmq_endpoint", c.endpoint})
	s.gauge("build_info", "RabbitMQ & Erlang/OTP version info", 1,
		label{"rabbitmq_version", server.RabbitMQVersion}, label{"erlang_version", runtime.Version()}, label{"prometheus_plugin_version", server.RabbitMQVersion},
		label{"prometheus_client_version", "client_golang"}, label{"product_name", "Curfew"}, label{"product_version", c.Version})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// node shows what the process uses, and its limits.
func (c *collector) node(s *sink) {
	memory, disk := c.Broker.Alarm.Low()
	openFiles, maxFiles := descriptors()
	diskFree, diskLimit := c.disk()
	s.gauge("alarms_memory_used_watermark", "is 1 if VM memory watermark alarm is in effect", truth(memory))
	s.gauge("alarms_free_disk_space_watermark", "is 1 if free disk space watermark alarm is in effect", truth(disk))
	s.gauge("alarms_file_descriptor_limit", "is 1 if file descriptor limit alarm is in effect", 0)
	s.gauge("erlang_uptime_seconds", "Node uptime", c.Now().Sub(c.started).Seconds())
	s.gauge("process_open_fds", "Open file descriptors", float64(openFiles))
	s.gauge("process_max_fds", "Open file descriptors limit", float64(maxFiles))
	s.gauge("process_open_tcp_sockets", "Open TCP sockets", float64(c.Server.Connections()))
	s.gauge("process_max_tcp_sockets", "Open TCP sockets limit", float64(maxFiles))
	s.gauge("process_resident_memory_bytes", "Memory used in bytes", float64(c.Broker.Alarm.MemoryInUse()))
	s.gauge("resident_memory_limit_bytes", "Memory high watermark in bytes", float64(c.memoryLimit()))
	s.gauge("disk_space_available_bytes", "Disk space available in bytes", float64(diskFree))
	s.gauge("disk_space_available_limit_bytes", "Free disk space low watermark in bytes", float64(diskLimit))
}

// churn shows how often connections, channels and queues were opened and closed.
func (c *collector) churn(s *sink) {
	if !c.shows("connection_churn_metrics") {
		return
	}
	t, srv := c.Broker.Stats(), &c.Server.Totals
	s.counters("", nil,
		counted{"connections_opened_total", "Total number of connections opened", srv.ConnectionsOpened.Load()},
		counted{"connections_closed_total", "Total number of connections closed or terminated", srv.ConnectionsClosed.Load()},
		counted{"channels_opened_total", "Total number of channels opened", srv.ChannelsOpened.Load()},
		counted{"channels_closed_total", "Total number of channels closed", srv.ChannelsClosed.Load()},
		counted{"queues_declared_total", "Total number of queues declared", t.QueuesDeclared},
		counted{"queues_created_total", "Total number of queues created", t.QueuesCreated},
		counted{"queues_deleted_total", "Total number of queues deleted", t.QueuesDeleted})
}

// exchanges shows exchanges if the view names their family.
func (c *collector) exchanges(s *sink) {
	if c.endpoint != detailed {
		return
	}
	for _, vh := range c.Broker.VHosts() {
		if len(c.vhosts) > 0 && !slices.Contains(c.vhosts, vh.Name()) {
			continue
		}
		if c.shows("vhost_status") {
			s.gauge("vhost_status", "Whether a given vhost is running", 1, label{"vhost", vh.Name()})
		}
		for _, x := range vh.Exchanges.List() {
			labels := []label{{"vhost", vh.Name()}, {"exchange", x.Name}, {"type", x.Kind}}
			if c.shows("exchange_bindings") {
				s.gauge("exchange_bindings", "Number of bindings for an exchange. This value is cluster-wide.", float64(x.Bindings), labels...)
			}
			if c.shows("exchange_names") {
				s.gauge("exchange_name", "Enumerates exchanges without any additional info. This value is cluster-wide.", 1, labels...)
			}
		}
	}
}
