package management

import (
	"curfew/broker"
)

// owner is whose the API's declarations are: nobody's connection, so that another's
// exclusive queue stays closed to it.
type owner struct{}

// defaultExchange is how the default exchange is written in paths.
const defaultExchange = "amq.default"

// exchangeName is the exchange the path names.
func (q *request) exchangeName() string {
	if name := q.param("exchange"); name != defaultExchange {
		return name
	}
	return ""
}

func (q *request) exchangeObject(vh *broker.VHost, x *broker.ExchangeInfo) object {
	by := "rmq-internal"
	o := object{
		"name": x.Name, "vhost": x.VHost, "type": x.Kind, "durable": x.Durable, "auto_delete": x.AutoDelete, "internal": x.Internal,
		"arguments": jsonOf(x.Args), "user_who_performed_action": by, "policy": nil, "operator_policy": nil,
		"message_stats": q.api.messageStats(exchKey{x.VHost, x.Name}, exchangeCounts(x)),
	}
	if n := vh.DelayedFor(x.Name); n > 0 || x.Kind == broker.DelayedMessageKind {
		o["messages_delayed"] = n
	}
	if user, operator, effective, _ := vh.ExchangePolicies(x.Name); effective != nil { // RabbitMQ shows the first only
		o["policy"], o["operator_policy"], o["effective_policy_definition"] = nameOrNull(user), nameOrNull(operator), object(effective)
	}
	return o
}

func (q *request) listExchanges() error {
	q.api.rates.refresh()
	var all []broker.ExchangeInfo
	hosts := map[string]*broker.VHost{}
	for _, vh := range q.vhosts() {
		all = append(all, vh.Exchanges()...)
		hosts[vh.Name()] = vh
	}
	return q.rows(len(all), func(i int) object { return q.exchangeObject(hosts[all[i].VHost], &all[i]) })
}

func (q *request) getExchange() error {
	vh, x, err := q.exchange()
	if err != nil {
		return err
	}
	asked, err := q.spans()
	if err != nil {
		return err
	}
	q.api.rates.refresh()
	o := q.exchangeObject(vh, x)
	q.statSamples(o, exchKey{x.VHost, x.Name}, asked)
	o["incoming"], o["outgoing"] = []any{}, []any{}
	return q.one(o)
}

// exchange is the one the path names.
func (q *request) exchange() (*broker.VHost, *broker.ExchangeInfo, error) {
	vh, err := q.vhost()
	if err != nil {
		return nil, nil, err
	}
	x, err := vh.Exchange(q.exchangeName())
	if err != nil {
		return nil, nil, errNotFound
	}
	return vh, &x, nil
}

func (q *request) putExchange() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	d, err := q.exchangeDeclare()
	if err != nil {
		return err
	}
	_, missing := vh.Exchange(q.exchangeName())
	if err := q.rights(vh).DeclareExchange(vh, q.exchangeName(), d); err != nil {
		return err
	}
	return q.put(missing != nil)
}

// exchangeDeclare reads the body.
func (q *request) exchangeDeclare() (d broker.ExchangeDeclare, err error) {
	f, err := q.fields()
	if err != nil {
		return d, err
	}
	if d.Kind, err = f.text("type", "direct"); err != nil {
		return d, err
	}
	if d.Durable, err = f.boolean("durable", false); err != nil {
		return d, err
	}
	if d.AutoDelete, err = f.boolean("auto_delete", false); err != nil {
		return d, err
	}
	if d.Internal, err = f.boolean("internal", false); err != nil {
		return d, err
	}
	d.Args, err = f.table("arguments")
	return d, err
}

func (q *request) deleteExchange() error {
	vh, x, err := q.exchange()
	if err == nil {
		err = q.rights(vh).DeleteExchange(vh, x.Name, q.flag("if-unused"))
	}
	if err != nil {
		return err
	}
	return q.done()
}
