package management

import (
	"net/http"

	"curfew/broker/policy"
)

const (
	get    = http.MethodGet
	put    = http.MethodPut
	post   = http.MethodPost
	remove = http.MethodDelete
)

// routes are all there is.
func (a *API) routes() (table []route) {
	for _, part := range [][]route{nodeRoutes, healthRoutes, connectionRoutes, exchangeRoutes, queueRoutes, bindingRoutes, userRoutes, limitRoutes, policyRoutes, deadLetterRoutes, deadlineRoutes} {
		table = append(table, part...)
	}
	return table
}

var nodeRoutes = []route{
	{method: get, path: "/api/overview", need: management, handle: (*request).overview},
	{method: get, path: "/api/whoami", need: management, handle: (*request).whoami},
	{method: get, path: "/api/auth", need: management, handle: (*request).authConfig},
	{method: get, path: "/api/version", need: management, handle: (*request).version},
	{method: get, path: "/api/cluster-name", need: management, handle: (*request).getClusterName},
	{method: put, path: "/api/cluster-name", need: administrator, handle: (*request).putClusterName},
	{method: get, path: "/api/extensions", need: management, handle: (*request).extensions},
	{method: get, path: "/api/feature-flags", need: management, handle: (*request).featureFlags},
	{method: put, path: "/api/feature-flags/{name}/enable", need: administrator, handle: (*request).enableFeatureFlag},
	{method: get, path: "/api/deprecated-features", need: management, handle: (*request).emptyList},
	{method: get, path: "/api/deprecated-features/used", need: management, handle: (*request).emptyList},
	{method: get, path: "/api/nodes", need: monitor, handle: (*request).listNodes},
	{method: get, path: "/api/nodes/{node}", need: monitor, handle: (*request).getNode},
	{method: get, path: "/api/nodes/{node}/memory", need: monitor, handle: (*request).nodeMemory},
	{method: get, path: "/api/nodes/{node}/memory/relative", need: monitor, handle: (*request).nodeMemoryRelative},
	{method: get, path: "/api/auth/attempts/{node}", need: monitor, handle: (*request).nodeAuthAttempts},
	{method: remove, path: "/api/auth/attempts/{node}", need: monitor, handle: (*request).resetAuthAttempts},
	{method: get, path: "/api/auth/attempts/{node}/source", need: monitor, handle: (*request).nodeAuthSources},
	{method: remove, path: "/api/auth/attempts/{node}/source", need: monitor, handle: (*request).resetAuthAttempts},
	{method: remove, path: "/api/reset", need: administrator, handle: (*request).reset},
	{method: remove, path: "/api/reset/{node}", need: administrator, handle: (*request).reset},
	{method: post, path: "/api/rebalance/queues", need: administrator, handle: (*request).rebalance},
	{method: get, path: "/api/shovels", need: monitor, handle: (*request).emptyList},
	{method: get, path: "/api/shovels/{vhost}", need: monitor, handle: (*request).emptyList},
	{method: get, path: "/api/federation-links/{vhost}", need: monitor, handle: (*request).emptyList},
	{method: get, path: "/api/federation-links", need: monitor, handle: (*request).emptyList},
	{method: get, path: "/api/stream/connections", need: management, handle: (*request).emptyList},
	{method: get, path: "/api/vhosts", need: management, handle: (*request).listVHosts},
	{method: get, path: "/api/vhosts/{vhost}", need: management, handle: (*request).getVHost},
	{method: put, path: "/api/vhosts/{vhost}", need: administrator, handle: (*request).putVHost},
	{method: remove, path: "/api/vhosts/{vhost}", need: administrator, handle: (*request).deleteVHost},
	{method: post, path: "/api/vhosts/{vhost}/deletion/protection", need: administrator, handle: protectVHost(true)},
	{method: remove, path: "/api/vhosts/{vhost}/deletion/protection", need: administrator, handle: protectVHost(false)},
	{method: post, path: "/api/vhosts/{vhost}/start/{node}", need: administrator, handle: (*request).startVHost},
}

