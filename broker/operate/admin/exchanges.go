package admin

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/operate"
)

// declared are the arguments of a declaration: those given as such, and its fields that have their names.
func declared(op operate.Operation, q any, given operate.Table) operate.Table {
	args := maps.Clone(given)
	if args == nil {
		args = operate.Table{}
	}
	for _, f := range operate.Defined[op].Fields {
		if v := f.Of(q); (strings.HasPrefix(f.Name, "x-") || f.Name == "alternate-exchange") && v != nil && v != "" && v != false {
			args[f.Name] = v
		}
	}
	return args
}

// ExchangeFilter names an exchange; "" is any virtual host and any name.
type ExchangeFilter struct {
	VHost string `json:"vhost"`
	Name  string `json:"name"`
}

// ExchangeRow is an exchange in a list.
type ExchangeRow struct {
	Name      string        `json:"name" faint:"(default exchange)"`
	VHost     string        `json:"vhost" label:"Virtual host"`
	Type      string        `json:"type"`
	Bindings  int           `json:"bindings"`
	In        int64         `json:"publish_in" label:"Published"`
	Out       int64         `json:"publish_out" label:"Into queues"`
	Unrouted  int64         `json:"unrouted" label:"No queue"`
	Features  []string      `json:"features" faint:"–"`
	Arguments operate.Table `json:"arguments,omitempty"`
}

// ListExchanges lists exchanges by virtual host and name.
var ListExchanges = operate.Define(operate.Op{
	Name: "list_exchanges", Noun: "exchange", Title: "List the exchanges", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Page: operate.Page{On: "/exchanges", Title: "Exchanges", Tab: "/exchanges", Opens: "/exchange", Find: "name", Empty: "No exchange matches.",
		More: []operate.Link{{Text: "Publish…", To: "/publish?vhost={vhost}&exchange={name}"}, {Text: "Bind…", To: "/binding/new?vhost={vhost}&source={name}"}}},
}, func(_ context.Context, c *operate.Call, q ExchangeFilter) (list []ExchangeRow, err error) {
	for _, vh := range c.Within() {
		for _, x := range vh.Exchanges.List() {
			if q.Name != "" && q.Name != x.Name {
				continue
			}
			row := ExchangeRow{Name: x.Name, VHost: x.VHost, Type: x.Kind, Bindings: x.Bindings, In: int64(x.PublishedIn), Out: int64(x.PublishedOut), Unrouted: int64(x.Unrouted), Arguments: x.Args}
			for _, one := range []struct {
				is   bool
				name string
			}{{x.Durable, "durable"}, {x.AutoDelete, "deleted with its last binding"}, {x.Internal, "internal"}} {
				if one.is {
					row.Features = append(row.Features, one.name)
				}
			}
			list = append(list, row)
		}
	}
	return list, nil
})

// NewExchange is an exchange to be declared. The fields that are arguments have their names.
type NewExchange struct {
	Exchange   string        `json:"exchange" hide:"command" form:"name" label:"Name" need:"page" log:"exchange"`
	VHost      string        `json:"vhost" start:"/"`
	Type       string        `json:"type" help:"direct, fanout, topic or headers" default:"direct" start:"topic" oneof:"topic direct fanout headers x-delayed-message" texts:"topic: patterns of words, such as orders.*.eu|direct: exactly the key|fanout: to all that are bound|headers: by the headers|x-delayed-message: holds messages back first" any:""`
	Delayed    string        `json:"x-delayed-type" hide:"command" label:"Routes as" oneof:"topic direct fanout headers" faint:"–" doc:"Only for x-delayed-message."`
	Alternate  string        `json:"alternate-exchange" help:"exchange for messages that no binding takes" label:"Alternate exchange" doc:"For messages that it cannot route."`
	TTL        *int64        `json:"x-message-ttl" hide:"command" label:"Time to live" is:"span" doc:"The longest for messages that it routes: in ms, or as 90s, 10m or 24h."`
	Durable    bool          `json:"durable" help:"keep it over a restart" label:"survives a restart" start:"1"`
	AutoDelete bool          `json:"auto_delete" help:"delete it with its last binding" label:"is deleted with its last binding"`
	Internal   bool          `json:"internal" help:"take messages from other exchanges only" label:"takes messages from exchanges only"`
	Arguments  operate.Table `json:"arguments" hide:"command" label:"Other arguments" doc:"A JSON object."`
}

