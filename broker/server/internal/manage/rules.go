package manage

import (
	"errors"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/servicebus"
)

// ruleExists answers a request to add a rule whose name is taken.
var ruleExists = servicebus.Answer{Status: 409, Description: "The rule exists.", Condition: "com.microsoft:entity-already-exists"}

// rules carries out a request about the rules of the entity, which is a subscription.
func (e *Entity) rules(r *servicebus.Request) (a servicebus.Answer, err error) {
	topic, subscription := servicebus.Split(e.Queue.Name)
	if subscription == "" {
		return a, amqp.NewException(amqp.NotAllowed, 0, 0, "only a subscription has rules")
	}
	all := servicebus.RulesOf(e.VHost, topic, e.Queue.Name)
	name, _ := r.Arg("rule-name").(string)
	named := servicebus.Named(all, name)
	switch r.Operation() {
	case "enumerate-rules":
		list := amqp10.List{}
		from := int(min(max(r.Number("skip"), 0), int64(len(all))))
		for i := from; i < len(all) && int64(i-from) < r.Number("top"); i++ {
			list = append(list, all[i].Description())
		}
		if len(list) == 0 {
			return noContent, nil
		}
		return done(amqp10.Map{{Key: "rules", Value: list}}), nil
	case "remove-rule":
		for i := 0; i < len(named) && err == nil; i++ {
			err = e.Rights.Unbind(e.VHost, nil, named[i].Binding)
		}
		if len(named) == 0 {
			err = amqp.NewException(amqp.NotFound, 0, 0, "The messaging entity '%s' could not be found.", name)
		}
		return done(nil), err
	}
	if len(named) > 0 {
		return ruleExists, nil
	}
	if err = e.addRule(r, topic, name); err != nil {
		if _, is := errors.AsType[*amqp.Exception](err); !is {
			err = amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s", err)
		}
	}
	return done(nil), err
}

func (e *Entity) addRule(r *servicebus.Request, topic, name string) error {
	args, err := r.RuleArgs()
	if err == nil && name == "" {
		err = errors.New("a rule needs a name")
	}
	if err != nil {
		return err
	}
	b, err := servicebus.NewRule(e.VHost, topic, e.Queue.Name, name, args)
	if err != nil {
		return err
	}
	return e.Rights.Bind(e.VHost, nil, b)
}
