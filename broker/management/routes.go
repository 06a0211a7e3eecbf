package management

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"curfew/broker/access"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/broker/server"
)

const (
	get    = http.MethodGet
	put    = http.MethodPut
	post   = http.MethodPost
	remove = http.MethodDelete
)

// route is a path and method of the API; see rest.Route.
type route struct {
	method, path string
	op           operate.Operation
	need         operate.Role
	handle       func(*request) error
	body, weight int64
	first        func(*request) error
	doc          rest.Doc // of routes below /api/curfew
}

// request is a request that is being answered.
type request struct {
	*rest.Request
	api   *API
	asked spans
}

// Routes returns the routes of the API in the form that rest serves. Those of a nil API are for documentation.
func (a *API) Routes() (table []rest.Route) {
	for _, one := range slices.Concat(nodeRoutes, healthRoutes, connectionRoutes, exchangeRoutes, queueRoutes, bindingRoutes, userRoutes, policyRoutes) {
		served := rest.Route{
			Method: one.method, Path: one.path, Op: one.op, Need: one.need, Body: one.body, Weight: one.weight, Doc: one.doc,
			Handle: func(r *rest.Request) error {
				if strings.Contains(one.path, "{node}") && !a.isNode(r.Param("node")) {
					return rest.ErrNotFound
				}
				asked, err := readSpans(r.HTTP.URL.Query())
				if err != nil {
					return err
				}
				return one.handle(&request{r, a, asked})
			},
		}
		if one.first != nil {
			served.First = func(r *rest.Request) error { return one.first(&request{Request: r, api: a}) }
		}
		table = append(table, served)
	}
	return append(append(table, rest.Derived(operate.Those(func(op *operate.Op) bool { return !op.OfNode }))...), letterRoutes...)
}

// object is a JSON object.
type object = rest.Object

var nodeRoutes = []route{
	{method: get, path: "/api/overview", need: management, handle: overview},
	{method: get, path: "/api/whoami", need: management, handle: whoami},
	{method: get, path: "/api/version", need: management, handle: func(r *request) error { return r.Answer(server.RabbitMQVersion) }},
	{method: get, path: "/api/cluster-name", need: management, handle: func(r *request) error { return r.One(object{"name": r.api.clusterName()}) }},
	{method: put, path: "/api/cluster-name", op: admin.SetGlobalParameter.Name, handle: putClusterName},
	{method: get, path: "/api/extensions", need: management, handle: emptyList},
	{method: get, path: "/api/feature-flags", need: management, handle: featureFlags},
	{method: put, path: "/api/feature-flags/{name}/enable", need: administrator, handle: enableFeatureFlag},
	{method: get, path: "/api/nodes", need: monitor, handle: listNodes},
	{method: get, path: "/api/nodes/{node}", need: monitor, handle: getNode},
	{method: get, path: "/api/nodes/{node}/memory", need: monitor, handle: func(r *request) error { return r.One(object{"memory": r.api.memoryObject()}) }},
	{method: get, path: "/api/nodes/{node}/memory/relative", need: monitor, handle: nodeMemoryRelative},
	{method: get, path: "/api/shovels", need: monitor, handle: emptyList},
	{method: get, path: "/api/shovels/{vhost}", need: monitor, handle: emptyList},
	{method: get, path: "/api/federation-links", need: monitor, handle: emptyList},
	{method: get, path: "/api/federation-links/{vhost}", need: monitor, handle: emptyList},
	{method: get, path: "/api/federation-links/state/down", need: monitor, handle: emptyList},
	{method: get, path: "/api/federation-links/{vhost}/state/down", need: monitor, handle: emptyList},
	{method: post, path: "/api/rebalance/queues", need: administrator, handle: done}, // there is one node
	{method: get, path: "/api/vhosts", need: management, handle: listVHosts},
	{method: get, path: "/api/vhosts/{vhost}", need: management, handle: getVHost},
	{method: post, path: "/api/vhosts/{vhost}/start/{node}", need: administrator, handle: done}, // it runs
	{method: post, path: "/api/vhosts/{vhost}/deletion/protection", op: admin.ChangeVHost.Name, handle: protectVHost},
	{method: remove, path: "/api/vhosts/{vhost}/deletion/protection", op: admin.ChangeVHost.Name, handle: protectVHost},
}

