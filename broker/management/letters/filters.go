package letters

import (
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

func listFilters(r *rest.Request) error {
	return r.Result(r.Operations.ListFilters(r.Context(), r.Actor, r.QueueNamed()))
}

// putFilter saves {"filter": "reason == 'expired'"} under a name.
func putFilter(r *rest.Request) error {
	var f operate.SavedFilter
	if err := r.ReadJSON(&f); err != nil {
		return err
	}
	f.Name = r.Param("name")
	return r.Done(r.Operations.SaveFilter(r.Context(), r.Actor, r.QueueNamed(), f))
}

func deleteFilter(r *rest.Request) error {
	return r.Done(r.Operations.DeleteFilter(r.Context(), r.Actor, r.QueueNamed(), r.Param("name")))
}