// DeclareExchange makes an exchange, or finds one that was declared like this. Errors: the broker's, 406 for one with other properties.
var DeclareExchange = operate.Define(operate.Op{
	Name: "declare_exchange", Noun: "exchange", Title: "Declare an exchange", Rule: operate.Rule{Role: operate.Management},
	Routes: []string{"PUT /api/exchanges/{vhost}/{exchange}"},
	Page: operate.Page{On: "/exchange/new", Title: "New exchange", Tab: "/exchanges", Parent: "/exchanges", Up: "Exchanges", Rows: "list_exchanges", Begin: "New exchange…", Button: "Create the exchange",
		Done: "Exchange declared.", Next: "/exchange?vhost={vhost}&name={name}&done=declare_exchange"},
}, func(_ context.Context, c *operate.Call, q NewExchange) (none operate.None, err error) {
	name := operate.ExchangeNamed(q.Exchange)
	_, missing := c.VHost.Exchanges.Get(name)
	c.Created = missing != nil
	return none, c.Rights.DeclareExchange(c.VHost, name, broker.ExchangeDeclare{Kind: q.Type, Durable: q.Durable, AutoDelete: q.AutoDelete, Internal: q.Internal, Args: declared("declare_exchange", q, q.Arguments)})
})

// ExchangeDeletion names an exchange to be deleted.
type ExchangeDeletion struct {
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange" form:"name" log:"exchange"`
	IfUnused bool   `json:"if-unused" form:"if_unused" label:"only if nothing is bound to it" doc:"only if nothing is bound to it"`
}

var _ = operate.Group("delete", "Delete a queue or an exchange")

// DeleteExchange deletes an exchange with its bindings. Error: operate.ErrNotFound among others.
var DeleteExchange = operate.Define(operate.Op{
	Name: "delete_exchange", Noun: "exchange", Title: "Delete an exchange and its bindings", Rule: operate.Rule{Role: operate.Management},
	Routes: []string{"DELETE /api/exchanges/{vhost}/{exchange}"}, Command: "delete exchange <exchange>", Example: "  curfew delete exchange events --if-unused",
	Page: operate.Page{On: "/exchange/delete", Title: "Delete the exchange", Tab: "/exchanges", Parent: "/exchange", Rows: "list_exchanges", Link: "Delete…", Danger: true, May: func(o *operate.Operations, a operate.Actor, row any) bool {
		x := row.(ExchangeRow)
		return operate.MayExchange(o, a, access.Configure, x.VHost, x.Name)
	}, Only: func(row any) bool {
		name := row.(ExchangeRow).Name
		return name != "" && !strings.HasPrefix(name, "amq.")
	}, Next: "/exchanges", Done: "Exchange deleted.",
		Then: "Its bindings are removed, too. Publishing to the exchange will fail, and dead letters for it will be parked."},
}, func(_ context.Context, c *operate.Call, q ExchangeDeletion) (none operate.None, err error) {
	name := operate.ExchangeNamed(q.Exchange)
	if _, missing := c.VHost.Exchanges.Get(name); missing != nil {
		return none, operate.ErrNotFound
	}
	return none, c.Rights.DeleteExchange(c.VHost, name, q.IfUnused)
})

// BindingFilter names an exchange at either end of bindings, and a queue at their end; nil and "" are any.
type BindingFilter struct {
	VHost    string  `json:"vhost"`
	Exchange *string `json:"exchange" form:"name"`
	Queue    string  `json:"queue" hide:"page"`
}

// BindingRow is a binding in a list.
type BindingRow struct {
	VHost       string        `json:"vhost" hide:"page"`
	Source      string        `json:"source" label:"From" faint:"(default exchange)" to:"/exchange?vhost={vhost}&name={source}"`
	Key         string        `json:"routing_key" form:"key" label:"By the key" faint:"none"`
	Destination string        `json:"destination" label:"To" to:"/{to}?vhost={vhost}&name={destination}"`
	Type        string        `json:"to" label:"Which is"` // "queue" or "exchange"
	Arguments   operate.Table `json:"arguments" faint:"–"`
	Digest      string        `json:"args" hide:"page"` // distinguishes bindings that have the same ends and the same key

	Binding broker.Binding `json:"-"`
}

