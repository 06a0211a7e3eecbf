package management

import (
	"curfew/broker"
	"curfew/broker/definitions"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// defaultExchange is how the default exchange is written in paths.
const defaultExchange = "amq.default"

// exchangeName returns the name of the exchange in the path.
func (r *request) exchangeName() string {
	if name := r.Param("exchange"); name != defaultExchange {
		return name
	}
	return ""
}

// exchangeNamed returns the exchange in the path.
func (r *request) exchangeNamed() operate.ExchangeName {
	return operate.ExchangeName{VHost: r.Param("vhost"), Name: r.exchangeName()}
}

func exchangeObject(r *request, vh *broker.VHost, x *broker.ExchangeInfo) object {
	by := "rmq-internal"
	o := object{
		"name": x.Name, "vhost": x.VHost, "type": x.Kind, "durable": x.Durable, "auto_delete": x.AutoDelete, "internal": x.Internal,
		"arguments": definitions.JSONOf(x.Args), "user_who_performed_action": by, "policy": nil, "operator_policy": nil,
		"message_stats": r.api.counts(operate.ExchangeCounts(x), operate.ExchangeKey{VHost: x.VHost, Name: x.Name}),
	}
	if n := vh.DelayedFor(x.Name); n > 0 || x.Kind == broker.DelayedMessageKind {
		o["messages_delayed"] = n
	}
	if user, operator, effective, _ := vh.Exchanges.PoliciesOf(x.Name); effective != nil { // RabbitMQ shows only the first
		o["policy"], o["operator_policy"], o["effective_policy_definition"] = nameOrNull(user), nameOrNull(operator), object(effective)
	}
	return o
}

func listExchanges(r *request) error {
	r.api.rates.Refresh()
	var all []broker.ExchangeInfo
	hosts := map[string]*broker.VHost{}
	for _, vh := range r.vhosts() {
		all = append(all, vh.Exchanges.List()...)
		hosts[vh.Name()] = vh
	}
	return r.Rows(len(all), func(i int) object { return exchangeObject(r, hosts[all[i].VHost], &all[i]) })
}

func getExchange(r *request) error {
	vh, x, err := r.exchange()
	if err != nil {
		return err
	}
	asked, err := readSpans(r.URL.Query())
	if err != nil {
		return err
	}
	r.api.rates.Refresh()
	o := exchangeObject(r, vh, x)
	r.api.addStatSamples(o, operate.ExchangeKey{VHost: x.VHost, Name: x.Name}, asked)
	o["incoming"], o["outgoing"] = []any{}, []any{}
	return r.One(o)
}

// exchange returns the exchange in the path.
func (r *request) exchange() (*broker.VHost, *broker.ExchangeInfo, error) {
	vh, err := r.vhost()
	if err != nil {
		return nil, nil, err
	}
	x, err := vh.Exchanges.Get(r.exchangeName())
	if err != nil {
		return nil, nil, rest.ErrNotFound
	}
	return vh, &x, nil
}
