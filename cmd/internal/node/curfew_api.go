package node

import (
	"net/http"
	"slices"
	"strings"

	"curfew/broker/deadline"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/monitor/audit"
	"curfew/monitor/history"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
)

// curfewPrefix is the prefix of the paths of Curfew's own API.
const curfewPrefix = "/api/curfew"

// apiRoute is a route of Curfew's own API that is about more than the broker. All others are in broker/management.
type apiRoute struct {
	method, path string           // the path is below curfewPrefix
	there        func(*Node) bool // reports whether the node has the part that the route is about; nil: it has
	handler      func(*Node, *opsEndpoints) http.Handler
	doc          rest.Doc
}

// apiRoutes are the routes of curfewAPI.
func apiRoutes() []apiRoute {
	return []apiRoute{
		{http.MethodGet, "/status", nil, shown((*Node).status), rest.Doc{ID: "getStatus", Summary: "The state of this Curfew on one screen", Answer: Status{}}},
		{http.MethodGet, "/incidents", nil, shown(func(n *Node, _ *opsEndpoints) incident.Overview { return n.incidents.Overview() }), rest.Doc{
			ID: "listIncidents", Summary: "The verdict, the incidents that are not over, and the state of each sink", Answer: incident.Overview{},
		}},
		{http.MethodGet, "/incidents/rules", nil, shown(func(n *Node, _ *opsEndpoints) incident.RuleList { return n.incidents.Rules() }), rest.Doc{
			ID: "listIncidentRules", Summary: "The rules in force, and the conditions that can be an incident", Answer: incident.RuleList{},
		}},
		{http.MethodGet, "/maintenance", nil, shown(func(n *Node, _ *opsEndpoints) incident.WindowList {
			return incident.WindowList{Windows: n.incidents.Windows()}
		}), rest.Doc{
			ID: "listMaintenance", Summary: "The maintenance windows that are not over, the first to end first", Answer: incident.WindowList{},
		}},
		{http.MethodGet, "/forecasts", func(n *Node) bool { return n.monitor != nil }, shown(func(n *Node, _ *opsEndpoints) []deadline.Forecast {
			return append([]deadline.Forecast{}, n.incidents.View().Forecasts...)
		}), rest.Doc{
			ID: "listForecasts", Summary: "What will miss its deadline, in each queue that has deadlines",
			Text: "Those come first that lose messages sooner. " + partOfMonitor, Answer: []deadline.Forecast{},
		}},
		{http.MethodGet, "/history", nil, func(n *Node, _ *opsEndpoints) http.Handler { return n.history.Handler() }, rest.Doc{
			ID: "getHistory", Summary: "The last day of one queue or of all together",
			Text: "Point n begins at `from` + n × `step`. The interval that has not ended is left out. 404: the queue has no history.",
			Query: []rest.Parameter{
				{Name: "vhost", Text: "The queue's virtual host; `/` if only `queue` is given.", Value: ""},
				{Name: "queue", Text: "One queue; without it, all together.", Value: ""},
				{Name: "span", Text: "How far back it goes: 1m to 24h, such as 6h. The default is 1h.", Value: ""},
				{Name: "points", Text: "The most points of the answer: 1 to 1440, which is also the default.", Value: int64(0)},
				{Name: "marks", Text: "The marks_version of an earlier answer for the same span and queue: marks are left out unless there are new ones since.", Value: int64(0)},
			},
			Answer: history.Answer{},
		}},
		{http.MethodGet, "/audit", func(n *Node) bool { return n.audit != nil }, func(n *Node, _ *opsEndpoints) http.Handler { return n.audit.Handler() }, rest.Doc{
			ID: "searchAudit", Summary: "What expired or died, and what users changed", Text: "Not served with `CURFEW_AUDIT=false`, nor without a data folder.",
			Query: []rest.Parameter{
				{Name: "vhost", Text: "In this virtual host.", Value: ""},
				{Name: "queue", Text: "In this queue.", Value: ""},
				{Name: "message_id", Text: "With this message ID.", Value: ""},
				{Name: "path", Text: "What made the message expire.", Value: "", OneOf: audit.Paths},
				{Name: "outcome", Text: "What became of the message.", Value: "", OneOf: audit.Outcomes},
				{Name: "reason", Text: "Why it died; `changed` is for what users did.", Value: "", OneOf: audit.Reasons},
				{Name: "user", Text: "What this user did.", Value: ""},
				{Name: "from", Text: "From this instant on, such as 2030-01-01T08:00:00Z.", Value: ""},
				{Name: "to", Text: "Before this instant.", Value: ""},
				{Name: "min_lateness", Text: "At least this late, such as 250ms.", Value: ""},
				{Name: "order", Text: "`newest` first is the default; with `csv` and `jsonl`, `oldest` first is.", Value: "", OneOf: []string{"newest", "oldest"}},
				{Name: "limit", Text: "The most records: 1 to 10000. The default is 100, and with `csv` and `jsonl` all.", Value: int64(0)},
				{Name: "format", Text: "`json`, an array, is the default.", Value: "", OneOf: []string{"json", "jsonl", "csv"}},
			},
			Answer: []audit.Line{}, Kinds: []string{"application/json", "application/jsonl", "text/csv"},
		}},
		{http.MethodGet, "/rabbitmq", hasRabbitMQ, shown(func(n *Node, _ *opsEndpoints) rabbitmq.Status {
			return n.primary.(*rabbitmqPrimary).rabbitmq.Status()
		}), rest.Doc{
			ID: "getRabbitMQ", Summary: "What is done with the queues of RabbitMQ", Text: onlyRabbitMQ, Answer: rabbitmq.Status{},
		}},
		{http.MethodGet, "/openapi.json", nil, openAPIHandler, rest.Doc{
			ID: "getOpenAPI", Summary: "This document", Text: "It has the routes that this Curfew serves.", Answer: map[string]any{},
		}},
	}
}

