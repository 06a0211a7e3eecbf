package node

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"curfew/broker/management"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/audit"
	"curfew/monitor/dashboard"
	"curfew/monitor/history"
	"curfew/monitor/rabbitmq"
)

// curfewPrefix is the prefix of the paths of Curfew's own API.
const curfewPrefix = "/api/curfew"

// apiRoute is a route of Curfew's own API that is about more than the broker. All others are in broker/management.
type apiRoute struct {
	method, path string           // the path is below curfewPrefix
	there        func(*Node) bool // reports whether the node has the part that the route is about
	handler      func(*Node, *opsEndpoints) http.Handler
	doc          rest.Doc
}

// apiRoutes are the routes of curfewAPI.
func apiRoutes() []apiRoute {
	return []apiRoute{
		{http.MethodGet, "/status", always, statusHandler, rest.Doc{ID: "getStatus", Summary: "The state of this Curfew on one screen", Answer: Status{}}},
		{http.MethodGet, "/alerts", hasMonitor, alertHandler, rest.Doc{
			ID: "listAlerts", Summary: "The alerts that are not over, and the state of each sink", Text: partOfMonitor, Answer: alert.Overview{},
		}},
		{http.MethodGet, "/alerts/rules", hasMonitor, alertHandler, rest.Doc{
			ID: "listAlertRules", Summary: "The rules in force", Text: partOfMonitor, Answer: alert.RuleList{},
		}},
		{http.MethodPost, "/alerts/test", hasMonitor, changeHandler(testSinks).of, rest.Doc{
			ID: "testAlerts", Summary: "Send a test to one sink or to all", Text: partOfMonitor, Body: alert.TestRequest{}, Answer: alert.TestResults{},
		}},
		{http.MethodGet, "/silences", hasMonitor, alertHandler, rest.Doc{
			ID: "listSilences", Summary: "The silences in force, the first to expire first", Text: partOfMonitor, Answer: alert.SilenceList{},
		}},
		{http.MethodPost, "/silences", hasMonitor, changeHandler(addSilence).of, rest.Doc{
			ID: "addSilence", Summary: "Silence alerts for a time", Text: "It needs `duration` or `expires_at`; `id` and `created_at` are ignored. " + partOfMonitor,
			Body: alert.SilenceRequest{}, Answer: alert.Silence{}, Created: true,
		}},
		{http.MethodDelete, "/silences/{id}", hasMonitor, changeHandler(endSilence).of, rest.Doc{ID: "endSilence", Summary: "End a silence", Text: partOfMonitor}},
		{http.MethodGet, "/forecasts", hasMonitor, forecastHandler, rest.Doc{
			ID: "listForecasts", Summary: "What will miss its deadline, in each queue that has deadlines",
			Text: "Those with the most expected misses come first. " + partOfMonitor, Answer: []monitor.Forecast{},
		}},
		{http.MethodGet, "/history", always, historyHandler, rest.Doc{
			ID: "getHistory", Summary: "The last day of one queue or of all together",
			Text: "Point n begins at `from` + n × `step`. The interval that has not ended is left out. 404: the queue has no history.",
			Query: []rest.Parameter{
				{Name: "vhost", Text: "The queue's virtual host; `/` if only `queue` is given.", Value: ""},
				{Name: "queue", Text: "One queue; without it, all together.", Value: ""},
				{Name: "span", Text: "How far back it goes: 1m to 24h, such as 6h. The default is 1h.", Value: ""},
				{Name: "points", Text: "The most points of the answer: 1 to 1440, which is also the default.", Value: int64(0)},
			},
			Answer: history.Answer{},
		}},
		{http.MethodGet, "/audit", hasAudit, auditHandler, rest.Doc{
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
		{http.MethodGet, "/rabbitmq", hasRabbitMQ, rabbitmqHandler, rest.Doc{
			ID: "getRabbitMQ", Summary: "What is done with the queues of a RabbitMQ", Text: onlyRabbitMQ, Answer: rabbitmq.Status{},
		}},
		{http.MethodPost, "/rabbitmq/allow", hasRabbitMQ, changeHandler(allowQueue).of, rest.Doc{
			ID: "allowQueue", Summary: "Let a queue be kept again that was let go", Text: "404: the queue was not let go. " + onlyRabbitMQ, Body: allowedQueue{}, Answer: allowedQueue{},
		}},
		{http.MethodPost, "/rabbitmq/pause", hasRabbitMQ, changeHandler(pauseRabbitMQ).of, rest.Doc{
			ID: "pauseRabbitMQ", Summary: "Give back all that is held, and keep no queue until that is resumed", Text: onlyRabbitMQ,
		}},
		{http.MethodPost, "/rabbitmq/resume", hasRabbitMQ, changeHandler(resumeRabbitMQ).of, rest.Doc{
			ID: "resumeRabbitMQ", Summary: "Keep queues again after a pause", Text: "404: nothing is paused. " + onlyRabbitMQ,
		}},
		{http.MethodGet, "/openapi.json", always, openAPIHandler, rest.Doc{
			ID: "getOpenAPI", Summary: "This document", Text: "It has the routes that this Curfew serves.", Answer: map[string]any{},
		}},
	}
}

const (
	partOfMonitor = "Not served with `CURFEW_MONITOR=false`."
	onlyRabbitMQ  = "Only beside a RabbitMQ (`CURFEW_PRIMARY_URL`)."
)

func always(*Node) bool        { return true }
func hasMonitor(n *Node) bool  { return n.alerts != nil }
func hasAudit(n *Node) bool    { return n.audit != nil }
func hasRabbitMQ(n *Node) bool { return n.rabbitmq != nil }

func statusHandler(n *Node, o *opsEndpoints) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, n.status(o)) })
}

