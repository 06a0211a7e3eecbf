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
