package atom

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/operate/admin"
	"curfew/broker/servicebus"
)

// rule is a RuleDescription or a DefaultRuleDescription.
type rule struct {
	XMLName xml.Name
	Filter  filter
	Action  *filter `xml:",omitempty"`
	Name    string
}

type filter struct {
	Type          string `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
	SQLExpression string `xml:"SqlExpression,omitempty"`
	servicebus.Correlation
	Properties *keyValues `xml:",omitempty"`
}

type keyValues struct {
	All []keyValue `xml:"KeyValueOfstringanyType"`
}

type keyValue struct {
	Key   string
	Value typedValue
}

// typedValue is a value with its type in XML Schema.
type typedValue struct {
	Type string `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
	Text string `xml:",chardata"`
}

// MarshalXML writes the prefixes that Azure writes: JavaScript's client looks for them.
func (v typedValue) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	for name, value := range map[string]string{"xmlns:i": "http://www.w3.org/2001/XMLSchema-instance", "xmlns:d6p1": "http://www.w3.org/2001/XMLSchema", "i:type": "d6p1:" + v.Type} {
		start.Attr = append(start.Attr, xml.Attr{Name: xml.Name{Local: name}, Value: value})
	}
	return e.EncodeElement(v.Text, start)
}

func (v typedValue) parse() (any, error) {
	switch _, kind, _ := strings.Cut(v.Type, ":"); kind {
	case "string":
		return v.Text, nil
	case "boolean":
		return strconv.ParseBool(v.Text)
	case "int", "long":
		return strconv.ParseInt(v.Text, 10, 64)
	case "double":
		return strconv.ParseFloat(v.Text, 64)
	default:
		return nil, fmt.Errorf("properties of the type %q are not compared", kind)
	}
}

// args are the arguments of the binding that is the rule. The error says what is not supported.
func (r *rule) args() (args amqp.Table, err error) {
	f := &r.Filter
	_, kind, prefixed := strings.Cut(f.Type, ":")
	if !prefixed {
		kind = f.Type
	}
	switch {
	case r.Action != nil && r.Action.SQLExpression != "":
		err = errors.New("actions are not supported")
	case kind == "TrueFilter":
	case kind == "FalseFilter":
		args = servicebus.NoMatch()
	case kind == "SqlFilter":
		args, err = servicebus.SQLArgs(f.SQLExpression)
	case kind == "CorrelationFilter":
		f.Correlation.Properties = map[string]any{}
		for i := 0; f.Properties != nil && err == nil && i < len(f.Properties.All); i++ {
			one := &f.Properties.All[i]
			f.Correlation.Properties[one.Key], err = one.Value.parse()
		}
		if err == nil {
			args, err = f.Args()
		}
	default:
		err = fmt.Errorf("the filter %q is not known", f.Type)
	}
	if err != nil {
		err = fmt.Errorf("rule %s: %w", r.Name, err)
	}
	return args, err
}

// filterOf is the filter that a rule's binding is.
func filterOf(args amqp.Table) filter {
	f := filter{Type: string(servicebus.KindOf(args)), SQLExpression: servicebus.Expression(args)}
	f.Correlation, _ = servicebus.CorrelationOf(args)
	for _, name := range slices.Sorted(maps.Keys(f.Correlation.Properties)) {
		one := keyValue{Key: name}
		switch v := f.Correlation.Properties[name].(type) {
		case string:
			one.Value = typedValue{"string", v}
		case bool:
			one.Value = typedValue{"boolean", strconv.FormatBool(v)}
		case float64:
			one.Value = typedValue{"double", strconv.FormatFloat(v, 'g', -1, 64)}
		default:
			n, _ := amqp.Integer(v)
			one.Value = typedValue{"int", strconv.FormatInt(n, 10)}
			if int64(int32(n)) != n {
				one.Value.Type = "long"
			}
		}
		if f.Properties == nil {
			f.Properties = &keyValues{}
		}
		f.Properties.All = append(f.Properties.All, one)
	}
	return f
}

