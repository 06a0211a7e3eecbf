package servicebus

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/exchange"
)

// BoundRule is a rule as it is kept: a binding of the subscription's queue to the topic's exchange. The routing key is the name of
// the rule, and empty for DefaultRule.
type BoundRule struct {
	Name string
	broker.Binding
}

// Kind is the kind of a rule's filter.
type Kind string

const (
	TrueFilter        Kind = "TrueFilter"
	FalseFilter       Kind = "FalseFilter"
	SQLFilter         Kind = "SqlFilter"
	CorrelationFilter Kind = "CorrelationFilter"
)

// descriptors describe a filter in an answer.
var descriptors = map[Kind]uint64{SQLFilter: 0x1370000006, TrueFilter: 0x1370000007, FalseFilter: 0x1370000008, CorrelationFilter: 0x1370000009}

const (
	descriptorRule        = 0x13700000004
	descriptorEmptyAction = 0x1370000005

	maxRuleName   = 50 // as in Azure
	compatibility = 20 // the level of SQL that Azure says
)

// KindOf tells which filter a binding with those arguments is; "": it is no rule.
func KindOf(args amqp.Table) Kind {
	_, sql := args[exchange.SQLArg].(string)
	_, correlates := CorrelationOf(args)
	switch {
	case len(args) == 0:
		return TrueFilter
	case exchange.ArgsEqual(args, NoMatch()):
		return FalseFilter
	case sql && len(args) == 1:
		return SQLFilter
	case correlates:
		return CorrelationFilter
	}
	return ""
}

// Expression is that of a SQL filter, and of the true and the false one.
func Expression(args amqp.Table) string {
	text, _ := args[exchange.SQLArg].(string)
	return cmp.Or(text, map[Kind]string{TrueFilter: "1=1", FalseFilter: "1=0"}[KindOf(args)])
}

// RulesOf are the rules of a subscription by name. Bindings that are none are left out.
func RulesOf(vh *broker.VHost, topic, queue string) (all []BoundRule) {
	for _, b := range vh.BindingsBetween(broker.Binding{Source: topic, Destination: queue}) {
		if KindOf(b.Args) != "" {
			all = append(all, BoundRule{cmp.Or(b.RoutingKey, DefaultRule), b})
		}
	}
	slices.SortFunc(all, func(x, y BoundRule) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// Named are those of that name, which has no case.
func Named(rules []BoundRule, name string) []BoundRule {
	return slices.DeleteFunc(slices.Clone(rules), func(r BoundRule) bool { return !strings.EqualFold(r.Name, name) })
}

// NewRule is the binding of a rule with those arguments. The error says what is not possible.
func NewRule(vh *broker.VHost, topic, queue, name string, args amqp.Table) (b broker.Binding, err error) {
	x, err := vh.Exchanges.Get(topic)
	switch {
	case err != nil:
	case len(name) > maxRuleName:
		err = fmt.Errorf("rule %s: its name has more than %d characters", name, maxRuleName)
	case x.Kind != TopicKind && len(args) > 0:
		err = fmt.Errorf("rule %s: the topic is an exchange of the type %s, where only the true filter is possible; delete the topic and make it again", name, x.Kind)
	}
	b = broker.Binding{Source: topic, Destination: queue, Args: args}
	if !strings.EqualFold(name, DefaultRule) {
		b.RoutingKey = name
	}
	return b, err
}

var betweenNames = regexp.MustCompile("(?i)/subscriptions/")

// Split tells the name of a queue or a topic from that of a subscription.
func Split(path string) (topic, subscription string) {
	if at := betweenNames.FindStringIndex(path); at != nil && at[0] > 0 {
		return path[:at[0]], path[at[1]:]
	}
	return path, ""
}

var errActions = errors.New("actions are not supported")

// RuleArgs are the arguments of the rule that a request adds.
func (r *Request) RuleArgs() (args amqp.Table, err error) {
	description, _ := r.Arg("rule-description").(amqp10.Map)
	if action, _ := description.Get("sql-rule-action").(amqp10.Map); action.Get("expression") != nil {
		return nil, errActions
	}
	if sql, is := description.Get("sql-filter").(amqp10.Map); is {
		expression, _ := sql.Get("expression").(string)
		return SQLArgs(expression)
	}
	given, is := description.Get("correlation-filter").(amqp10.Map)
	if !is {
		return nil, errors.New("the filter is missing, or not known")
	}
	var f Correlation
	for name, field := range map[string]*string{
		"correlation-id": &f.CorrelationID, "message-id": &f.MessageID, "to": &f.To, "reply-to": &f.ReplyTo, "label": &f.Label,
		"session-id": &f.SessionID, "reply-to-session-id": &f.ReplyToSessionID, "content-type": &f.ContentType,
	} {
		*field, _ = given.Get(name).(string)
	}
	properties, _ := given.Get("properties").(amqp10.Map)
	f.Properties = map[string]any{}
	for _, e := range properties {
		name, _ := e.Key.(string)
		v := e.Value
		if n, is := amqp.Integer(v); is {
			v = n
		} else if _, is := v.(uint64); is {
			v = Number(v)
		}
		f.Properties[name] = v
	}
	return f.Args()
}

// Description is the rule in an answer.
func (r *BoundRule) Description() amqp10.Map {
	kind := KindOf(r.Args)
	filter := amqp10.List{}
	switch kind {
	case SQLFilter:
		filter = amqp10.List{Expression(r.Args), int32(compatibility)}
	case CorrelationFilter:
		f, _ := CorrelationOf(r.Args)
		for _, text := range []string{f.CorrelationID, f.MessageID, f.To, f.ReplyTo, f.Label, f.SessionID, f.ReplyToSessionID, f.ContentType} {
			if filter = append(filter, nil); text != "" {
				filter[len(filter)-1] = text
			}
		}
		properties := amqp10.Map{}
		for name, v := range f.Properties {
			properties = append(properties, amqp10.Entry{Key: name, Value: v})
		}
		filter = append(filter, properties)
	}
	return amqp10.Map{{Key: "rule-description", Value: amqp10.Described{Descriptor: uint64(descriptorRule), Value: amqp10.List{
		amqp10.Described{Descriptor: descriptors[kind], Value: filter}, amqp10.Described{Descriptor: uint64(descriptorEmptyAction), Value: amqp10.List{}}, r.Name, amqp10.Timestamp(0),
	}}}}
}