var healthRoutes = []route{
	{method: get, path: "/api/health/checks/alarms", need: management, handle: checkAlarms},
	{method: get, path: "/api/health/checks/local-alarms", need: management, handle: checkAlarms},
	{method: get, path: "/api/health/checks/virtual-hosts", need: management, handle: healthy},
	{method: get, path: "/api/health/checks/node-is-quorum-critical", need: management, handle: checkCritical},
	{method: get, path: "/api/health/checks/node-is-mirror-sync-critical", need: management, handle: checkCritical},
	{method: get, path: "/api/health/checks/metadata-store/initialized", need: management, handle: healthy},
	{method: get, path: "/api/health/checks/metadata-store/initialized/with-data", need: management, handle: healthy},
	{method: get, path: "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}", need: management, handle: healthy},
	{method: get, path: "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}", need: management, handle: healthy},
	{method: get, path: "/api/health/checks/reached-target-cluster-size", need: management, handle: healthy},
	{method: get, path: "/api/health/checks/below-node-connection-limit", need: management, handle: checkConnections},
	{method: get, path: "/api/health/checks/is-in-service", need: management, handle: checkService},
	{method: get, path: "/api/health/checks/ready-to-serve-clients", need: management, handle: checkService},
	{method: get, path: "/api/health/checks/port-listener/{port}", need: management, handle: checkPort},
	{method: get, path: "/api/health/checks/protocol-listener/{protocol}", need: management, handle: checkProtocol},
	{method: get, path: "/api/health/checks/certificate-expiration/{within}/{unit}", need: management, handle: checkCertificates},
	{method: get, path: "/api/healthchecks/node", need: management, handle: checkNode},
	{method: get, path: "/api/healthchecks/node/{node}", need: management, handle: checkNode},
	{method: get, path: "/api/aliveness-test/{vhost}", op: operate.TryMessage, handle: aliveness},
}

var connectionRoutes = []route{
	{method: get, path: "/api/connections", op: operate.ListConnections, handle: listConnections},
	{method: get, path: "/api/connections/{connection}", op: operate.ListConnections, handle: getConnection},
	{method: remove, path: "/api/connections/{connection}", op: admin.CloseConnection.Name, handle: closeConnections},
	{method: get, path: "/api/connections/{connection}/channels", op: operate.ListConnections, handle: connectionChannels},
	{method: get, path: "/api/connections/username/{user}", op: operate.ListConnections, handle: listConnections},
	{method: remove, path: "/api/connections/username/{user}", op: operate.CloseConnections, handle: closeConnections},
	{method: get, path: "/api/vhosts/{vhost}/connections", op: operate.ListConnections, handle: listConnections},
	{method: get, path: "/api/channels", op: operate.ListConnections, handle: listChannels},
	{method: get, path: "/api/channels/{channel}", op: operate.ListConnections, handle: getChannel},
	{method: get, path: "/api/vhosts/{vhost}/channels", op: operate.ListConnections, handle: listChannels},
	{method: get, path: "/api/consumers", op: operate.ListQueues, handle: listConsumers},
	{method: get, path: "/api/consumers/{vhost}", op: operate.ListQueues, handle: listConsumers},
}

