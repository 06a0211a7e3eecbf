package admin

import (
	"context"

	"curfew/broker/access"
	"curfew/broker/operate"
)

var _ = operate.Group("vhost limits", "Set, clear and list the limits of virtual hosts")

// VHostLimitRow are the limits of a virtual host.
type VHostLimitRow struct {
	VHost string        `json:"vhost"`
	Value access.Limits `json:"value" label:"Limits"`
}

// ListVHostLimits lists the limits of the virtual hosts that have some.
var ListVHostLimits = operate.Define(operate.Op{
	Name: "list_vhost_limits", Title: "List the limits of virtual hosts", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Routes: []string{"GET /api/vhost-limits", "GET /api/vhost-limits/{vhost}"}, Command: "vhost limits list",
}, func(_ context.Context, c *operate.Call, _ operate.VHostFilter) (list []VHostLimitRow, err error) {
	for _, vh := range c.Within() {
		if l := vh.Limits(); len(l) > 0 {
			list = append(list, VHostLimitRow{vh.Name(), l})
		}
	}
	return list, nil
})

// VHostLimit is one limit of a virtual host.
type VHostLimit struct {
	VHost string `json:"vhost"`
	Limit string `json:"limit" log:"limit" eg:"max-queues" doc:"max-connections or max-queues"`
	Value int64  `json:"value" need:"key" log:"value" eg:"8" doc:"the limit; -1 is none"`
}

// SetVHostLimit sets one limit of a virtual host.
var SetVHostLimit = operate.Define(operate.Op{
	Name: "set_vhost_limit", Noun: "virtual host", Title: "Set a limit of a virtual host", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"PUT /api/vhost-limits/{vhost}/{limit}"}, Command: "vhost limits set <limit> <value>",
}, func(_ context.Context, c *operate.Call, q VHostLimit) (operate.None, error) {
	return operate.None{}, c.VHost.SetLimits(withLimit(c.VHost.Limits(), q.Limit, &q.Value))
}).Replaces(func(c *operate.Call, _ VHostLimit) (*VHostLimit, any) { return nil, c.VHost.Limits() })

// VHostLimitName names a limit of a virtual host.
type VHostLimitName struct {
	VHost string `json:"vhost"`
	Limit string `json:"limit" log:"limit" eg:"max-queues"`
}

// ClearVHostLimit removes one limit of a virtual host.
var ClearVHostLimit = operate.Define(operate.Op{
	Name: "clear_vhost_limit", Noun: "virtual host", Title: "Remove a limit of a virtual host", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"DELETE /api/vhost-limits/{vhost}/{limit}"}, Command: "vhost limits clear <limit>",
}, func(_ context.Context, c *operate.Call, q VHostLimitName) (operate.None, error) {
	return operate.None{}, c.VHost.SetLimits(withLimit(c.VHost.Limits(), q.Limit, nil))
}).Replaces(func(c *operate.Call, _ VHostLimitName) (*VHostLimitName, any) { return nil, c.VHost.Limits() })
