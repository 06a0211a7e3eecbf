package management

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
)

// propertiesKey names a binding between two ends: the routing key, escaped, and a
// hash of the arguments if it has any; "~" stands for neither.
func propertiesKey(b *broker.Binding) string {
	key := quotePlus(b.RoutingKey)
	if len(b.Args) > 0 {
		return key + "~" + argsHash(b.Args)
	}
	if key == "" {
		return "~"
	}
	return key
}

// quotePlus escapes as Python's quote_plus does, and "~" too.
func quotePlus(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
			b.WriteByte(c)
		case c == ' ':
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// argsHash is as long as RabbitMQ's, and like it means nothing but to tell.
func argsHash(t amqp.Table) string {
	text, _ := json.Marshal(jsonOf(t)) // keys sorted; jsonOf leaves nothing that JSON cannot say
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
		"routing_key": b.RoutingKey, "arguments": jsonOf(b.Args), "properties_key": propertiesKey(b),
	}
}

// listBindings answers with the bindings that keep says.
func (q *request) listBindings(keep func(*broker.Binding) bool) error {
	type bound struct {
		vhost string
		broker.Binding
	}
	var all []bound
	for _, vh := range q.vhosts() {
		for _, b := range vh.Bindings() {
			if keep(&b) {
				all = append(all, bound{vh.Name(), b})
			}
		}
	}
	return q.rows(len(all), func(i int) object { return bindingObject(all[i].vhost, &all[i].Binding) })
}

func (q *request) allBindings() error {
	return q.listBindings(func(*broker.Binding) bool { return true })
}

func (q *request) queueBindings() error {
	if _, _, err := q.queue(); err != nil {
		return err
	}
	name := q.param("queue")
	return q.listBindings(func(b *broker.Binding) bool { return !b.ToExchange && b.Destination == name })
}

func (q *request) bindingsFrom() error {
	if _, _, err := q.exchange(); err != nil {
		return err
	}
	name := q.exchangeName()
	return q.listBindings(func(b *broker.Binding) bool { return b.Source == name })
}

func (q *request) bindingsTo() error {
	if _, _, err := q.exchange(); err != nil {
		return err
	}
	name := q.exchangeName()
	return q.listBindings(func(b *broker.Binding) bool { return b.ToExchange && b.Destination == name })
}

// ends are the source and the destination that the path names: a queue, or an
// exchange where it says "e".
func (q *request) ends() (b broker.Binding, err error) {
	b = broker.Binding{Source: q.exchangeName(), Destination: q.param("destination")}
	switch q.param("kind") {
	case "q":
	case "e":
		b.ToExchange = true
	default:
		return b, errNotFound
	}
	return b, nil
}

func (q *request) bindingsBetween() error {
	ends, err := q.ends()
	if err != nil {
		return err
	}
	return q.listBindings(func(b *broker.Binding) bool {
		return b.Source == ends.Source && b.Destination == ends.Destination && b.ToExchange == ends.ToExchange
	})
}

// binding is the one the path names by its properties key.
func (q *request) binding() (*broker.VHost, *broker.Binding, error) {
	vh, err := q.vhost()
	if err != nil {
		return nil, nil, err
	}
	ends, err := q.ends()
	if err != nil {
		return nil, nil, err
	}
	for _, b := range vh.Bindings() {
		if b.Source == ends.Source && b.Destination == ends.Destination && b.ToExchange == ends.ToExchange && propertiesKey(&b) == q.param("props") {
			return vh, &b, nil
		}
	}
	return nil, nil, errNotFound
}

func (q *request) getBinding() error {
	vh, b, err := q.binding()
	if err != nil {
		return err
	}
	return q.one(bindingObject(vh.Name(), b))
}

// bind answers with where the binding is from now on; Terraform takes the last
// part of it for the binding's identity.
func (q *request) bind() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	b, err := q.ends()
	if err != nil {
		return err
	}
	f, err := q.fields()
	if err != nil {
		return err
	}
	if b.RoutingKey, err = f.text("routing_key", ""); err != nil {
		return err
	}
	if b.Args, err = f.table("arguments"); err != nil {
		return err
	}
	if err := q.rights(vh).Bind(vh, owner{}, b); err != nil {
		return err
	}
	q.w.Header().Set("Location", escapeAll(b.Destination)+"/"+escapeAll(propertiesKey(&b)))
	q.w.WriteHeader(http.StatusCreated)
	return nil
}

// escapeAll leaves nothing that has a meaning in a path or a query.
func escapeAll(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

func (q *request) unbind() error {
	vh, b, err := q.binding()
	if err == nil {
		err = q.rights(vh).Unbind(vh, owner{}, *b)
	}
	if err != nil {
		return err
	}
	return q.done()
}
