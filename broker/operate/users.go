package operate

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
)

// ListUsers lists the users by name.
func (o Users) ListUsers(_ context.Context, a Actor) ([]access.User, error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return nil, err
	}
	return o.Broker.Accounts.Users(), nil
}

// User returns one user. Error: ErrNotFound among others.
func (o Users) User(_ context.Context, a Actor, name string) (access.User, error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return access.User{}, err
	}
	u, ok := o.Broker.Accounts.User(name)
	if !ok {
		return u, ErrNotFound
	}
	return u, nil
}

// IfUserStill returns the same operations, which fail with ErrUserChanged unless the user is still as somebody saw it: at a version that UserVersion
// returned, "" for a user that did not exist.
func (o Users) IfUserStill(name, version string) Users {
	return Users{o.Access, &seenUser{name, version}}
}

// seenUser is a user as somebody saw it.
type seenUser struct{ name, version string }

// UserVersion returns a version that changes with the password, the tags, the limits and the permissions of a user. It means nothing after a restart.
func (o Users) UserVersion(_ context.Context, a Actor, name string) (string, error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return "", err
	}
	o.users.Lock()
	defer o.users.Unlock()
	return o.versionLocked(name), nil
}

// versionLocked is "" for a user that does not exist.
func (o Users) versionLocked(name string) string {
	u, ok := o.Broker.Accounts.User(name)
	if !ok {
		return ""
	}
	of := func(user string) bool { return user != name }
	return o.version(u,
		slices.DeleteFunc(o.Broker.Accounts.Permissions(), func(p access.Permission) bool { return of(p.User) }),
		slices.DeleteFunc(o.Broker.Accounts.TopicPermissions(), func(p access.TopicPermission) bool { return of(p.User) }))
}

// change changes users if the actor may do so, and if the user that somebody saw has not changed. There is one change at a time.
func (o Users) change(a *Actor, op Operation, do func() error) error {
	if err := o.permit(a, op, ""); err != nil {
		return err
	}
	o.users.Lock()
	defer o.users.Unlock()
	if o.seen != nil && o.versionLocked(o.seen.name) != o.seen.version {
		return ErrUserChanged
	}
	return do()
}

// SetUser makes a user, or replaces the password and the tags of the one with that name; limits stay.
func (o Users) SetUser(_ context.Context, a Actor, u access.User) (created bool, err error) {
	err = o.change(&a, SetUser, func() error {
		old, existed := o.Broker.Accounts.User(u.Name)
		u.Limits, created = old.Limits, !existed
		return o.Broker.Accounts.PutUser(u)
	})
	o.Record(a, SetUser, QueueName{}, err, zap.String("name", u.Name), zap.Strings("tags", u.Tags))
	return created && err == nil, err
}

// SetUserLimits sets all limits of a user.
func (o Users) SetUserLimits(_ context.Context, a Actor, name string, l access.Limits) error {
	err := o.change(&a, SetUser, func() error { return o.Broker.Accounts.SetUserLimits(name, l) })
	o.Record(a, SetUser, QueueName{}, err, zap.String("name", name), zap.Any("limits", l))
	return err
}

// DeleteUser removes a user with all permissions, and closes the user's connections. Error: ErrNotFound among others.
func (o Users) DeleteUser(_ context.Context, a Actor, name string) error {
	err := o.change(&a, DeleteUser, func() error { return o.Broker.Accounts.DeleteUser(name) })
	if errors.Is(err, broker.ErrNoUser) {
		err = ErrNotFound
	}
	o.Record(a, DeleteUser, QueueName{}, err, zap.String("name", name))
	return err
}

// Permissions lists the permissions of a user, "" for all, in a virtual host, "" for all.
func (o Users) Permissions(_ context.Context, a Actor, user, vhost string) (list []access.Permission, err error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return nil, err
	}
	for _, p := range o.Broker.Accounts.Permissions() {
		if (user == "" || p.User == user) && (vhost == "" || p.VHost == vhost) {
			list = append(list, p)
		}
	}
	return list, nil
}

// SetPermission gives a user permissions in a virtual host.
func (o Users) SetPermission(_ context.Context, a Actor, p access.Permission) (created bool, err error) {
	err = o.change(&a, SetPermission, func() error {
		created = !o.permitted(p.User, p.VHost)
		return o.Broker.Accounts.SetPermission(p)
	})
	o.recordPermission(&a, SetPermission, p.User, p.VHost, err)
	return created && err == nil, err
}

// permitted reports whether a user has permissions in a virtual host.
func (o Users) permitted(user, vhost string) bool {
	return slices.ContainsFunc(o.Broker.Accounts.Permissions(), func(p access.Permission) bool { return p.User == user && p.VHost == vhost })
}

// ClearPermission removes a user's permissions in a virtual host. Error: ErrNotFound among others.
func (o Users) ClearPermission(_ context.Context, a Actor, user, vhost string) error {
	err := o.change(&a, ClearPermission, func() error {
		if !o.permitted(user, vhost) {
			return ErrNotFound
		}
		return o.Broker.Accounts.ClearPermission(user, vhost)
	})
	o.recordPermission(&a, ClearPermission, user, vhost, err)
	return err
}

// TopicPermissions lists the topic permissions of a user.
func (o Users) TopicPermissions(_ context.Context, a Actor, user string) ([]access.TopicPermission, error) {
	if err := o.permit(&a, ListUsers, ""); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(o.Broker.Accounts.TopicPermissions(), func(p access.TopicPermission) bool { return p.User != user }), nil
}

// SetTopicPermission restricts the routing keys of a user on one topic exchange.
func (o Users) SetTopicPermission(_ context.Context, a Actor, p access.TopicPermission) error {
	err := o.change(&a, SetPermission, func() error { return o.Broker.Accounts.SetTopicPermission(p) })
	o.recordPermission(&a, SetPermission, p.User, p.VHost, err, zap.String("exchange", p.Exchange))
	return err
}

// ClearTopicPermissions lifts a user's restrictions on one topic exchange of a virtual host, or on all of them ("").
func (o Users) ClearTopicPermissions(_ context.Context, a Actor, user, vhost, exchange string) error {
	err := o.change(&a, ClearPermission, func() error { return o.Broker.Accounts.ClearTopicPermissions(user, vhost, exchange) })
	o.recordPermission(&a, ClearPermission, user, vhost, err, zap.String("exchange", exchange))
	return err
}

func (o Users) recordPermission(a *Actor, op Operation, user, vhost string, err error, more ...zap.Field) {
	o.Record(*a, op, QueueName{VHost: vhost}, err, append(more, zap.String("name", user))...)
}
