package admin

import (
	"cmp"
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
	Entries map[string][]string // the virtual hosts where a user has permissions
	Done    string
}

func (p Pages) listUsers(r *http.Request, v ui.Visitor) (ui.View, error) {
	page := &userList{Entries: map[string][]string{}, Done: map[string]string{"deleted": "The user is deleted."}[r.URL.Query().Get("done")]}
	var err error
	if page.List, err = p.Operations.ListUsers(r.Context(), v.Actor()); err != nil {
		return nil, err
	}
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
	_, err := p.Operations.User(r.Context(), v.Actor(), u.Name)
	switch {
	case err == nil:
		f.Wrong("name", "There is a user of this name already.")
	case operate.Gone(err):
		err = nil
	}
	if err == nil && f.OK() {
		_, err = p.Operations.SetUser(r.Context(), v.Actor(), u)
	}
	if err == nil && f.OK() && f.Get("vhost") != "" {
		_, err = p.Operations.SetPermission(r.Context(), v.Actor(), permissionOf(u.Name, f))
	}
	if err != nil || !f.OK() {
		p.again(w, r, v, newUser, err, f, page)
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
	Self        bool
	Permissions []access.Permission
	VHosts      []string
	Done        string
	// What was typed, and what is wrong with it.
	Tagging, Password, Permission *ui.Form
}

var userDone = map[string]string{
	"added": "The user exists now.", "tags": "The tags are changed.", "password": "The password is changed.", "permission": "The permissions are changed.",
}

func (p Pages) userPage(r *http.Request, v ui.Visitor, name string) (*userPage, error) {
	u, err := p.Operations.User(r.Context(), v.Actor(), name)
	if err != nil {
		return nil, err
	}
	page := &userPage{User: u, Self: name == v.Name, VHosts: p.Operations.VHostNames(v.Actor()), Done: userDone[r.URL.Query().Get("done")]}
	page.Tagging, page.Password = ui.NewForm(url.Values{"tag": u.Tags}), ui.NewForm(nil)
	page.Permission = ui.NewForm(nil, "vhost", "/", "configure", ".*", "write", ".*", "read", ".*")
	page.Permissions, err = p.Operations.Permissions(r.Context(), v.Actor(), name, "")
	slices.SortFunc(page.Permissions, func(x, y access.Permission) int { return cmp.Compare(x.VHost, y.VHost) })
	return page, err
}

func (p Pages) user(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	page, err := p.userPage(r, v, q.Get("name"))
	if err != nil {
		return nil, err
	}
	for _, one := range page.Permissions {
		if q.Has("vhost") && one.VHost == q.Get("vhost") { // to change it
			page.Permission = ui.NewForm(url.Values{"vhost": {one.VHost}, "configure": {one.Configure}, "write": {one.Write}, "read": {one.Read}})
		}
	}
	return page, nil
}

// change does something to the user whom a form names, and shows the user's page with what is wrong, or again.
func (p Pages) change(w http.ResponseWriter, r *http.Request, v ui.Visitor, done string, form func(*userPage) **ui.Form, do func(*userPage, *ui.Form) error) {
	page, err := p.userPage(r, v, r.PostForm.Get("name"))
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	f := ui.NewForm(r.PostForm)
	*form(page) = f
	if err = do(page, f); err != nil || !f.OK() {
		p.again(w, r, v, userPath, err, f, page)
		return
	}
	http.Redirect(w, r, userURL(page.Name, done), http.StatusSeeOther)
}

func (p Pages) setTags(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.change(w, r, v, "tags", func(page *userPage) **ui.Form { return &page.Tagging }, func(page *userPage, f *ui.Form) error {
		u := page.User
		u.Tags = tagsOf(f)
		_, err := p.Operations.SetUser(r.Context(), v.Actor(), u)
		return err
	})
}

func (p Pages) setPassword(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.change(w, r, v, "password", func(page *userPage) **ui.Form { return &page.Password }, func(page *userPage, f *ui.Form) error {
		u, password := page.User, f.Need("password")
		if !f.OK() {
			return nil
		}
		u.SetPassword(password)
		_, err := p.Operations.SetUser(r.Context(), v.Actor(), u)
		return err
	})
}

func (p Pages) setPermission(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.change(w, r, v, "permission", func(page *userPage) **ui.Form { return &page.Permission }, func(page *userPage, f *ui.Form) error {
		_, err := p.Operations.SetPermission(r.Context(), v.Actor(), permissionOf(page.Name, f))
		return err
	})
}

// clearing is the question whether to take a user's permissions in a virtual host.
type clearing struct {
	access.Permission
	Form *ui.Form
}

func (p Pages) askClear(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	list, err := p.Operations.Permissions(r.Context(), v.Actor(), q.Get("name"), q.Get("vhost"))
	if err == nil && len(list) != 1 {
		err = operate.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &clearing{list[0], ui.NewForm(nil)}, nil
}

func (p Pages) clearPermission(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	name := r.PostForm.Get("name")
	if err := p.Operations.ClearPermission(r.Context(), v.Actor(), name, r.PostForm.Get("vhost")); err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, userURL(name, "permission"), http.StatusSeeOther)
}

// userDeletion is the question whether to delete a user.
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
