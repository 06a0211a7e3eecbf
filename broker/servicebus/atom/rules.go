package atom

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"curfew/broker"
	"curfew/broker/operate/admin"
)

// defaultRule is the only rule that a subscription can have: it gets every message. The rule is the
// binding of its queue to the fanout exchange of the topic. A subscription without it gets nothing.
const defaultRule = "$Default"

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
}

// check refuses what is not the true filter.
func (r *rule) check() error {
	all := strings.HasSuffix(r.Filter.Type, "TrueFilter") || strings.HasSuffix(r.Filter.Type, "SqlFilter") && strings.ReplaceAll(r.Filter.SQLExpression, " ", "") == "1=1"
	switch {
	case r.Action != nil && r.Action.SQLExpression != "":
		return fmt.Errorf("rule %s: actions are not supported", r.Name)
	case !all:
		return fmt.Errorf("rule %s: only the true filter is supported", r.Name)
	}
	return nil
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

// rules answers a request about the rules of a subscription; name "": it lists them.
func (c *call) rules(path, name string) {
	topic, subscription := split(path)
	queue := queueName(topic, subscription)
	x, err := c.vh.Exchanges.Get(topic)
	if err != nil || !c.vh.Queues.Has(queue) {
		refuse(c.w, http.StatusNotFound, errUnknown)
		return
	}
	var bindings []broker.Binding
	if x.Kind == "fanout" {
		bindings = c.vh.BindingsWhere(func(b *broker.Binding) bool { return b.Source == topic && b.Destination == queue && !b.ToExchange })
	}
	all := []ruleEntry{{ID: idOf(queue + "/Rules/" + defaultRule), Title: defaultRule, Updated: zeroTime, Content: ruleContent{"application/xml", rule{
		XMLName: xml.Name{Space: busSpace, Local: "RuleDescription"}, Filter: filter{"TrueFilter", "1=1"}, Action: &filter{Type: "EmptyRuleAction"}, Name: defaultRule,
	}}}}
	exists := len(bindings) > 0 && strings.EqualFold(name, defaultRule)
	switch {
	case c.r.Method == http.MethodGet && name == "":
		listed(c, all[:min(len(bindings), 1)])
	case c.r.Method == http.MethodPut && name != "":
		c.putRule(broker.Binding{Source: topic, Destination: queue}, name, exists, &all[0])
	case !exists:
		refuse(c.w, http.StatusNotFound, errUnknown)
	case c.r.Method == http.MethodGet:
		write(c.w, http.StatusOK, all[0])
	case c.r.Method == http.MethodDelete:
		c.unbind(bindings)
	default:
		refuse(c.w, http.StatusMethodNotAllowed, errors.New("the method is not known"))
	}
}

// putRule makes the default rule.
func (c *call) putRule(b broker.Binding, name string, exists bool, made *ruleEntry) {
	var given ruleEntry
	err := xml.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, maxBody)).Decode(&given)
	if err == nil {
		err = given.Content.Rule.check()
	}
	if err == nil && !strings.EqualFold(name, defaultRule) {
		err = fmt.Errorf("rule %s: a subscription can have the rule %s and no other", name, defaultRule)
	}
	switch {
	case err != nil:
		refuse(c.w, http.StatusBadRequest, err)
		return
	case c.refused(exists):
		return
	case exists:
		write(c.w, http.StatusOK, made)
		return
	}
	if _, err = admin.Bind.Do(c.r.Context(), c.Operations.Access, c.actor, admin.Binding{Source: b.Source, VHost: vhostName, Destination: b.Destination, Type: "queue"}); err != nil {
		refuse(c.w, http.StatusBadRequest, err)
		return
	}
	write(c.w, http.StatusCreated, made)
}

// unbind removes bindings.
func (c *call) unbind(bindings []broker.Binding) {
	for i := range bindings {
		if _, err := admin.Unbind.Do(c.r.Context(), c.Operations.Access, c.actor, admin.BindingNamed(vhostName, &bindings[i])); err != nil {
			refuse(c.w, http.StatusBadRequest, err)
			return
		}
	}
	c.w.WriteHeader(http.StatusOK)
}