// cutRules tells a path to the rules of a subscription, or to one of them, from others.
func cutRules(path string) (subscription, name string, is bool) {
	path += "/"
	at := strings.LastIndex(strings.ToLower(path), "/rules/")
	if at < 0 || !strings.Contains(strings.ToLower(path[:at]), subscriptions) {
		return "", "", false
	}
	return path[:at], strings.Trim(path[at+len("/rules/"):], "/"), true
}

// entryOf is a rule as it is read.
func entryOf(r *servicebus.BoundRule) entry[rule] {
	return entry[rule]{ID: idBase + r.Destination + "/Rules/" + r.Name, Title: r.Name, Updated: zeroTime, Content: content[rule]{"application/xml", rule{
		XMLName: xml.Name{Space: busSpace, Local: "RuleDescription"}, Filter: filterOf(r.Args), Action: &filter{Type: "EmptyRuleAction"}, Name: r.Name,
	}}}
}

// rules answers a request about the rules of a subscription; name "": it lists them.
func (c *call) rules(path, name string) {
	topic, subscription := servicebus.Split(path)
	queue := queueName(topic, subscription)
	if isPart(path) || c.vh.Exchanges.Check(topic) != nil || !c.vh.Queues.Has(queue) {
		refuse(c.w, http.StatusNotFound, errUnknown)
		return
	}
	all := servicebus.RulesOf(c.vh, topic, queue)
	if name == "" && c.r.Method == http.MethodGet {
		listed(c, all, func(r servicebus.BoundRule) entry[rule] { return entryOf(&r) })
		return
	}
	named := servicebus.Named(all, name)
	switch {
	case c.r.Method == http.MethodPut && name != "":
		c.putRule(topic, queue, name, named)
	case len(named) == 0:
		refuse(c.w, http.StatusNotFound, errUnknown)
	case c.r.Method == http.MethodGet:
		write(c.w, http.StatusOK, entryOf(&named[0]))
	case c.r.Method == http.MethodDelete:
		if err := c.unbind(named); err != nil {
			refuse(c.w, http.StatusBadRequest, err)
			return
		}
		c.w.WriteHeader(http.StatusOK)
	default:
		refuse(c.w, http.StatusMethodNotAllowed, errors.New("the method is not known"))
	}
}

// putRule makes or changes a rule: the new binding is there before the old one goes.
func (c *call) putRule(topic, queue, name string, were []servicebus.BoundRule) {
	var given entry[rule]
	var args amqp.Table
	err := xml.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, maxBody)).Decode(&given)
	if err == nil {
		args, err = given.Content.Is.args()
	}
	if err != nil {
		refuse(c.w, http.StatusBadRequest, err)
		return
	}
	if c.refused(len(were) > 0) {
		return
	}
	status := http.StatusOK
	if len(were) == 0 {
		status = http.StatusCreated
	} else {
		name = were[0].Name
	}
	err = c.bindRule(topic, queue, name, args)
	if err == nil {
		err = c.unbind(slices.DeleteFunc(were, func(r servicebus.BoundRule) bool { return exchange.ArgsEqual(r.Args, args) }))
	}
	made := servicebus.Named(servicebus.RulesOf(c.vh, topic, queue), name)
	if err == nil && len(made) == 0 {
		err = errors.New("the rule was deleted at once")
	}
	if err != nil {
		refuse(c.w, http.StatusBadRequest, err)
		return
	}
	write(c.w, status, entryOf(&made[0]))
}

// bindRule makes the binding that is a rule.
func (c *call) bindRule(topic, queue, name string, args amqp.Table) error {
	b, err := servicebus.NewRule(c.vh, topic, queue, name, args)
	if err != nil {
		return err
	}
	_, err = admin.Bind.Do(c.r.Context(), c.Operations, c.actor, admin.Binding{Source: topic, VHost: vhostName, Destination: queue, Type: "queue", Key: b.RoutingKey, Arguments: args})
	return err
}

// unbind removes rules.
func (c *call) unbind(rules []servicebus.BoundRule) error {
	for i := range rules {
		if _, err := admin.Unbind.Do(c.r.Context(), c.Operations, c.actor, admin.BindingNamed(vhostName, &rules[i].Binding)); err != nil {
			return err
		}
	}
	return nil
}
