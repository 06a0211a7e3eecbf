package management

import (
	"slices"

	"curfew/broker/management/rest"

	"curfew/broker/access"
)

func permissionObject(p *access.Permission) object {
	return object{"user": p.User, "vhost": p.VHost, "configure": p.Configure, "write": p.Write, "read": p.Read}
}

func topicPermissionObject(p *access.TopicPermission) object {
	return object{"user": p.User, "vhost": p.VHost, "exchange": p.Exchange, "write": p.Write, "read": p.Read}
}

// userAndVHost returns the user and the virtual host in the path, "" for any. Both must exist.
func userAndVHost(r *request) (user, vhost string, err error) {
	if user = r.Param("user"); user != "" {
		if _, err := r.namedUser(); err != nil {
			return "", "", err
		}
	}
	if vhost = r.Param("vhost"); vhost != "" {
		if _, err := r.vhost(); err != nil {
			return "", "", err
		}
	}
	return user, vhost, nil
}

func listPermissions(r *request) error {
	user, vhost, err := userAndVHost(r)
	if err != nil {
		return err
	}
	list := []object{}
	for _, p := range r.api.b.Accounts.Permissions() {
		if (user == "" || p.User == user) && (vhost == "" || p.VHost == vhost) {
			list = append(list, permissionObject(&p))
		}
	}
	return r.List(list)
}

func getPermission(r *request) error {
	list, err := r.Operations.Permissions(r.Context(), r.Actor, r.Param("user"), r.Param("vhost"))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return rest.ErrNotFound
	}
	return r.One(permissionObject(&list[0]))
}

func putPermission(r *request) error {
	f, err := r.Fields("configure", "write", "read")
	if err != nil {
		return err
	}
	p := access.Permission{User: r.Param("user"), VHost: r.Param("vhost")}
	for key, to := range map[string]*string{"configure": &p.Configure, "write": &p.Write, "read": &p.Read} {
		if *to, err = f.Text(key, ""); err != nil {
			return err
		}
	}
	return r.Put(r.Operations.SetPermission(r.Context(), r.Actor, p))
}

func deletePermission(r *request) error {
	return r.Done(r.Operations.ClearPermission(r.Context(), r.Actor, r.Param("user"), r.Param("vhost")))
}

// namedTopicPermissions returns those of the user and the virtual host in the path.
func namedTopicPermissions(r *request) (list []access.TopicPermission, err error) {
	user, vhost, err := userAndVHost(r)
	if err != nil {
		return nil, err
	}
	for _, p := range r.api.b.Accounts.TopicPermissions() {
		if (user == "" || p.User == user) && (vhost == "" || p.VHost == vhost) {
			list = append(list, p)
		}
	}
	return list, nil
}

func listTopicPermissions(r *request) error {
	all, err := namedTopicPermissions(r)
	if err != nil {
		return err
	}
	list := []object{}
	for i := range all {
		list = append(list, topicPermissionObject(&all[i]))
	}
	return r.List(list)
}

// getTopicPermissions answers with the list for one user in one virtual host, or 404 if it is
// empty.
func getTopicPermissions(r *request) error {
	if all, err := namedTopicPermissions(r); err != nil || len(all) == 0 {
		return rest.ErrNotFound
	}
	return listTopicPermissions(r)
}

func putTopicPermission(r *request) error {
	f, err := r.Fields("exchange", "write", "read")
	if err != nil {
		return err
	}
	p := access.TopicPermission{User: r.Param("user"), VHost: r.Param("vhost")}
	for key, to := range map[string]*string{"exchange": &p.Exchange, "write": &p.Write, "read": &p.Read} {
		if *to, err = f.Text(key, ""); err != nil {
			return err
		}
	}
	before, _ := namedTopicPermissions(r)
	return r.Put(len(before) == 0, r.Operations.SetTopicPermission(r.Context(), r.Actor, p))
}

// deleteTopicPermissions removes the topic permissions for one exchange, or all of them.
func deleteTopicPermissions(r *request) error {
	exchange := r.Param("exchange")
	all, err := namedTopicPermissions(r)
	if err != nil || !slices.ContainsFunc(all, func(p access.TopicPermission) bool { return exchange == "" || p.Exchange == exchange }) {
		return rest.ErrNotFound
	}
	return r.Done(r.Operations.ClearTopicPermissions(r.Context(), r.Actor, r.Param("user"), r.Param("vhost"), exchange))
}
