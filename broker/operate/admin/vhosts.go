package admin

import (
	"context"
	"errors"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/operate"
)

var _ = operate.Group("vhost", "Add, change, delete and list virtual hosts")

// VHostName names a virtual host; "" is any.
type VHostName struct {
	VHost string `json:"vhost" form:"name" eg:"shop"`
}

// VHostRow is a virtual host with what is in it.
type VHostRow struct {
	Name        string        `json:"name"`
	Description string        `json:"description" table:"DESCRIPTION?"`
	Type        string        `json:"default_queue_type" label:"Queues are" table:"DEFAULT TYPE?"`
	Tags        []string      `json:"tags" hide:"table"`
	Queues      int           `json:"queues" to:"/queues?vhost={name}"`
	Ready       int           `json:"messages_ready" label:"Ready" table:"READY"`
	Unacked     int           `json:"messages_unacknowledged" label:"Unacked" table:"UNACKED"`
	DeadLetters int           `json:"dead_letters,omitempty"` // that no queue has taken yet; counted only for one virtual host
	Limits      access.Limits `json:"limits" table:"LIMITS?" faint:"none"`
	Protected   bool          `json:"protected_from_deletion" label:"Protected from deletion" table:"PROTECTED?" faint:"no"`
}

// ListVHosts lists the virtual hosts that the actor may look into, by name. Messages are as they were within the last second.
var ListVHosts = operate.Define(operate.Op{
	Name: "list_vhosts", Noun: "virtual host", Title: "List the virtual hosts", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Routes: []string{"GET /api/curfew/vhosts", "GET /api/curfew/vhosts/{vhost}"}, Command: "vhost list",
	Page: operate.Page{On: "/vhosts", Title: "Virtual hosts", Tab: "/policies", Opens: "/vhost"},
}, func(ctx context.Context, c *operate.Call, q VHostName) (list []VHostRow, err error) {
	queues, err := c.ListQueues(ctx, c.Actor)
	at := map[string]int{}
	for _, vh := range c.Within() {
		at[vh.Name()] = len(list)
		about := vh.Metadata()
		list = append(list, VHostRow{Name: vh.Name(), Description: about.Description, Type: typeOf(about), Tags: about.Tags, Limits: vh.Limits(), Protected: about.Protected})
	}
	for _, one := range queues {
		if i, ok := at[one.VHost]; ok {
			list[i].Queues, list[i].Ready, list[i].Unacked = list[i].Queues+1, list[i].Ready+one.Ready, list[i].Unacked+one.Unacked
		}
	}
	if c.VHost != nil {
		for _, one := range c.VHost.Queues.List() {
			list[0].DeadLetters += one.Messages.Retained.Count()
		}
	}
	return list, err
})

// typeOf is the type of queues that are declared without one.
func typeOf(about broker.VHostMetadata) string {
	if about.DefaultQueueType == "" {
		return "classic"
	}
	return about.DefaultQueueType
}

// VHostSettings are what a virtual host is to have. What is not given stays.
type VHostSettings struct {
	Description *string   `json:"description" log:"description" doc:"What it is for."`
	Type        *string   `json:"default_queue_type" label:"Default queue type" log:"default_queue_type" start:"classic" oneof:"classic quorum undefined" texts:"classic|quorum" doc:"The type of queues that are declared without one: classic or quorum."`
	Tags        *[]string `json:"tags" hide:"page" doc:"Tags, separated by commas. They mean nothing to Curfew."`
}

// put makes the virtual host, or changes its metadata.
func (s *VHostSettings) put(c *operate.Call, name string) (err error) {
	about := broker.VHostMetadata{}
	if c.VHost != nil {
		about = c.VHost.Metadata()
	}
	if s.Description != nil {
		about.Description = *s.Description
	}
	if s.Type != nil {
		about.DefaultQueueType = *s.Type
	}
	if s.Tags != nil {
		about.Tags = *s.Tags
	}
	_, c.Created, err = c.Broker.PutVHost(c.Actor.Name, name, about)
	return err
}

// NewVHost is a virtual host to be made.
type NewVHost struct {
	VHost string `json:"vhost" form:"name" label:"Name" need:"page" eg:"shop"`
	VHostSettings
	Tracing bool `json:"tracing" hide:"page command"` // RabbitMQ's, refused
}

