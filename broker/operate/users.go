package operate

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
)

// ListUsers lists the users by name.
func (o Users) ListUsers(_ context.Context, a Actor) ([]access.User, error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return nil, err
	}
	return o.Broker.Users(), nil
}

// User shows one. Error: ErrNotFound among others.
func (o Users) User(_ context.Context, a Actor, name string) (access.User, error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return access.User{}, err
	}
	u, ok := o.Broker.User(name)
	if !ok {
		return u, ErrNotFound
	}
	return u, nil
}

// SetUser makes a user, or replaces the one of that name: its password and tags; limits stay.
func (o Users) SetUser(_ context.Context, a Actor, u access.User) (created bool, err error) {
	if err = o.permit(&a, SetUser, ""); err == nil {
		old, existed := o.Broker.User(u.Name)
		u.Limits = old.Limits
		created, err = !existed, o.Broker.PutUser(u)
	}
	o.Record(a, SetUser, QueueName{}, err, zap.String("name", u.Name), zap.Strings("tags", u.Tags))
	return created && err == nil, err
}

// SetUserLimits sets all limits of a user.
func (o Users) SetUserLimits(_ context.Context, a Actor, name string, l access.Limits) error {
	err := o.permit(&a, SetUser, "")
	if err == nil {
		err = o.Broker.SetUserLimits(name, l)
	}
	o.Record(a, SetUser, QueueName{}, err, zap.String("name", name), zap.Any("limits", l))
	return err
}

// SetVHostLimits sets all limits of a virtual host.
func (o Users) SetVHostLimits(_ context.Context, a Actor, vhost string, l access.Limits) error {
	vh, err := o.vhost(&a, ChangeVHosts, vhost)
	if err == nil {
		err = vh.SetLimits(l)
	}
	o.Record(a, ChangeVHosts, QueueName{VHost: vhost}, err, zap.Any("limits", l))
	return err
}

// DeleteUser removes a user with the permissions, and closes the user's connections. Error: ErrNotFound among others.
func (o Users) DeleteUser(_ context.Context, a Actor, name string) error {
	err := o.permit(&a, DeleteUser, "")
	if err == nil {
		if err = o.Broker.DeleteUser(name); errors.Is(err, broker.ErrNoUser) {
			err = ErrNotFound
		}
	}
	o.Record(a, DeleteUser, QueueName{}, err, zap.String("name", name))
	return err
}

// Permissions lists the permissions of a user, "" for all, in a virtual host, "" for all.
func (o Users) Permissions(_ context.Context, a Actor, user, vhost string) (list []access.Permission, err error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return nil, err
	}
	for _, p := range o.Broker.Permissions() {
		if (user == "" || p.User == user) && (vhost == "" || p.VHost == vhost) {
			list = append(list, p)
		}
	}
	return list, nil
}

// SetPermission gives a user permissions in a virtual host.
func (o Users) SetPermission(ctx context.Context, a Actor, p access.Permission) (created bool, err error) {
	before, err := o.Permissions(ctx, a, p.User, p.VHost)
	if err == nil {
		err = o.permit(&a, SetPermission, "")
	}
	if err == nil {
		err = o.Broker.SetPermission(p)
	}
	o.recordPermission(&a, SetPermission, p.User, p.VHost, err)
	return len(before) == 0 && err == nil, err
}

// ClearPermission takes a user's permissions in a virtual host. Error: ErrNotFound among others.
func (o Users) ClearPermission(ctx context.Context, a Actor, user, vhost string) error {
	before, err := o.Permissions(ctx, a, user, vhost)
	if err == nil {
		err = o.permit(&a, ClearPermission, "")
	}
	if err == nil && len(before) == 0 {
		err = ErrNotFound
	}
	if err == nil {
		err = o.Broker.ClearPermission(user, vhost)
	}
	o.recordPermission(&a, ClearPermission, user, vhost, err)
	return err
}

// SetTopicPermission restricts the routing keys of a user at one topic exchange.
func (o Users) SetTopicPermission(_ context.Context, a Actor, p access.TopicPermission) error {
	err := o.permit(&a, SetPermission, "")
	if err == nil {
		err = o.Broker.SetTopicPermission(p)
	}
	o.recordPermission(&a, SetPermission, p.User, p.VHost, err, zap.String("exchange", p.Exchange))
	return err
}

// ClearTopicPermissions lifts a user's restrictions at one topic exchange of a virtual host, or at all of them ("").
func (o Users) ClearTopicPermissions(_ context.Context, a Actor, user, vhost, exchange string) error {
	err := o.permit(&a, ClearPermission, "")
	if err == nil {
		err = o.Broker.ClearTopicPermissions(user, vhost, exchange)
	}
	o.recordPermission(&a, ClearPermission, user, vhost, err, zap.String("exchange", exchange))
	return err
}

func (o Users) recordPermission(a *Actor, op Operation, user, vhost string, err error, more ...zap.Field) {
	o.Record(*a, op, QueueName{VHost: vhost}, err, append(more, zap.String("name", user))...)
}
