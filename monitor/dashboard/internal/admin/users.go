package admin

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/monitor/dashboard/internal/ui"
)

// userList is the content of the page of users.
type userList struct {
	List    []access.User
	Cut     ui.Cut
	Entries map[string][]string // the virtual hosts where a user has permissions
	Done    string
}

func (p Pages) listUsers(r *http.Request, v ui.Visitor) (ui.View, error) {
	page := &userList{Entries: map[string][]string{}, Done: map[string]string{"deleted": "User deleted."}[r.URL.Query().Get("done")]}
	var err error
	if page.List, err = p.Operations.ListUsers(r.Context(), v.Actor()); err != nil {
		return nil, err
	}
	page.List, page.Cut = ui.CutOf(page.List, users, r.URL.Query(), "page")
	all, err := p.Operations.Permissions(r.Context(), v.Actor(), "", "")
	for _, one := range all {
		page.Entries[one.User] = append(page.Entries[one.User], one.VHost)
	}
	return page, err
}

// userForm is the form that adds a user.
type userForm struct {
	Form   *ui.Form
	VHosts []string
}

func (p Pages) userForm(v ui.Visitor, values url.Values) *userForm {
	return &userForm{ui.NewForm(values, "vhost", "", "configure", ".*", "write", ".*", "read", ".*"), p.Operations.VHostNames(v.Actor())}
}

func (p Pages) newUser(r *http.Request, v ui.Visitor) (ui.View, error) {
	actor := v.Actor()
	if role := operate.RoleOf(operate.SetUser); !actor.Has(role) {
		return nil, &operate.MissingRole{Role: role}
	}
	return p.userForm(v, r.URL.Query()), nil
}

// tagsOf are the tags that a form has: those that are checked, and others.
func tagsOf(f *ui.Form) []string {
	tags := append(slices.Clone(f.Values["tag"]), access.ParseTags(f.Get("tags"))...)
	slices.Sort(tags)
	return slices.Compact(tags)
}

func (p Pages) addUser(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	page := p.userForm(v, r.PostForm)
	f := page.Form
	u := access.User{Name: f.Need("name"), Tags: tagsOf(f)}
	if password := f.Need("password"); f.OK() {
		u.SetPassword(password)
	}
	var err error
	if f.OK() {
		_, err = p.Operations.IfUserStill(u.Name, "").SetUser(r.Context(), v.Actor(), u)
	}
	if errors.Is(err, operate.ErrUserChanged) {
		f.Wrong("name", "A user with this name already exists.")
		err = nil
	}
	if err == nil && f.OK() && f.Get("vhost") != "" {
		_, err = p.Operations.SetPermission(r.Context(), v.Actor(), permissionOf(u.Name, f))
	}
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, newUser, err, page)
		return
	}
	http.Redirect(w, r, userURL(u.Name, "added"), http.StatusSeeOther)
}

func permissionOf(user string, f *ui.Form) access.Permission {
	return access.Permission{User: user, VHost: f.Get("vhost"), Configure: f.Get("configure"), Write: f.Get("write"), Read: f.Get("read")}
}

func userURL(name, done string) string {
	if done == "" {
		return ui.At(userPath, "name", name)
	}
	return ui.At(userPath, "name", name, "done", done)
}

// userPage is the content of the page of a user.
type userPage struct {
	access.User
	Version     string // of the user as the page shows it: its forms change the user only as long as it is like this
	Self        bool
	Permissions []access.Permission
	Topics      []access.TopicPermission
	VHosts      []string
	Done        string
	// What was typed, and what is wrong with it.
	Tagging, Password, Permission, Topic *ui.Form
}

var userDone = map[string]string{
	"added": "User created.", "tags": "Tags changed.", "password": "Password changed.", "permission": "Permissions changed.",
	"topic": "Topic permissions changed.",
}

func (p Pages) userPage(r *http.Request, v ui.Visitor, name string) (*userPage, error) {
	version, err := p.Operations.UserVersion(r.Context(), v.Actor(), name) // first: a change after it fails the next form
	if err != nil {
		return nil, err
	}
	u, err := p.Operations.User(r.Context(), v.Actor(), name)
	if err != nil {
		return nil, err
	}
	page := &userPage{User: u, Version: version, Self: name == v.Name, VHosts: p.Operations.VHostNames(v.Actor()), Done: userDone[r.URL.Query().Get("done")]}
	page.Tagging, page.Password = ui.NewForm(url.Values{"tag": u.Tags}), ui.NewForm(nil)
	page.Permission = ui.NewForm(nil, "vhost", "/", "configure", ".*", "write", ".*", "read", ".*")
	page.Topic = ui.NewForm(nil, "vhost", "/", "exchange", "amq.topic", "write", ".*", "read", ".*")
	if page.Permissions, err = p.Operations.Permissions(r.Context(), v.Actor(), name, ""); err != nil {
		return nil, err
	}
	slices.SortFunc(page.Permissions, func(x, y access.Permission) int { return cmp.Compare(x.VHost, y.VHost) })
	page.Topics, err = p.Operations.TopicPermissions(r.Context(), v.Actor(), name)
	return page, err
}

