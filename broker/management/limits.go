package management

import (
	"maps"

	"curfew/broker/management/rest"

	"curfew/broker/access"
)

func listVHostLimits(r *request) error {
	list := []object{}
	for _, vh := range r.vhosts() {
		if l := vh.Limits(); len(l) > 0 {
			list = append(list, object{"vhost": vh.Name(), "value": l})
		}
	}
	return r.List(list)
}

func listUserLimits(r *request) error {
	if r.Param("user") != "" {
		if _, err := r.namedUser(); err != nil {
			return err
		}
	}
	list := []object{}
	for _, u := range r.api.b.Accounts.Users() {
		if wanted := r.Param("user"); len(u.Limits) > 0 && (wanted == "" || wanted == u.Name) {
			list = append(list, object{"user": u.Name, "value": u.Limits})
		}
	}
	return r.List(list)
}

// readLimit reads the value of the limit in the path.
func readLimit(r *request) (int, error) {
	f, err := r.Fields("value")
	if err != nil {
		return 0, err
	}
	n, err := f.Integer("value", 0)
	return int(n), err
}

// with returns a copy of the limits with one changed; limits are shared and must not be changed.
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

func putVHostLimit(r *request) error {
	vh, err := r.vhost()
	if err != nil {
		return rest.ErrNoVHost
	}
	n, err := readLimit(r)
	if err == nil {
		err = r.Operations.SetVHostLimits(r.Context(), r.Actor, vh.Name(), with(vh.Limits(), r.Param("limit"), n))
	}
	return r.Done(err)
}

func deleteVHostLimit(r *request) error {
	vh, err := r.vhost()
	if err == nil {
		err = r.Operations.SetVHostLimits(r.Context(), r.Actor, vh.Name(), without(vh.Limits(), r.Param("limit")))
	}
	return r.Done(err)
}

func putUserLimit(r *request) error {
	u, err := r.namedUser()
	if err != nil {
		return rest.Bad([]any{"no_such_user", r.Param("user")})
	}
	n, err := readLimit(r)
	if err == nil {
		err = r.Operations.SetUserLimits(r.Context(), r.Actor, u.Name, with(u.Limits, r.Param("limit"), n))
	}
	return r.Done(err)
}

func deleteUserLimit(r *request) error {
	u, err := r.namedUser()
	if err == nil {
		err = r.Operations.SetUserLimits(r.Context(), r.Actor, u.Name, without(u.Limits, r.Param("limit")))
	}
	return r.Done(err)
}
