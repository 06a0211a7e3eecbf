package management

import (
	"maps"

	"curfew/broker/access"
)

func (q *request) listVHostLimits() error {
	list := []object{}
	for _, vh := range q.vhosts() {
		if l := vh.Limits(); len(l) > 0 {
			list = append(list, object{"vhost": vh.Name(), "value": l})
		}
	}
	return q.list(list)
}

func (q *request) listUserLimits() error {
	if q.param("user") != "" {
		if _, err := q.namedUser(); err != nil {
			return err
		}
	}
	list := []object{}
	for _, u := range q.api.b.Users() {
		if wanted := q.param("user"); len(u.Limits) > 0 && (wanted == "" || wanted == u.Name) {
			list = append(list, object{"user": u.Name, "value": u.Limits})
		}
	}
	return q.list(list)
}

// limit reads the value of the limit that the path names.
func (q *request) limit() (int, error) {
	f, err := q.fields()
	if err == nil {
		err = f.need("value")
	}
	if err != nil {
		return 0, err
	}
	n, err := f.integer("value", 0)
	return int(n), err
}

// with returns limits with one changed; they are values, and shared.
func with(l access.Limits, name string, value int) access.Limits {
	changed := access.Limits{}
	maps.Copy(changed, l)
	changed[name] = value
	return changed
}

func without(l access.Limits, name string) access.Limits {
	changed := access.Limits{}
	maps.Copy(changed, l)
	delete(changed, name)
	return changed
}

func (q *request) putVHostLimit() error {
	vh, err := q.vhost()
	if err != nil {
		return errNoVHost
	}
	n, err := q.limit()
	if err == nil {
		err = vh.SetLimits(with(vh.Limits(), q.param("limit"), n))
	}
	if err != nil {
		return err
	}
	return q.done()
}

func (q *request) deleteVHostLimit() error {
	vh, err := q.vhost()
	if err == nil {
		err = vh.SetLimits(without(vh.Limits(), q.param("limit")))
	}
	if err != nil {
		return err
	}
	return q.done()
}

func (q *request) putUserLimit() error {
	u, err := q.namedUser()
	if err != nil {
		return bad([]any{"no_such_user", q.param("user")})
	}
	n, err := q.limit()
	if err == nil {
		err = q.api.b.SetUserLimits(u.Name, with(u.Limits, q.param("limit"), n))
	}
	if err != nil {
		return err
	}
	return q.done()
}

func (q *request) deleteUserLimit() error {
	u, err := q.namedUser()
	if err == nil {
		err = q.api.b.SetUserLimits(u.Name, without(u.Limits, q.param("limit")))
	}
	if err != nil {
		return err
	}
	return q.done()
}
