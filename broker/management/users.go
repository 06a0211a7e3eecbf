package management

import (
	"encoding/base64"
	"errors"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/definitions"
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

func (q *request) listUsers() error {
	list := []object{}
	for _, u := range q.api.b.Users() {
		list = append(list, userObject(&u))
	}
	return q.list(list)
}

// usersWithoutPermissions lists who can log in to no virtual host.
func (q *request) usersWithoutPermissions() error {
	entitled := map[string]bool{}
	for _, p := range q.api.b.Permissions() {
		entitled[p.User] = true
	}
	list := []object{}
	for _, u := range q.api.b.Users() {
		if !entitled[u.Name] {
			list = append(list, userObject(&u))
		}
	}
	return q.list(list)
}

// namedUser is the one the path names.
func (q *request) namedUser() (access.User, error) {
	u, ok := q.api.b.User(q.param("user"))
	if !ok {
		return u, errNotFound
	}
	return u, nil
}

func (q *request) getUser() error {
	u, err := q.namedUser()
	if err != nil {
		return err
	}
	return q.one(userObject(&u))
}

func (q *request) putUser() error {
	f, err := q.fields()
	if err != nil {
		return err
	}
	if _, given := f["tags"]; !given {
		return bad("tags_not_present")
	}
	u, existed := q.api.b.User(q.param("user"))
	u.Name = q.param("user")
	if u.Tags, err = f.tags("tags"); err != nil {
		return err
	}
	if err := setPassword(&u, f); err != nil {
		return err
	}
	if err := q.api.b.PutUser(u); err != nil {
		return err
	}
	return q.put(!existed)
}

// setPassword takes a password or its hash; without either the user has none, as
// in RabbitMQ.
func setPassword(u *access.User, f fields) error {
	if f["password"] != nil && f["password_hash"] != nil {
		return bad(definitions.ErrTwoPasswords.Error())
	}
	password, err := f.text("password", "")
	if err != nil {
		return err
	}
	u.SetPassword(password)
	hash, err := f.text("password_hash", "")
	if err != nil || hash == "" {
		return err
	}
	if u.PasswordHash, err = base64.StdEncoding.DecodeString(hash); err != nil {
		return bad([]any{"not_base64", hash})
	}
	u.Algorithm, err = f.text("hashing_algorithm", access.SHA256)
	return err
}

func (q *request) deleteUser() error {
	err := q.api.b.DeleteUser(q.param("user"))
	if errors.Is(err, broker.ErrNoUser) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	return q.done()
}

// deleteUsers deletes several; those that are gone are gone, as in RabbitMQ 4.
func (q *request) deleteUsers() error {
	f, err := q.fields()
	if err == nil {
		err = f.need("users")
	}
	if err != nil {
		return err
	}
	if _, isList := f["users"].([]any); !isList {
		return bad([]any{"not_list", "users"})
	}
	names, err := f.tags("users")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := q.api.b.DeleteUser(name); err != nil && !errors.Is(err, broker.ErrNoUser) {
			return err
		}
	}
	return q.done()
}

// hashPassword makes a hash as definitions have it.
func (q *request) hashPassword() error {
	return q.one(object{"ok": base64.StdEncoding.EncodeToString(access.Hash(q.param("password")))})
}