func (p Pages) user(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	page, err := p.userPage(r, v, q.Get("name"))
	if err != nil {
		return nil, err
	}
	for _, one := range page.Permissions {
		if q.Has("vhost") && one.VHost == q.Get("vhost") { // the form is to change it
			page.Permission = ui.NewForm(url.Values{"vhost": {one.VHost}, "configure": {one.Configure}, "write": {one.Write}, "read": {one.Read}})
		}
	}
	for _, one := range page.Topics {
		if q.Has("exchange") && one.VHost == q.Get("vhost") && one.Exchange == q.Get("exchange") {
			page.Topic = ui.NewForm(url.Values{"vhost": {one.VHost}, "exchange": {one.Exchange}, "write": {one.Write}, "read": {one.Read}})
		}
	}
	return page, nil
}

// change makes a change to the user whom a form names, and shows the user's page again, with what is wrong if something is. If somebody else has changed the
// user since the form was made, it does nothing, and shows the user as it is now.
func (p Pages) change(w http.ResponseWriter, r *http.Request, v ui.Visitor, done string, form func(*userPage) **ui.Form, do func(operate.Users, *userPage, *ui.Form) error) {
	page, err := p.userPage(r, v, r.PostForm.Get("name"))
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	f := ui.NewForm(r.PostForm)
	err = do(p.Operations.IfUserStill(page.Name, f.Get("was")), page, f)
	if errors.Is(err, operate.ErrUserChanged) {
		(*form(page)).Again(p.Site, w, r, v, userPath, err, page)
		return
	}
	*form(page) = f
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, userPath, err, page)
		return
	}
	http.Redirect(w, r, userURL(page.Name, done), http.StatusSeeOther)
}

func (p Pages) setTags(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.change(w, r, v, "tags", func(page *userPage) **ui.Form { return &page.Tagging }, func(users operate.Users, page *userPage, f *ui.Form) error {
		u := page.User
		u.Tags = tagsOf(f)
		_, err := users.SetUser(r.Context(), v.Actor(), u)
		return err
	})
}

func (p Pages) setPassword(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.change(w, r, v, "password", func(page *userPage) **ui.Form { return &page.Password }, func(users operate.Users, page *userPage, f *ui.Form) error {
		u, password := page.User, f.Need("password")
		if !f.OK() {
			return nil
		}
		u.SetPassword(password)
		_, err := users.SetUser(r.Context(), v.Actor(), u)
		return err
	})
}

func (p Pages) setPermission(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.change(w, r, v, "permission", func(page *userPage) **ui.Form { return &page.Permission }, func(users operate.Users, page *userPage, f *ui.Form) error {
		_, err := users.SetPermission(r.Context(), v.Actor(), permissionOf(page.Name, f))
		return err
	})
}

func (p Pages) setTopicPermission(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.change(w, r, v, "topic", func(page *userPage) **ui.Form { return &page.Topic }, func(users operate.Users, page *userPage, f *ui.Form) error {
		one := access.TopicPermission{User: page.Name, VHost: f.Get("vhost"), Exchange: f.Need("exchange"), Write: f.Get("write"), Read: f.Get("read")}
		if !f.OK() {
			return nil
		}
		return users.SetTopicPermission(r.Context(), v.Actor(), one)
	})
}

// clearing is the page that asks whether to clear a user's permissions in a virtual host, or those at one of its topic exchanges.
type clearing struct {
	access.TopicPermission        // Exchange "": those in the virtual host
	Configure              string // likewise
	Form                   *ui.Form
}

func (p Pages) askClear(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	if exchange := q.Get("exchange"); exchange != "" {
		list, err := p.Operations.TopicPermissions(r.Context(), v.Actor(), q.Get("name"))
		for _, one := range list {
			if one.VHost == q.Get("vhost") && one.Exchange == exchange {
				return &clearing{one, "", ui.NewForm(nil)}, err
			}
		}
		return nil, cmp.Or(err, operate.ErrNotFound)
	}
	list, err := p.Operations.Permissions(r.Context(), v.Actor(), q.Get("name"), q.Get("vhost"))
	if err == nil && len(list) != 1 {
		err = operate.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	one := list[0]
	return &clearing{access.TopicPermission{User: one.User, VHost: one.VHost, Write: one.Write, Read: one.Read}, one.Configure, ui.NewForm(nil)}, nil
}

func (p Pages) clearPermission(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	f := r.PostForm
	name, done := f.Get("name"), "permission"
	var err error
	if exchange := f.Get("exchange"); exchange != "" {
		done, err = "topic", p.Operations.ClearTopicPermissions(r.Context(), v.Actor(), name, f.Get("vhost"), exchange)
	} else {
		err = p.Operations.ClearPermission(r.Context(), v.Actor(), name, f.Get("vhost"))
	}
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, userURL(name, done), http.StatusSeeOther)
}

// userDeletion is the page that asks whether to delete a user.
type userDeletion struct {
	*userPage
	Form *ui.Form
}

func (p Pages) askDeleteUser(r *http.Request, v ui.Visitor) (ui.View, error) {
	page, err := p.userPage(r, v, r.URL.Query().Get("name"))
	if err != nil {
		return nil, err
	}
	return &userDeletion{page, ui.NewForm(nil)}, nil
}

func (p Pages) deleteUser(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	if err := p.Operations.DeleteUser(r.Context(), v.Actor(), r.PostForm.Get("name")); err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, users+"?done=deleted", http.StatusSeeOther)
}
