package atom

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/operate/admin"
	"curfew/broker/servicebus"
)

// ruleEntry is a rule as it is read and written.
type ruleEntry struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom entry"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Content ruleContent `xml:"content"`
}

type ruleContent struct {
	Type string `xml:"type,attr"`
	Rule rule   `xml:",any"`
}

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

// filterOf is the filter that a binding is; false: it is none.
func filterOf(args amqp.Table) (f filter, is bool) {
	switch {
	case len(args) == 0:
		return filter{Type: "TrueFilter", SQLExpression: "1=1"}, true
	case exchange.ArgsEqual(args, servicebus.NoMatch()):
		return filter{Type: "FalseFilter", SQLExpression: "1=0"}, true
	}
	f.Type = "CorrelationFilter"
	f.Correlation, is = servicebus.CorrelationOf(args)
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
			n, ok := amqp.Integer(v)
			one.Value, is = typedValue{"int", strconv.FormatInt(n, 10)}, is && ok
			if int64(int32(n)) != n {
				one.Value.Type = "long"
			}
		}
		if f.Properties == nil {
			f.Properties = &keyValues{}
		}
		f.Properties.All = append(f.Properties.All, one)
	}
	return f, is
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

// subscriptionRule is a rule, which is a binding.
type subscriptionRule struct {
	entry   ruleEntry
	binding broker.Binding
}

// rulesOf are the rules of a subscription by name. Bindings that are none are left out.
func (c *call) rulesOf(topic, queue string) (all []subscriptionRule) {
	for _, b := range c.vh.BindingsWhere(func(b *broker.Binding) bool { return b.Source == topic && b.Destination == queue && !b.ToExchange }) {
		name := cmp.Or(b.RoutingKey, servicebus.DefaultRule)
		if f, is := filterOf(b.Args); is {
			all = append(all, subscriptionRule{ruleEntry{ID: idOf(queue + "/Rules/" + name), Title: name, Updated: zeroTime, Content: ruleContent{"application/xml", rule{
				XMLName: xml.Name{Space: busSpace, Local: "RuleDescription"}, Filter: f, Action: &filter{Type: "EmptyRuleAction"}, Name: name,
			}}}, b})
		}
	}
	slices.SortFunc(all, func(x, y subscriptionRule) int { return strings.Compare(x.entry.Title, y.entry.Title) })
	return all
}

// rules answers a request about the rules of a subscription; name "": it lists them.
func (c *call) rules(path, name string) {
	topic, subscription := split(path)
	queue := queueName(topic, subscription)
	if isPart(path) || c.vh.Exchanges.Check(topic) != nil || !c.vh.Queues.Has(queue) {
		refuse(c.w, http.StatusNotFound, errUnknown)
		return
	}
	all := c.rulesOf(topic, queue)
	if name == "" && c.r.Method == http.MethodGet {
		entries := make([]ruleEntry, len(all))
		for i := range all {
			entries[i] = all[i].entry
		}
		listed(c, entries)
		return
	}
	named := slices.DeleteFunc(all, func(r subscriptionRule) bool { return !strings.EqualFold(r.entry.Title, name) })
	switch {
	case c.r.Method == http.MethodPut && name != "":
		c.putRule(topic, queue, name, named)
	case len(named) == 0:
		refuse(c.w, http.StatusNotFound, errUnknown)
	case c.r.Method == http.MethodGet:
		write(c.w, http.StatusOK, named[0].entry)
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
func (c *call) putRule(topic, queue, name string, were []subscriptionRule) {
	var given ruleEntry
	var args amqp.Table
	err := xml.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, maxBody)).Decode(&given)
	if err == nil {
		args, err = given.Content.Rule.args()
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
		name = were[0].entry.Title
	}
	err = c.bindRule(topic, queue, name, args)
	if err == nil {
		err = c.unbind(slices.DeleteFunc(were, func(r subscriptionRule) bool { return exchange.ArgsEqual(r.binding.Args, args) }))
	}
	made := slices.DeleteFunc(c.rulesOf(topic, queue), func(r subscriptionRule) bool { return !strings.EqualFold(r.entry.Title, name) })
	if err == nil && len(made) == 0 {
		err = errors.New("the rule was deleted at once")
	}
	if err != nil {
		refuse(c.w, http.StatusBadRequest, err)
		return
	}
	write(c.w, status, made[0].entry)
}

// maxRuleName is how long the name of a rule may be, as in Azure.
const maxRuleName = 50

// bindRule makes the binding that is a rule.
func (c *call) bindRule(topic, queue, name string, args amqp.Table) error {
	key := name
	if strings.EqualFold(name, servicebus.DefaultRule) {
		key = ""
	}
	x, err := c.vh.Exchanges.Get(topic)
	switch {
	case err != nil:
		return err
	case len(name) > maxRuleName:
		return fmt.Errorf("rule %s: its name has more than %d characters", name, maxRuleName)
	}
	if err = servicebus.CheckFilter(x, name, args); err != nil {
		return err
	}
	_, err = admin.Bind.Do(c.r.Context(), c.Operations.Access, c.actor, admin.Binding{Source: topic, VHost: vhostName, Destination: queue, Type: "queue", Key: key, Arguments: args})
	return err
}

// unbind removes rules.
func (c *call) unbind(rules []subscriptionRule) error {
	for i := range rules {
		if _, err := admin.Unbind.Do(c.r.Context(), c.Operations.Access, c.actor, admin.BindingNamed(vhostName, &rules[i].binding)); err != nil {
			return err
		}
	}
	return nil
}