const (
	partOfMonitor = "Not served with `CURFEW_MONITOR=false`."
	onlyRabbitMQ  = "Only beside RabbitMQ (`CURFEW_PRIMARY_URL`)."
)

// hasRabbitMQ: the routes are about RabbitMQ.
func hasRabbitMQ(n *Node) bool {
	_, is := n.primary.(*rabbitmqPrimary)
	return is
}

// shown answers with a part of the node.
func shown[T any](of func(*Node, *opsEndpoints) T) func(*Node, *opsEndpoints) http.Handler {
	return func(n *Node, o *opsEndpoints) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, of(n, o)) })
	}
}

// APIRoutes are all routes of Curfew's own API, whether or not a node serves them. They are for documentation and tests.
func APIRoutes() (all []rest.Route) {
	all = brokerRoutes()
	for _, one := range apiRoutes() {
		all = append(all, rest.Route{Method: one.method, Path: curfewPrefix + one.path, Op: operate.LookAround, Doc: one.doc})
	}
	return append(all, changing(nil)...)
}

// changing are the routes that change something of the node; all for nil.
func changing(n *Node) []rest.Route {
	return rest.Derived(operate.Those(func(op *operate.Op) bool {
		return op.OfNode && (n == nil || hasRabbitMQ(n) || !strings.Contains(op.Routes[0], curfewPrefix+"/rabbitmq/"))
	}))
}

// curfewAPI is the part of Curfew's own API that is in apiRoutes, and what changes the node. It has to be behind a guard, which finds out who asks and whether they may look.
func (n *Node) curfewAPI(o *opsEndpoints) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, one := range ownRoutes(n) {
		mux.Handle(one.method+" "+curfewPrefix+one.path, one.handler(n, o))
		methods[curfewPrefix+one.path] = append(methods[curfewPrefix+one.path], one.method)
	}
	changes := changing(n)
	served := rest.WithoutBroker(n.changes.Operations, changes)
	for _, one := range changes {
		mux.Handle(one.Method+" "+one.Path, served)
		methods[one.Path] = append(methods[one.Path], one.Method)
	}
	for path, allowed := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			answer(w, http.StatusMethodNotAllowed, map[string]string{"error": "method_not_allowed", "reason": r.Method + " is not for this path"})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, map[string]string{"error": "not_found", "reason": "there is no such path"})
	})
	return mux
}

// ownRoutes are those of apiRoutes that the node serves.
func ownRoutes(n *Node) (list []apiRoute) {
	for _, one := range apiRoutes() {
		if one.there == nil || one.there(n) {
			list = append(list, one)
		}
	}
	return list
}

// apiParts are the paths that ownRoutes are below.
func apiParts(n *Node) (list []string) {
	for _, one := range ownRoutes(n) {
		part, _, _ := strings.Cut(one.path[1:], "/")
		if path := curfewPrefix + "/" + part; !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}