var healthRoutes = []route{
	{method: get, path: "/api/health/checks/alarms", need: management, handle: (*request).checkAlarms},
	{method: get, path: "/api/health/checks/local-alarms", need: management, handle: (*request).checkAlarms},
	{method: get, path: "/api/health/checks/virtual-hosts", need: management, handle: (*request).healthy},
	{method: get, path: "/api/health/checks/node-is-quorum-critical", need: management, handle: (*request).checkCritical},
	{method: get, path: "/api/health/checks/node-is-mirror-sync-critical", need: management, handle: (*request).checkCritical},
	{method: get, path: "/api/health/checks/metadata-store/initialized", need: management, handle: (*request).healthy},
	{method: get, path: "/api/health/checks/metadata-store/initialized/with-data", need: management, handle: (*request).healthy},
	{method: get, path: "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}", need: management, handle: (*request).healthy},
	{method: get, path: "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}", need: management, handle: (*request).healthy},
	{method: get, path: "/api/health/checks/reached-target-cluster-size", need: management, handle: (*request).healthy},
	{method: get, path: "/api/health/checks/below-node-connection-limit", need: management, handle: (*request).checkConnections},
	{method: get, path: "/api/health/checks/is-in-service", need: management, handle: (*request).checkService},
	{method: get, path: "/api/health/checks/ready-to-serve-clients", need: management, handle: (*request).checkService},
	{method: get, path: "/api/health/checks/port-listener/{port}", need: management, handle: (*request).checkPort},
	{method: get, path: "/api/health/checks/protocol-listener/{protocol}", need: management, handle: (*request).checkProtocol},
	{method: get, path: "/api/health/checks/certificate-expiration/{within}/{unit}", need: management, handle: (*request).checkCertificates},
	{method: get, path: "/api/healthchecks/node", need: management, handle: (*request).checkNode},
	{method: get, path: "/api/healthchecks/node/{node}", need: management, handle: (*request).checkNode},
	{method: get, path: "/api/aliveness-test/{vhost}", need: management, handle: (*request).aliveness},
}

var connectionRoutes = []route{
	{method: get, path: "/api/connections", need: management, handle: (*request).listConnections},
	{method: get, path: "/api/connections/{connection}", need: management, handle: (*request).getConnection},
	{method: remove, path: "/api/connections/{connection}", need: management, handle: (*request).closeConnection},
	{method: get, path: "/api/connections/{connection}/channels", need: management, handle: (*request).connectionChannels},
	{method: get, path: "/api/connections/username/{user}", need: management, handle: (*request).listConnections},
	{method: remove, path: "/api/connections/username/{user}", need: management, handle: (*request).closeUser},
	{method: get, path: "/api/vhosts/{vhost}/connections", need: management, handle: (*request).listConnections},
	{method: get, path: "/api/channels", need: management, handle: (*request).listChannels},
	{method: get, path: "/api/channels/{channel}", need: management, handle: (*request).getChannel},
	{method: get, path: "/api/vhosts/{vhost}/channels", need: management, handle: (*request).listChannels},
	{method: get, path: "/api/consumers", need: management, handle: (*request).listConsumers},
	{method: get, path: "/api/consumers/{vhost}", need: management, handle: (*request).listConsumers},
}

var exchangeRoutes = []route{
	{method: get, path: "/api/exchanges", need: management, handle: (*request).listExchanges},
	{method: get, path: "/api/exchanges/{vhost}", need: management, handle: (*request).listExchanges},
	{method: get, path: "/api/exchanges/{vhost}/{exchange}", need: management, handle: (*request).getExchange},
	{method: put, path: "/api/exchanges/{vhost}/{exchange}", need: management, handle: (*request).putExchange},
	{method: remove, path: "/api/exchanges/{vhost}/{exchange}", need: management, handle: (*request).deleteExchange},
	{method: get, path: "/api/exchanges/{vhost}/{exchange}/bindings/source", need: management, handle: (*request).bindingsFrom},
	{method: get, path: "/api/exchanges/{vhost}/{exchange}/bindings/destination", need: management, handle: (*request).bindingsTo},
	{method: post, path: "/api/exchanges/{vhost}/{exchange}/publish", need: management, handle: (*request).publish, body: maxPublish, weight: publishWeight, first: (*request).mayPublish},
}