// ListBindings lists bindings.
var ListBindings = operate.Define(operate.Op{
	Name: "list_bindings", Noun: "binding", Title: "List the bindings", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Page: operate.Page{On: "/exchange", Title: "Bindings", Empty: "Nothing is bound to it: messages that are published here are lost, and dead letters are parked."},
}, func(_ context.Context, c *operate.Call, q BindingFilter) (list []BindingRow, err error) {
	for _, vh := range c.Within() {
		for _, b := range vh.BindingsWhere(func(b *broker.Binding) bool {
			return (q.Exchange == nil || b.Source == *q.Exchange || b.ToExchange && b.Destination == *q.Exchange) && (q.Queue == "" || !b.ToExchange && b.Destination == q.Queue)
		}) {
			row := BindingRow{VHost: vh.Name(), Source: b.Source, Key: b.RoutingKey, Destination: b.Destination, Type: "queue", Arguments: b.Args, Digest: digest(b.Args), Binding: b}
			if b.ToExchange {
				row.Type = "exchange"
			}
			list = append(list, row)
		}
	}
	return list, nil
})

func digest(args operate.Table) string {
	if len(args) == 0 {
		return ""
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%#v", map[string]any(args)) // in the order of the keys
	return strconv.FormatUint(sum.Sum64(), 36)
}

// Binding is a binding to be made.
type Binding struct {
	Source      string        `json:"source" label:"From the exchange" need:"page" log:"source"`
	VHost       string        `json:"vhost" start:"/"`
	Destination string        `json:"destination" label:"To" need:"page" log:"destination"`
	Type        string        `json:"to" label:"Which is" start:"queue" oneof:"queue exchange" texts:"a queue|an exchange" log:"to"`
	Key         string        `json:"routing_key" form:"key" label:"By the routing key" log:"routing_key" doc:"For a topic exchange * stands for one word and # for any number."`
	Arguments   operate.Table `json:"arguments" doc:"A JSON object; for a headers exchange the headers, and {\"x-match\": \"any\"}."`
}

// Bind binds a queue or an exchange to an exchange.
var Bind = operate.Define(operate.Op{
	Name: "bind", Noun: "binding", Title: "Bind a queue or an exchange to an exchange", Rule: operate.Rule{Role: operate.Management},
	Page: operate.Page{On: "/binding/new", Title: "New binding", Tab: "/exchanges", Parent: "/exchanges", Up: "Exchanges", Rows: "list_exchanges", Begin: "Bind…", Button: "Bind", Done: "Binding added.",
		Next: "/exchange?vhost={vhost}&name={source}&done=bind"},
}, func(_ context.Context, c *operate.Call, q Binding) (none operate.None, err error) {
	return none, c.Rights.Bind(c.VHost, operate.Nobody{}, broker.Binding{Source: q.Source, Destination: q.Destination, ToExchange: q.Type == "exchange", RoutingKey: q.Key, Args: q.Arguments})
})

// BindingName names a binding: by its row in a list.
type BindingName struct {
	VHost       string `json:"vhost"`
	Source      string `json:"source" log:"source"`
	Destination string `json:"destination" log:"destination"`
	Type        string `json:"to" log:"to"`
	Key         string `json:"routing_key" form:"key" log:"routing_key"`
	Digest      string `json:"args"`
}

// Unbind removes a binding. Error: operate.ErrNotFound among others.
var Unbind = operate.Define(operate.Op{
	Name: "unbind", Noun: "binding", Title: "Remove a binding", Rule: operate.Rule{Role: operate.Management},
	Page: operate.Page{On: "/binding/delete", Title: "Remove the binding of", Button: "Remove", Tab: "/exchanges", Parent: "/exchanges", Up: "Exchanges", Rows: "list_bindings", Link: "Unbind…", Danger: true, Only: func(row any) bool { return row.(BindingRow).Source != "" },
		Done: "Binding removed.", Next: "/exchange?vhost={vhost}&name={source}&done=unbind"},
}, func(ctx context.Context, c *operate.Call, q BindingName) (none operate.None, err error) {
	all, err := ListBindings.Do(ctx, c.Operations, c.Actor, BindingFilter{VHost: q.VHost, Exchange: &q.Source})
	for _, row := range all {
		if row.Source == q.Source && row.Destination == q.Destination && row.Type == q.Type && row.Key == q.Key && row.Digest == q.Digest {
			return none, c.Rights.Unbind(c.VHost, operate.Nobody{}, row.Binding)
		}
	}
	if err == nil {
		err = operate.ErrNotFound
	}
	return none, err
})

// BindingNamed is the name of a binding.
func BindingNamed(vhost string, b *broker.Binding) BindingName {
	name := BindingName{vhost, b.Source, b.Destination, "queue", b.RoutingKey, digest(b.Args)}
	if b.ToExchange {
		name.Type = "exchange"
	}
	return name
}
