package management

import (
	"runtime"
	"slices"
	"strconv"

	"curfew/broker/policy"
)

// exchangeTypes are described in RabbitMQ's words, which tools print.
func exchangeTypes() []object {
	var types []object
	for _, name := range []string{"direct", "fanout", "headers", "topic"} {
		types = append(types, object{"name": name, "description": "AMQP " + name + " exchange, as per the AMQP specification", "enabled": true})
	}
	return append(types, object{"name": "x-delayed-message", "description": "Delayed Message Exchange.", "enabled": true})
}

var retention = object{"global": []int{}, "basic": []int{}, "detailed": []int{}}

// overview is what every tool asks first.
func (q *request) overview() error {
	asked, err := q.spans()
	if err != nil {
		return err
	}
	a := q.api
	a.rates.refresh()
	vhosts := q.vhosts()
	all := a.totals()
	ready, unacked := 0, 0
	for _, vh := range vhosts {
		r, u := depthOf(vh)
		ready, unacked = ready+r, unacked+u
	}
	totals := object{}
	a.messages(totals, totalKey{}, ready, unacked)
	o := object{
		"management_version": a.Compat, "rabbitmq_version": a.Compat, "product_name": "Curfew", "product_version": a.Version,
		"cluster_name": a.clusterName(), "node": a.Node, "erlang_version": runtime.Version(), "erlang_full_version": "Go " + runtime.Version(),
		"release_series_support_status": "supported", "rates_mode": "basic", "sample_retention_policies": retention, "exchange_types": exchangeTypes(),
		"default_queue_type": "classic", "disable_stats": false, "enable_queue_totals": false, "is_op_policy_updating_enabled": true,
		"cluster_tags": a.clusterTags(), "node_tags": object{}, "statistics_db_event_queue": 0,
		"message_stats": a.messageStats(totalKey{}, all), "churn_rates": a.rates.stats(churnKey{}, a.churn()),
		"queue_totals": totals, "object_totals": q.objectTotals(),
	}
	if q.user.is(monitor) {
		q.statSamples(o, totalKey{}, asked)
		q.samples(totals, totalKey{}, asked, "lengths", messageCounts...)
		o["listeners"], o["contexts"] = a.listeners(), a.contexts()
	}
	return q.one(o)
}

func (q *request) objectTotals() object {
	queues, exchanges, consumers, channels := 0, 0, 0, 0
	for _, vh := range q.vhosts() {
		exchanges += len(vh.Exchanges())
		for _, queue := range vh.Queues() {
			_, _, n := queue.Counts()
			queues, consumers = queues+1, consumers+n
		}
	}
	conns := q.connections()
	for i := range conns {
		channels += len(conns[i].Channels)
	}
	return object{"queues": queues, "exchanges": exchanges, "consumers": consumers, "connections": len(conns), "channels": channels}
}

func (a *API) listeners() []object {
	list := []object{}
	for _, l := range a.Listeners {
		list = append(list, object{
			"node": a.Node, "protocol": l.Protocol, "ip_address": l.Address, "port": l.Port,
			"socket_opts": object{"backlog": 4096, "nodelay": true}, "tls": l.TLS,
		})
	}
	return list
}

// contexts are the HTTP listeners; the port is a string there.
func (a *API) contexts() []object {
	list := []object{}
	for _, l := range a.Listeners {
		if l.Protocol != "http" && l.Protocol != "https" {
			continue
		}
		list = append(list, object{
			"node": a.Node, "description": "RabbitMQ Management", "path": "/", "ip": l.Address, "port": strconv.Itoa(l.Port),
			"ssl_opts": []any{}, "cowboy_opts": "[]",
		})
	}
	return list
}

// Global parameters that mean something.
const (
	clusterNameParameter = "cluster_name"
	clusterTagsParameter = "cluster_tags"
	clusterID            = "internal_cluster_id"
)

// clusterName is what it was set to, else as configured.
func (a *API) clusterName() string {
	if name, ok := a.b.GlobalParameters()[clusterNameParameter].(string); ok {
		return name
	}
	return a.Cluster
}

func (a *API) clusterTags() any {
	if tags, ok := a.b.GlobalParameters()[clusterTagsParameter].(map[string]any); ok {
		return tags
	}
	return object{}
}

func (q *request) getClusterName() error { return q.one(object{"name": q.api.clusterName()}) }

func (q *request) putClusterName() error {
	f, err := q.fields()
	if err == nil {
		err = f.need("name")
	}
	if err != nil {
		return err
	}
	name, err := f.text("name", "")
	if err != nil {
		return err
	}
	if _, err := q.api.b.SetGlobalParameter(clusterNameParameter, policy.Whole(name)); err != nil {
		return err
	}
	return q.done()
}

func (q *request) whoami() error {
	tags := q.user.Tags
	if tags == nil {
		tags = []string{}
	}
	return q.one(object{"name": q.user.Name, "tags": tags, "is_internal_user": true})
}

func (q *request) version() error { return q.answer(q.api.Compat) }

func (q *request) extensions() error { return q.answer([]object{}) }

func (q *request) authConfig() error {
	return q.one(object{"enable_uaa": false, "uaa_client_id": "", "uaa_location": "", "oauth_enabled": false})
}

// featureFlagNames: what tools look for before they use it. stream_queue is among them
// since NServiceBus does not start without it, though there are no streams.
var featureFlagNames = []string{
	"classic_mirrored_queue_version", "classic_queue_type_delivery_support", "direct_exchange_routing_v2", "drop_unroutable_metric",
	"empty_basic_get_metric", "feature_flags_v2", "implicit_default_bindings", "listener_records_in_ets", "maintenance_mode_status",
	"quorum_queue", "stream_queue", "tracking_records_in_ets", "user_limits", "virtual_host_metadata",
}

func (q *request) featureFlags() error {
	var flags []object
	for _, name := range featureFlagNames {
		flags = append(flags, object{"name": name, "state": "enabled", "stability": "required", "provided_by": "rabbit", "desc": "", "doc_url": ""})
	}
	return q.list(flags)
}

// enableFeatureFlag: all there are have been enabled from the first.
func (q *request) enableFeatureFlag() error {
	if !slices.Contains(featureFlagNames, q.param("name")) {
		return bad("unsupported")
	}
	return q.done()
}

func (q *request) emptyList() error { return q.list(nil) }