var queueRoutes = []route{
	{method: get, path: "/api/queues", need: management, handle: (*request).listQueues},
	{method: get, path: "/api/queues/detailed", need: management, handle: (*request).listQueues},
	{method: get, path: "/api/queues/{vhost}", need: management, handle: (*request).listQueues},
	{method: get, path: "/api/queues/{vhost}/{queue}", need: management, handle: (*request).getQueue},
	{method: put, path: "/api/queues/{vhost}/{queue}", need: management, handle: (*request).putQueue},
	{method: remove, path: "/api/queues/{vhost}/{queue}", need: management, handle: (*request).deleteQueue},
	{method: remove, path: "/api/queues/{vhost}/{queue}/contents", need: management, handle: (*request).purge},
	{method: post, path: "/api/queues/{vhost}/{queue}/get", need: management, handle: (*request).get},
	{method: post, path: "/api/queues/{vhost}/{queue}/peek", need: management, handle: (*request).peek},
	{method: post, path: "/api/queues/{vhost}/{queue}/actions", need: administrator, handle: (*request).queueAction},
	{method: get, path: "/api/queues/{vhost}/{queue}/bindings", need: management, handle: (*request).queueBindings},
}

var bindingRoutes = []route{
	{method: get, path: "/api/bindings", need: management, handle: (*request).allBindings},
	{method: get, path: "/api/bindings/{vhost}", need: management, handle: (*request).allBindings},
	{method: get, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}", need: management, handle: (*request).bindingsBetween},
	{method: post, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}", need: management, handle: (*request).bind},
	{method: get, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}/{props}", need: management, handle: (*request).getBinding},
	{method: remove, path: "/api/bindings/{vhost}/e/{exchange}/{kind}/{destination}/{props}", need: management, handle: (*request).unbind},
}

var userRoutes = []route{
	{method: get, path: "/api/users", need: administrator, handle: (*request).listUsers},
	{method: get, path: "/api/users/without-permissions", need: administrator, handle: (*request).usersWithoutPermissions},
	{method: post, path: "/api/users/bulk-delete", need: administrator, handle: (*request).deleteUsers},
	{method: get, path: "/api/users/{user}", need: administrator, handle: (*request).getUser},
	{method: put, path: "/api/users/{user}", need: administrator, handle: (*request).putUser},
	{method: remove, path: "/api/users/{user}", need: administrator, handle: (*request).deleteUser},
	{method: get, path: "/api/users/{user}/permissions", need: administrator, handle: (*request).listPermissions},
	{method: get, path: "/api/users/{user}/topic-permissions", need: administrator, handle: (*request).listTopicPermissions},
	{method: get, path: "/api/vhosts/{vhost}/permissions", need: administrator, handle: (*request).listPermissions},
	{method: get, path: "/api/vhosts/{vhost}/topic-permissions", need: administrator, handle: (*request).listTopicPermissions},
	{method: get, path: "/api/permissions", need: administrator, handle: (*request).listPermissions},
	{method: get, path: "/api/permissions/{vhost}/{user}", need: administrator, handle: (*request).getPermission},
	{method: put, path: "/api/permissions/{vhost}/{user}", need: administrator, handle: (*request).putPermission},
	{method: remove, path: "/api/permissions/{vhost}/{user}", need: administrator, handle: (*request).deletePermission},
	{method: get, path: "/api/topic-permissions", need: administrator, handle: (*request).listTopicPermissions},
	{method: get, path: "/api/topic-permissions/{vhost}/{user}", need: administrator, handle: (*request).getTopicPermissions},
	{method: put, path: "/api/topic-permissions/{vhost}/{user}", need: administrator, handle: (*request).putTopicPermission},
	{method: remove, path: "/api/topic-permissions/{vhost}/{user}", need: administrator, handle: (*request).deleteTopicPermissions},
	{method: remove, path: "/api/topic-permissions/{vhost}/{user}/{exchange}", need: administrator, handle: (*request).deleteTopicPermissions},
	{method: get, path: "/api/auth/hash_password/{password}", need: administrator, handle: (*request).hashPassword},
}

