package management

import (
	"errors"

	"curfew/broker"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
)

// usersWithoutPermissions lists the users who have no access to any virtual host.
func usersWithoutPermissions(r *request) error {
	all, err := admin.ListUsers.Do(r.HTTP.Context(), r.Operations, r.Actor, admin.UserFilter{})
	if err != nil {
		return err
	}
	list := []object{}
	for i := range all {
		if all[i].VHosts == nil {
			list = append(list, admin.ListUsers.Object("api", all[i]))
		}
	}
	return r.List(list)
}

// deleteUsers deletes several users, and ignores those that do not exist, as RabbitMQ 4 does.
func deleteUsers(r *request) error {
	f, err := r.Fields("users")
	if err != nil {
		return err
	}
	if _, isList := f["users"].([]any); !isList {
		return rest.Bad([]any{"not_list", "users"})
	}
	of, err := operate.Read[struct {
		Users []string `json:"users"`
	}](f)
	if err != nil {
		return err
	}
	for _, name := range of.Users {
		if _, err := admin.DeleteUser.Do(r.HTTP.Context(), r.Operations, r.Actor, admin.UserName{User: name}); err != nil && !errors.Is(err, operate.ErrNotFound) {
			return err
		}
	}
	return r.Done(nil)
}

// authAttempts answers with the logins by protocol.
func authAttempts(r *request) error {
	list := []object{}
	for _, by := range []struct {
		protocol string
		logins   *broker.LoginCount
	}{{"amqp091", &r.api.Server.Logins}, {"http", &r.api.server.Logins}} {
		succeeded, failed := by.logins.Succeeded.Load(), by.logins.Failed.Load()
		list = append(list, object{"protocol": by.protocol, "auth_attempts": succeeded + failed, "auth_attempts_succeeded": succeeded, "auth_attempts_failed": failed})
	}
	return r.Answer(list)
}

func resetAttempts(r *request) error {
	r.api.Server.Logins.Reset()
	r.api.server.Logins.Reset()
	return r.Done(nil)
}
