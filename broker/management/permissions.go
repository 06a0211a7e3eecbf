package management

import (
	"slices"

	"curfew/broker/access"
)

func permissionObject(p *access.Permission) object {
	return object{"user": p.User, "vhost": p.VHost, "configure": p.Configure, "write": p.Write, "read": p.Read}
}

func topicPermissionObject(p *access.TopicPermission) object {
	return object{"user": p.User, "vhost": p.VHost, "exchange": p.Exchange, "write": p.Write, "read": p.Read}
}

// about is the user and the virtual host that the path names, "" for any; both
// have to exist.
func (q *request) about() (user, vhost string, err error) {
	if user = q.param("user"); user != "" {
		if _, err := q.namedUser(); err != nil {
			return "", "", err
		}
	}
	if vhost = q.param("vhost"); vhost != "" {
		if _, err := q.vhost(); err != nil {
			return "", "", err
		}
	}
	return user, vhost, nil
}

func (q *request) listPermissions() error {
	user, vhost, err := q.about()
	if err != nil {
		return err
	}
	list := []object{}
	for _, p := range q.api.b.Permissions() {
		if (user == "" || p.User == user) && (vhost == "" || p.VHost == vhost) {
			list = append(list, permissionObject(&p))
		}
	}
	return q.list(list)
}

// permission is the one that the path names.
func (q *request) permission() (*access.Permission, error) {
	all := q.api.b.Permissions()
	i := slices.IndexFunc(all, func(p access.Permission) bool { return p.User == q.param("user") && p.VHost == q.param("vhost") })
	if i < 0 {
		return nil, errNotFound
	}
	return &all[i], nil
}

func (q *request) getPermission() error {
	p, err := q.permission()
	if err != nil {
		return err
	}
	return q.one(permissionObject(p))
}

func (q *request) putPermission() error {
	f, err := q.fields()
	if err == nil {
		err = f.need("configure", "write", "read")
	}
	if err != nil {
		return err
	}
	p := access.Permission{User: q.param("user"), VHost: q.param("vhost")}
	for key, to := range map[string]*string{"configure": &p.Configure, "write": &p.Write, "read": &p.Read} {
		if *to, err = f.text(key, ""); err != nil {
			return err
		}
	}
	_, missing := q.permission()
	if err := q.api.b.SetPermission(p); err != nil {
		return err
	}
	return q.put(missing != nil)
}

func (q *request) deletePermission() error {
	p, err := q.permission()
	if err == nil {
		err = q.api.b.ClearPermission(p.User, p.VHost)
	}
	if err != nil {
		return err
	}
	return q.done()
}

// topicPermissions are those of the user and virtual host that the path names.
func (q *request) topicPermissions() (list []access.TopicPermission, err error) {
	user, vhost, err := q.about()
	if err != nil {
		return nil, err
	}
	for _, p := range q.api.b.TopicPermissions() {
		if (user == "" || p.User == user) && (vhost == "" || p.VHost == vhost) {
			list = append(list, p)
		}
	}
	return list, nil
}

func (q *request) listTopicPermissions() error {
	all, err := q.topicPermissions()
	if err != nil {
		return err
	}
	list := []object{}
	for i := range all {
		list = append(list, topicPermissionObject(&all[i]))
	}
	return q.list(list)
}

// getTopicPermissions is the list for one user in one virtual host, which may not
// be empty.
func (q *request) getTopicPermissions() error {
	if all, err := q.topicPermissions(); err != nil || len(all) == 0 {
		return errNotFound
	}
	return q.listTopicPermissions()
}

func (q *request) putTopicPermission() error {
	f, err := q.fields()
	if err == nil {
		err = f.need("exchange", "write", "read")
	}
	if err != nil {
		return err
	}
	p := access.TopicPermission{User: q.param("user"), VHost: q.param("vhost")}
	for key, to := range map[string]*string{"exchange": &p.Exchange, "write": &p.Write, "read": &p.Read} {
		if *to, err = f.text(key, ""); err != nil {
			return err
		}
	}
	before, _ := q.topicPermissions()
	if err := q.api.b.SetTopicPermission(p); err != nil {
		return err
	}
	return q.put(len(before) == 0)
}

// deleteTopicPermissions lifts one exchange's, or all.
func (q *request) deleteTopicPermissions() error {
	exchange := q.param("exchange")
	all, err := q.topicPermissions()
	if err != nil || !slices.ContainsFunc(all, func(p access.TopicPermission) bool { return exchange == "" || p.Exchange == exchange }) {
		return errNotFound
	}
	if err := q.api.b.ClearTopicPermissions(q.param("user"), q.param("vhost"), exchange); err != nil {
		return err
	}
	return q.done()
}