var exchangeRoutes = []route{
	{method: get, path: "/api/exchanges", op: admin.ListExchanges.Name, handle: listExchanges},
	{method: get, path: "/api/exchanges/{vhost}", op: admin.ListExchanges.Name, handle: listExchanges},
	{method: get, path: "/api/exchanges/{vhost}/{exchange}", op: admin.ListExchanges.Name, handle: getExchange},
	{method: get, path: "/api/exchanges/{vhost}/{exchange}/bindings/source", op: admin.ListBindings.Name, handle: bindingsFrom},
	{method: get, path: "/api/exchanges/{vhost}/{exchange}/bindings/destination", op: admin.ListBindings.Name, handle: bindingsTo},
	{method: post, path: "/api/exchanges/{vhost}/{exchange}/publish", op: operate.Publish, handle: publish, body: maxPublish, weight: rest.MessageWeight, first: mayPublish},
}

var queueRoutes = []route{
	{method: get, path: "/api/queues", op: operate.ListQueues, handle: listQueues},
	{method: get, path: "/api/queues/detailed", op: operate.ListQueues, handle: listQueues},
	{method: get, path: "/api/queues/{vhost}", op: operate.ListQueues, handle: listQueues},
	{method: get, path: "/api/queues/{vhost}/{queue}", op: operate.ListQueues, handle: getQueue},
	{method: remove, path: "/api/queues/{vhost}/{queue}/contents", op: operate.PurgeQueue.Name, handle: purgeQueue},
	{method: post, path: "/api/queues/{vhost}/{queue}/get", op: operate.Get, handle: getMessages},
	{method: get, path: "/api/queues/{vhost}/{queue}/bindings", op: admin.ListBindings.Name, handle: queueBindings},
}

var bindingRoutes = []route{
	{method: get, path: "/api/bindings", op: admin.ListBindings.Name, handle: allBindings},
	{method: get, path: "/api/bindings/{vhost}", op: admin.ListBindings.Name, handle: allBindings},
	{method: get, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}", op: admin.ListBindings.Name, handle: bindingsBetween},
	{method: post, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}", op: admin.Bind.Name, handle: bind},
	{method: get, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}/{props}", op: admin.ListBindings.Name, handle: getBinding},
	{method: remove, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}/{props}", op: admin.Unbind.Name, handle: unbind},
}

var userRoutes = []route{
	{method: get, path: "/api/users/without-permissions", op: admin.ListUsers.Name, handle: usersWithoutPermissions},
	{method: post, path: "/api/users/bulk-delete", op: admin.DeleteUser.Name, handle: deleteUsers},
	{method: get, path: "/api/auth", need: management, handle: func(r *request) error { return r.One(object{"oauth_enabled": false}) }},
	{method: get, path: "/api/auth/attempts/{node}", need: monitor, handle: authAttempts},
	{method: remove, path: "/api/auth/attempts/{node}", need: administrator, handle: resetAttempts},
	// RabbitMQ has none, either, unless track_auth_attempt_source is set: whoever guesses passwords could fill the memory with names and addresses.
	{method: get, path: "/api/auth/attempts/{node}/source", need: monitor, handle: emptyList},
	{method: remove, path: "/api/auth/attempts/{node}/source", need: administrator, handle: resetAttempts},
	{method: get, path: "/api/auth/hash_password/{password}", need: administrator, handle: func(r *request) error {
		return r.One(object{"ok": base64.StdEncoding.EncodeToString(access.Hash(r.Param("password")))}) // as in definitions
	}},
}

var policyRoutes = []route{
	{method: get, path: "/api/definitions", op: operate.ExportDefinitions, handle: exportDefinitions},
	{method: post, path: "/api/definitions", op: operate.ImportDefinitions, handle: importDefinitions, body: maxDefinitions},
	{method: get, path: "/api/all-configuration", op: operate.ExportDefinitions, handle: exportDefinitions}, // the old name
	{method: post, path: "/api/all-configuration", op: operate.ImportDefinitions, handle: importDefinitions, body: maxDefinitions},
	{method: get, path: "/api/definitions/{vhost}", op: operate.ExportVHostDefinitions, handle: exportDefinitions},
	{method: post, path: "/api/definitions/{vhost}", op: operate.ImportDefinitions, handle: importDefinitions, body: maxDefinitions},
}
