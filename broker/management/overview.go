package management

import (
	"runtime"
	"slices"
	"strconv"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/broker/policy"
	"curfew/broker/server"
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

// overview answers the request that every tool sends first.
func overview(r *request) error {
	a := r.api
	a.rates.Refresh()
	vhosts := r.vhosts()
	all, ready, unacked := 0, 0, 0
	for _, vh := range vhosts {
		n, nReady, nUnacked := depthOf(vh)
		all, ready, unacked = all+n, ready+nReady, unacked+nUnacked
	}
	tags, _ := a.b.GlobalParameters()[clusterTagsParameter].(object)
	if tags == nil {
		tags = object{}
	}
	totals := object{}
	a.messages(totals, all, ready, unacked, operate.TotalKey{})
	o := object{
		"management_version": server.RabbitMQVersion, "rabbitmq_version": server.RabbitMQVersion, "product_name": "Curfew", "product_version": a.Version,
		"cluster_name": a.clusterName(), "node": a.Node, "erlang_version": runtime.Version(), "erlang_full_version": "Go " + runtime.Version(),
		"release_series_support_status": "supported", "rates_mode": "basic", "sample_retention_policies": retention, "exchange_types": exchangeTypes(),
		"default_queue_type": "classic", "disable_stats": false, "enable_queue_totals": false, "is_op_policy_updating_enabled": true,
		"cluster_tags": tags, "node_tags": object{}, "statistics_db_event_queue": 0,
		"message_stats": a.counts(a.Operations.Totals(), operate.TotalKey{}), "churn_rates": a.counts(a.Operations.Churn(), operate.ChurnKey{}),
		"queue_totals": totals, "object_totals": objectTotals(r),
	}
	if r.Actor.Has(monitor) {
		r.addStatSamples(o, operate.TotalKey{})
		r.addSamples(totals, operate.TotalKey{}, "lengths", messageCounts...)
		o["listeners"], o["contexts"] = a.listeners(), a.contexts()
	}
	return r.One(o)
}

func objectTotals(r *request) object {
	queues, exchanges, consumers, channels := 0, 0, 0, 0
	for _, vh := range r.vhosts() {
		exchanges += len(vh.Exchanges.List())
		for _, queue := range vh.Queues.List() {
			_, _, n := queue.Messages.Counts()
			queues, consumers = queues+1, consumers+n
		}
	}
	conns := visibleConnections(r)
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

// contexts returns the HTTP listeners, with the port as a string.
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

// Global parameters that have a meaning.
const (
	clusterNameParameter = "cluster_name"
	clusterTagsParameter = "cluster_tags"
	clusterIDParameter   = "internal_cluster_id" // stays the same when nodes are renamed
)

// clusterName returns the name of the cluster; until it is set, that is the node's name.
func (a *API) clusterName() string {
	if name, ok := a.b.GlobalParameters()[clusterNameParameter].(string); ok {
		return name
	}
	return a.Node
}

func putClusterName(r *request) error {
	f, err := r.Fields("name")
	if err != nil {
		return err
	}
	of, err := operate.Read[struct {
		Name string `json:"name"`
	}](f)
	if err != nil {
		return err
	}
	_, err = admin.SetGlobalParameter.Do(r.HTTP.Context(), r.Operations, r.Actor, admin.GlobalParameter{Name: clusterNameParameter, Value: policy.Whole(of.Name)})
	return r.Done(err)
}

func whoami(r *request) error {
	tags := r.Actor.Tags
	if tags == nil {
		tags = []string{}
	}
	return r.One(object{"name": r.Actor.Name, "tags": tags, "is_internal_user": true})
}

// featureFlagNames are the flags that tools check before they use a feature. stream_queue is one
// of them since NServiceBus does not start without it, although there are no streams.
var featureFlagNames = []string{
	"classic_mirrored_queue_version", "classic_queue_type_delivery_support", "direct_exchange_routing_v2", "drop_unroutable_metric",
	"empty_basic_get_metric", "feature_flags_v2", "implicit_default_bindings", "listener_records_in_ets", "maintenance_mode_status",
	"quorum_queue", "stream_queue", "tracking_records_in_ets", "user_limits", "virtual_host_metadata",
}

func featureFlags(r *request) error {
	var flags []object
	for _, name := range featureFlagNames {
		flags = append(flags, object{"name": name, "state": "enabled", "stability": "required", "provided_by": "rabbit", "desc": "", "doc_url": ""})
	}
	return r.List(flags)
}

// enableFeatureFlag has nothing to do: all flags are always enabled.
func enableFeatureFlag(r *request) error {
	if !slices.Contains(featureFlagNames, r.Param("name")) {
		return rest.Bad("unsupported")
	}
	return r.Done(nil)
}

func emptyList(r *request) error { return r.List(nil) }

// done answers a command that this broker has nothing to do for.
func done(r *request) error { return r.Done(nil) }
