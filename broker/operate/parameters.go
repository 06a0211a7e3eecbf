package operate

import (
	"context"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/policy"
)

// ParameterName names a parameter of a virtual host.
type ParameterName struct{ VHost, Component, Name string }

// ofOperators reports whether only administrators may set the parameter: operator policies and limits bound those who make policies.
func (p *ParameterName) ofOperators() bool {
	return p.Component == policy.Operator.String() || p.Component == "vhost-limits"
}

// SetParameter makes or changes a parameter.
func (o Settings) SetParameter(_ context.Context, a Actor, at ParameterName, value any) (created bool, err error) {
	vh, err := o.parameters(&a, SetParameter, &at)
	if err == nil {
		created, err = vh.SetParameter(at.Component, at.Name, value)
	}
	o.Record(a, SetParameter, QueueName{VHost: at.VHost}, err, zap.String("component", at.Component), zap.String("parameter", at.Name))
	return created, err
}

// ClearParameter removes a parameter. Error: ErrNotFound among others.
func (o Settings) ClearParameter(_ context.Context, a Actor, at ParameterName) error {
	vh, err := o.parameters(&a, ClearParameter, &at)
	var existed bool
	if err == nil {
		if existed, err = vh.ClearParameter(at.Component, at.Name); err == nil && !existed {
			err = ErrNotFound
		}
	}
	o.Record(a, ClearParameter, QueueName{VHost: at.VHost}, err, zap.String("component", at.Component), zap.String("parameter", at.Name))
	return err
}

func (o Settings) parameters(a *Actor, op Operation, at *ParameterName) (*broker.VHost, error) {
	vh, err := o.vhost(a, op, at.VHost)
	if err == nil && at.ofOperators() && !a.Has(Administrator) {
		err = &MissingRole{Administrator}
	}
	return vh, err
}

// SetGlobalParameter makes or changes a parameter of the broker.
func (o Settings) SetGlobalParameter(_ context.Context, a Actor, name string, value any) (created bool, err error) {
	if err = o.permit(&a, SetGlobalParameter, ""); err == nil {
		created, err = o.Broker.SetGlobalParameter(name, value)
	}
	o.Record(a, SetGlobalParameter, QueueName{}, err, zap.String("parameter", name))
	return created, err
}

// ClearGlobalParameter removes a parameter of the broker. Error: ErrNotFound among others.
func (o Settings) ClearGlobalParameter(_ context.Context, a Actor, name string) (err error) {
	var existed bool
	if err = o.permit(&a, ClearGlobalParameter, ""); err == nil {
		if existed, err = o.Broker.ClearGlobalParameter(name); err == nil && !existed {
			err = ErrNotFound
		}
	}
	o.Record(a, ClearGlobalParameter, QueueName{}, err, zap.String("parameter", name))
	return err
}