func alertHandler(n *Node, _ *opsEndpoints) http.Handler {
	return http.StripPrefix(curfewPrefix, n.alerts.Handler())
}

func forecastHandler(n *Node, _ *opsEndpoints) http.Handler { return http.HandlerFunc(n.forecasts) }
func historyHandler(n *Node, _ *opsEndpoints) http.Handler  { return n.history.Handler() }
func auditHandler(n *Node, _ *opsEndpoints) http.Handler    { return n.audit.Handler() }

func rabbitmqHandler(n *Node, _ *opsEndpoints) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, n.rabbitmq.Status()) })
}

// brokerRoutes are the routes of Curfew's own API that broker/management serves.
func brokerRoutes() (list []rest.Route) {
	for _, one := range management.Routes() {
		if strings.HasPrefix(one.Path, curfewPrefix+"/") {
			list = append(list, one)
		}
	}
	return list
}

// APIRoutes are all routes of Curfew's own API, whether or not a node serves them. They are for documentation and tests.
func APIRoutes() (all []rest.Route) {
	all = brokerRoutes()
	for _, one := range apiRoutes() {
		op := operate.ChangeAlerts
		if one.method == http.MethodGet {
			op = operate.LookAround
		}
		all = append(all, rest.Route{Method: one.method, Path: curfewPrefix + one.path, Op: op, Doc: one.doc})
	}
	return all
}

// pages handles all requests on the sockets of API and dashboard.
func (n *Node) pages(api *management.API, ui *dashboard.Dashboard, o *opsEndpoints) *web {
	pages := newWeb()
	pages.mount("/api", api.Handler())
	for _, part := range apiParts(n) {
		pages.mount(part, api.Guard(n.curfewAPI(o)))
	}
	pages.mount("/", ui.Handler())
	return pages
}

// curfewAPI is the part of Curfew's own API that is in apiRoutes. It has to be behind a guard, which finds out who asks and whether they may look.
func (n *Node) curfewAPI(o *opsEndpoints) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, one := range ownRoutes(n) {
		mux.Handle(one.method+" "+curfewPrefix+one.path, one.handler(n, o))
		methods[one.path] = append(methods[one.path], one.method)
	}
	for path, allowed := range methods {
		mux.HandleFunc(curfewPrefix+path, func(w http.ResponseWriter, r *http.Request) {
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
		if one.there(n) {
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

// forecasts answers with the forecast of each queue that has deadlines, the one with the most
// expected misses first.
func (n *Node) forecasts(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	all := n.monitor.Forecasts()
	if all == nil {
		all = []monitor.Forecast{}
	}
	_ = json.NewEncoder(w).Encode(all) // it fails only if the client is gone
}