var limitRoutes = []route{
	{method: get, path: "/api/vhost-limits", need: management, handle: (*request).listVHostLimits},
	{method: get, path: "/api/vhost-limits/{vhost}", need: management, handle: (*request).listVHostLimits},
	{method: put, path: "/api/vhost-limits/{vhost}/{limit}", need: administrator, handle: (*request).putVHostLimit},
	{method: remove, path: "/api/vhost-limits/{vhost}/{limit}", need: administrator, handle: (*request).deleteVHostLimit},
	{method: get, path: "/api/user-limits", need: administrator, handle: (*request).listUserLimits},
	{method: get, path: "/api/user-limits/{user}", need: administrator, handle: (*request).listUserLimits},
	{method: put, path: "/api/user-limits/{user}/{limit}", need: administrator, handle: (*request).putUserLimit},
	{method: remove, path: "/api/user-limits/{user}/{limit}", need: administrator, handle: (*request).deleteUserLimit},
}

var policyRoutes = []route{
	{method: get, path: "/api/policies", need: management, handle: listPolicies(policy.User)},
	{method: get, path: "/api/policies/{vhost}", need: management, handle: listPolicies(policy.User)},
	{method: get, path: "/api/policies/{vhost}/{policy}", need: management, handle: getPolicy(policy.User)},
	{method: put, path: "/api/policies/{vhost}/{policy}", need: policymaker, handle: putPolicy(policy.User)},
	{method: remove, path: "/api/policies/{vhost}/{policy}", need: policymaker, handle: deletePolicy(policy.User)},
	{method: get, path: "/api/operator-policies", need: management, handle: listPolicies(policy.Operator)},
	{method: get, path: "/api/operator-policies/{vhost}", need: management, handle: listPolicies(policy.Operator)},
	{method: get, path: "/api/operator-policies/{vhost}/{policy}", need: management, handle: getPolicy(policy.Operator)},
	{method: put, path: "/api/operator-policies/{vhost}/{policy}", need: administrator, handle: putPolicy(policy.Operator)},
	{method: remove, path: "/api/operator-policies/{vhost}/{policy}", need: administrator, handle: deletePolicy(policy.Operator)},
	{method: get, path: "/api/curfew/delayed/{vhost}", need: administrator, handle: (*request).listDelayed},
	{method: remove, path: "/api/curfew/delayed/{vhost}/{id}", need: administrator, handle: (*request).cancelDelayed},
	{method: put, path: "/api/curfew/policies/{vhost}/{policy}", need: policymaker, handle: putPolicyRetroactively(policy.User)},
	{method: put, path: "/api/curfew/operator-policies/{vhost}/{policy}", need: administrator, handle: putPolicyRetroactively(policy.Operator)},
	{method: get, path: "/api/parameters", need: policymaker, handle: (*request).listParameters},
	{method: get, path: "/api/parameters/{component}", need: policymaker, handle: (*request).listParameters},
	{method: get, path: "/api/parameters/{component}/{vhost}", need: policymaker, handle: (*request).listParameters},
	{method: get, path: "/api/parameters/{component}/{vhost}/{name}", need: policymaker, handle: (*request).getParameter},
	{method: put, path: "/api/parameters/{component}/{vhost}/{name}", need: policymaker, handle: (*request).putParameter},
	{method: remove, path: "/api/parameters/{component}/{vhost}/{name}", need: policymaker, handle: (*request).deleteParameter},
	{method: get, path: "/api/definitions", need: administrator, handle: (*request).exportDefinitions},
	{method: post, path: "/api/definitions", need: administrator, handle: (*request).importDefinitions, body: maxDefinitions},
	{method: get, path: "/api/all-configuration", need: administrator, handle: (*request).exportDefinitions}, // the old name
	{method: post, path: "/api/all-configuration", need: administrator, handle: (*request).importDefinitions, body: maxDefinitions},
	{method: get, path: "/api/definitions/{vhost}", need: policymaker, handle: (*request).exportVHost},
	{method: post, path: "/api/definitions/{vhost}", need: administrator, handle: (*request).importVHost, body: maxDefinitions},
	{method: get, path: "/api/global-parameters", need: policymaker, handle: (*request).listGlobalParameters},
	{method: get, path: "/api/global-parameters/{name}", need: policymaker, handle: (*request).getGlobalParameter},
	{method: put, path: "/api/global-parameters/{name}", need: administrator, handle: (*request).putGlobalParameter},
	{method: remove, path: "/api/global-parameters/{name}", need: administrator, handle: (*request).deleteGlobalParameter},
}
