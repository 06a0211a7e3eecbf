package management

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/definitions"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
)

// exchangeNamed returns the exchange in the path.
func (r *request) exchangeNamed() operate.ExchangeName {
	return operate.ExchangeName{VHost: r.Param("vhost"), Name: operate.ExchangeNamed(r.Param("exchange"))}
}

func exchangeObject(r *request, vh *broker.VHost, x *broker.ExchangeInfo) object {
	key := operate.ExchangeKey{VHost: x.VHost, Name: x.Name}
	o := object{
		"name": x.Name, "vhost": x.VHost, "type": x.Kind, "durable": x.Durable, "auto_delete": x.AutoDelete, "internal": x.Internal,
		"arguments": definitions.JSONOf(x.Args), "user_who_performed_action": "rmq-internal", "policy": nil, "operator_policy": nil,
		"message_stats": r.api.counts(operate.ExchangeCounts(x), key),
	}
	r.addStatSamples(o, key)
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
	r.api.rates.Refresh()
	o := exchangeObject(r, vh, x)
	o["incoming"], o["outgoing"] = []any{}, []any{}
	return r.One(o)
}

// exchange returns the exchange in the path.
func (r *request) exchange() (*broker.VHost, *broker.ExchangeInfo, error) {
	vh, err := r.vhost()
	if err != nil {
		return nil, nil, err
	}
	x, err := vh.Exchanges.Get(r.exchangeNamed().Name)
	if err != nil {
		return nil, nil, rest.ErrNotFound
	}
	return vh, &x, nil
}

// propertiesKey names a binding between two ends: the routing key, escaped, and a
// hash of the arguments if it has any; "~" stands for neither.
func propertiesKey(b *broker.Binding) string {
	key := strings.ReplaceAll(url.QueryEscape(b.RoutingKey), "~", "%7E")
	if hash := argsHash(b.Args); hash != "" || key == "" {
		return key + "~" + hash
	}
	return key
}

// argsHash is as long as RabbitMQ's. Like RabbitMQ's, it only distinguishes arguments. "": there are none.
func argsHash(t amqp.Table) string {
	if len(t) == 0 {
		return ""
	}
	text, _ := json.Marshal(definitions.JSONOf(t)) // keys sorted; JSON can express everything that JSONOf returns
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:4])
}

func bindingObject(vhost string, b *broker.Binding) object {
	kind := "queue"
	if b.ToExchange {
		kind = "exchange"
	}
	return object{
		"source": b.Source, "vhost": vhost, "destination": b.Destination, "destination_type": kind,
		"routing_key": b.RoutingKey, "arguments": definitions.JSONOf(b.Args), "properties_key": propertiesKey(b),
	}
}

// listBindings answers with the bindings that of returns for each virtual host.
func listBindings(r *request, of func(*broker.VHost) []broker.Binding) error {
	type bound struct {
		vhost string
		broker.Binding
	}
	var all []bound
	for _, vh := range r.vhosts() {
		for _, b := range of(vh) {
			all = append(all, bound{vh.Name(), b})
		}
	}
	return r.Rows(len(all), func(i int) object { return bindingObject(all[i].vhost, &all[i].Binding) })
}

func allBindings(r *request) error {
	return listBindings(r, (*broker.VHost).Bindings)
}

func queueBindings(r *request) error {
	if _, _, err := r.queue(); err != nil {
		return err
	}
	return bindingsWhere(r, func(b *broker.Binding) bool { return !b.ToExchange && b.Destination == r.Param("queue") })
}

// exchangeBindings are those that an exchange is at the given end of.
func exchangeBindings(at func(b *broker.Binding, name string) bool) func(*request) error {
	return func(r *request) error {
		_, x, err := r.exchange()
		if err != nil {
			return err
		}
		return bindingsWhere(r, func(b *broker.Binding) bool { return at(b, x.Name) })
	}
}

func bindingsWhere(r *request, keep func(*broker.Binding) bool) error {
	return listBindings(r, func(vh *broker.VHost) []broker.Binding { return vh.BindingsWhere(keep) })
}

var (
	bindingsFrom = exchangeBindings(func(b *broker.Binding, name string) bool { return b.Source == name })
	bindingsTo   = exchangeBindings(func(b *broker.Binding, name string) bool { return b.ToExchange && b.Destination == name })
)

// bindingEnds returns the source and the destination in the path: a queue, or an exchange if the
// path has "e".
func bindingEnds(r *request) (b broker.Binding, err error) {
	kind := r.Param("kind")
	if kind != "q" && kind != "e" {
		return b, rest.ErrNotFound
	}
	return broker.Binding{Source: r.exchangeNamed().Name, Destination: r.Param("destination"), ToExchange: kind == "e"}, nil
}

func bindingsBetween(r *request) error {
	ends, err := bindingEnds(r)
	if err != nil {
		return err
	}
	return listBindings(r, func(vh *broker.VHost) []broker.Binding { return vh.BindingsBetween(ends) })
}

// namedBinding returns the binding in the path, by its properties key. Clients may have escaped the routing key for the path only.
func namedBinding(r *request) (*broker.VHost, *broker.Binding, error) {
	vh, err := r.vhost()
	if err != nil {
		return nil, nil, err
	}
	ends, err := bindingEnds(r)
	if err != nil {
		return nil, nil, err
	}
	key, hash, _ := strings.Cut(r.Param("props"), "~")
	if plain, err := url.QueryUnescape(key); err == nil {
		key = plain
	}
	for _, b := range vh.BindingsBetween(ends) {
		if b.RoutingKey == key && argsHash(b.Args) == hash {
			return vh, &b, nil
		}
	}
	return nil, nil, rest.ErrNotFound
}

func getBinding(r *request) error {
	vh, b, err := namedBinding(r)
	if err != nil {
		return err
	}
	return r.One(bindingObject(vh.Name(), b))
}

// bind answers with the path of the new binding. Terraform uses its last part to identify the
// binding.
func bind(r *request) error {
	b, err := bindingEnds(r)
	if err != nil {
		return err
	}
	f, err := r.Fields()
	if err != nil {
		return err
	}
	of, err := operate.Read[struct {
		Key       string        `json:"routing_key"`
		Arguments operate.Table `json:"arguments"`
	}](f)
	if err != nil {
		return err
	}
	b.RoutingKey, b.Args = of.Key, of.Arguments
	name := admin.BindingNamed(r.Param("vhost"), &b)
	if _, err := admin.Bind.Do(r.HTTP.Context(), r.Operations, r.Actor, admin.Binding{
		VHost: name.VHost, Source: name.Source, Destination: name.Destination, Type: name.Type, Key: name.Key, Arguments: b.Args,
	}); err != nil {
		return err
	}
	r.W.Header().Set("Location", escapeAll(b.Destination)+"/"+escapeAll(propertiesKey(&b)))
	r.W.WriteHeader(http.StatusCreated)
	return nil
}

// escapeAll escapes everything that has a meaning in a path or a query.
func escapeAll(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

func unbind(r *request) error {
	vh, b, err := namedBinding(r)
	if err == nil {
		_, err = admin.Unbind.Do(r.HTTP.Context(), r.Operations, r.Actor, admin.BindingNamed(vh.Name(), b))
	}
	return r.Done(err)
}