// MakeVHost makes a virtual host, in which the actor gets all permissions, or changes the one with that name.
var MakeVHost = operate.Define(operate.Op{
	Name: "make_vhost", Noun: "virtual host", Title: "Add a virtual host, or describe one", Rule: operate.Rule{Role: operate.Administrator}, AnyVHost: true,
	Routes: []string{"PUT /api/vhosts/{vhost}"}, Command: "vhost add <vhost>",
	Page: operate.Page{On: "/vhost/new", Title: "New virtual host", Tab: "/policies", Parent: "/vhosts", Up: "Virtual hosts", Rows: "list_vhosts", Begin: "New virtual host…", Button: "Create the virtual host",
		Done: "Virtual host created. You have all permissions in it.", Next: "/vhost"},
}, func(_ context.Context, c *operate.Call, q NewVHost) (none operate.None, err error) {
	if q.Tracing {
		return none, &operate.Invalid{Reason: "there is no firehose: tracing cannot be enabled"}
	}
	return none, q.put(c, q.VHost)
}).Replaces(func(c *operate.Call, _ NewVHost) (*NewVHost, any) {
	if c.VHost == nil {
		return nil, nil
	}
	return nil, c.VHost.Metadata()
})

// VHostChange is what is to change of a virtual host. What is not given stays.
type VHostChange struct {
	VHost string `json:"vhost" form:"name" eg:"shop"`
	VHostSettings
	MaxConnections *int64 `json:"max-connections" label:"Most connections" log:"max-connections" empty:"-1" doc:"The most connections; -1: no limit. Open connections stay."`
	MaxQueues      *int64 `json:"max-queues" label:"Most queues" log:"max-queues" empty:"-1" doc:"The most queues; -1: no limit. Queues that exist stay."`
	Protected      *bool  `json:"protected_from_deletion" label:"protected from deletion" log:"protected" doc:"It cannot be deleted until this is false."`
}

// ChangeVHost changes a virtual host that exists.
var ChangeVHost = operate.Define(operate.Op{
	Name: "change_vhost", Noun: "virtual host", Title: "Describe, limit or protect a virtual host", Rule: operate.Rule{Role: operate.Administrator},
	Text: "What is not given stays as it is.", Routes: []string{"PUT /api/curfew/vhosts/{vhost}"}, Command: "vhost change <vhost>",
	Page: operate.Page{On: "/vhost", Title: "Settings", Button: "Change", Done: "Virtual host changed."},
}, func(_ context.Context, c *operate.Call, q VHostChange) (none operate.None, err error) {
	if err = q.put(c, q.VHost); err == nil && q.Protected != nil {
		err = c.VHost.SetProtected(*q.Protected)
	}
	if err != nil || q.MaxConnections == nil && q.MaxQueues == nil {
		return none, err
	}
	limits := c.VHost.Limits()
	for name, n := range map[string]*int64{access.MaxConnections: q.MaxConnections, access.MaxQueues: q.MaxQueues} {
		switch {
		case n == nil:
		case *n < 0:
			limits = withLimit(limits, name, nil)
		default:
			limits = withLimit(limits, name, n)
		}
	}
	return none, c.VHost.SetLimits(limits)
}).Replaces(func(c *operate.Call, q VHostChange) (*VHostChange, any) {
	about, limits := c.VHost.Metadata(), c.VHost.Limits()
	kind := typeOf(about)
	now := &VHostChange{VHost: q.VHost, VHostSettings: VHostSettings{Description: &about.Description, Type: &kind}, Protected: &about.Protected}
	for name, to := range map[string]**int64{access.MaxConnections: &now.MaxConnections, access.MaxQueues: &now.MaxQueues} {
		if n, limited := limits.Of(name); limited {
			limit := int64(n)
			*to = &limit
		}
	}
	return now, nil
})

// DeleteVHost deletes a virtual host with all that is in it. Error: *operate.Protected among others.
var DeleteVHost = operate.Define(operate.Op{
	Name: "delete_vhost", Noun: "virtual host", Title: "Delete a virtual host with all that is in it", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"DELETE /api/vhosts/{vhost}"}, Command: "vhost delete <vhost>",
	Page: operate.Page{On: "/vhost/delete", Title: "Delete the virtual host", Tab: "/policies", Parent: "/vhost", Rows: "list_vhosts", Link: "Delete…", Danger: true, Only: func(row any) bool { return !row.(VHostRow).Protected }, Typed: "name", Next: "/vhosts", Done: "Virtual host deleted.",
		Then: "Its queues, exchanges, bindings, policies and permissions are deleted, and its connections are closed. Messages and dead letters are lost; they are not dead-lettered."},
}, func(_ context.Context, c *operate.Call, q VHostName) (none operate.None, err error) {
	if err = c.Broker.DeleteVHost(q.VHost); errors.Is(err, broker.ErrProtected) {
		err = &operate.Protected{VHost: q.VHost}
	}
	return none, err
})
