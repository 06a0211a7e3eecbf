package management

import (
	"encoding/base64"
	"errors"

	"curfew/broker/management/rest"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/definitions"
	"curfew/broker/operate"
)

func userObject(u *access.User) object {
	tags, limits := u.Tags, u.Limits
	if tags == nil {
		tags = []string{}
	}
	if limits == nil {
		limits = access.Limits{}
	}
	algorithm := u.Algorithm
	if algorithm == "" {
		algorithm = access.MD5
	}
	return object{
		"name": u.Name, "tags": tags, "limits": limits, "hashing_algorithm": algorithm,
		"password_hash": base64.StdEncoding.EncodeToString(u.PasswordHash),
	}
}

func listUsers(r *request) error {
	list := []object{}
	for _, u := range r.api.b.Accounts.Users() {
		list = append(list, userObject(&u))
	}
	return r.List(list)
}

// usersWithoutPermissions lists the users who have no access to any virtual host.
func usersWithoutPermissions(r *request) error {
	entitled := map[string]bool{}
	for _, p := range r.api.b.Accounts.Permissions() {
		entitled[p.User] = true
	}
	list := []object{}
	for _, u := range r.api.b.Accounts.Users() {
		if !entitled[u.Name] {
			list = append(list, userObject(&u))
		}
	}
	return r.List(list)
}

// namedUser returns the user in the path.
func (r *request) namedUser() (access.User, error) {
	u, ok := r.api.b.Accounts.User(r.Param("user"))
	if !ok {
		return u, rest.ErrNotFound
	}
	return u, nil
}

func getUser(r *request) error {
	u, err := r.namedUser()
	if err != nil {
		return err
	}
	return r.One(userObject(&u))
}

func putUser(r *request) error {
	f, err := r.Fields()
	if err != nil {
		return err
	}
	if _, given := f["tags"]; !given {
		return rest.Bad("tags_not_present")
	}
	u := access.User{Name: r.Param("user")}
	if u.Tags, err = f.Tags("tags"); err != nil {
		return err
	}
	if err := setPassword(&u, f); err != nil {
		return err
	}
	return r.Put(r.Operations.SetUser(r.Context(), r.Actor, u))
}

// setPassword reads a password or its hash. Without either the user has no password, as in
// RabbitMQ.
func setPassword(u *access.User, f rest.Fields) error {
	if f["password"] != nil && f["password_hash"] != nil {
		return rest.Bad(definitions.ErrTwoPasswords.Error())
	}
	password, err := f.Text("password", "")
	if err != nil {
		return err
	}
	u.SetPassword(password)
	hash, err := f.Text("password_hash", "")
	if err != nil || hash == "" {
		return err
	}
	if u.PasswordHash, err = base64.StdEncoding.DecodeString(hash); err != nil {
		return rest.Bad([]any{"not_base64", hash})
	}
	u.Algorithm, err = f.Text("hashing_algorithm", access.SHA256)
	return err
}

func deleteUser(r *request) error {
	return r.Done(r.Operations.DeleteUser(r.Context(), r.Actor, r.Param("user")))
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
	names, err := f.Tags("users")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.Operations.DeleteUser(r.Context(), r.Actor, name); err != nil && !errors.Is(err, operate.ErrNotFound) {
			return err
		}
	}
	return r.Done(nil)
}

// hashPassword answers with a hash in the form of definitions.
func hashPassword(r *request) error {
	return r.One(object{"ok": base64.StdEncoding.EncodeToString(access.Hash(r.Param("password")))})
}

// showAuth answers what a login page has to know: there is no OAuth 2.
func showAuth(r *request) error { return r.One(object{"oauth_enabled": false}) }

// authAttempts answers with the logins by protocol.
func authAttempts(r *request) error {
	if err := r.thisNode(); err != nil {
		return err
	}
	list := []object{}
	for _, by := range []struct {
		protocol string
		logins   *broker.LoginCount
	}{{"amqp091", &r.api.Server.Logins}, {"http", &r.api.server.Logins}} {
		succeeded, failed := by.logins.Read()
		list = append(list, object{"protocol": by.protocol, "auth_attempts": succeeded + failed, "auth_attempts_succeeded": succeeded, "auth_attempts_failed": failed})
	}
	return r.Answer(list)
}

// attemptsBySource answers with none, as RabbitMQ does unless track_auth_attempt_source is set: whoever guesses passwords could fill the memory with
// names and addresses.
func attemptsBySource(r *request) error {
	if err := r.thisNode(); err != nil {
		return err
	}
	return r.Answer([]object{})
}

func resetAttempts(r *request) error {
	if err := r.thisNode(); err != nil {
		return err
	}
	r.api.Server.Logins.Reset()
	r.api.server.Logins.Reset()
	return r.Done(nil)
}
