package topology

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

const (
	vhosts       = "/vhosts"
	vhostPath    = "/vhost"
	newVHost     = "/vhost/new"
	limitVHost   = "/vhost/limits"
	protectVHost = "/vhost/protection"
	deleteVHost  = "/vhost/delete"
)

// vhostList is the content of the page of virtual hosts.
type vhostList struct {
	List []operate.VHost
	Cut  ui.Cut
	Done string
}

func (p Pages) listVHosts(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	page := &vhostList{Done: map[string]string{"deleted": "Virtual host deleted."}[q.Get("done")]}
	q.Del("done")
	all, err := p.Operations.ListVHosts(r.Context(), v.Actor())
	page.List, page.Cut = ui.CutOf(all, vhosts, q, "page")
	return page, err
}

// vhostPage is the content of the page of a virtual host.
type vhostPage struct {
	operate.VHost
	Changes bool // the user may change it
	Done    string
	// What was typed, and what is wrong with it.
	About, Limited *ui.Form
}

var vhostLimits = []string{access.MaxConnections, access.MaxQueues}

var vhostDone = map[string]string{
	"made": "Virtual host created. You have all permissions in it.", "changed": "Virtual host changed.", "limits": "Limits changed.",
	"protected": "The virtual host is now protected from deletion.", "unprotected": "The virtual host can now be deleted.",
}

func (p Pages) vhostPage(r *http.Request, v ui.Visitor, name string) (*vhostPage, error) {
	vh, err := p.Operations.VHost(r.Context(), v.Actor(), name)
	if err != nil {
		return nil, err
	}
	page := &vhostPage{VHost: vh, Changes: v.Admin, Done: vhostDone[r.URL.Query().Get("done")]}
	page.About = ui.NewForm(nil, "description", vh.Description, "default_queue_type", vh.DefaultQueueType)
	page.Limited = ui.NewForm(nil)
	for _, limit := range vhostLimits {
		if n, limited := vh.Limits.Of(limit); limited {
			page.Limited.Values.Set(limit, strconv.Itoa(n))
			page.Limited.Values.Set("was-"+limit, strconv.Itoa(n))
		}
	}
	return page, nil
}

func (p Pages) vhost(r *http.Request, v ui.Visitor) (ui.View, error) {
	page, err := p.vhostPage(r, v, r.URL.Query().Get("name"))
	if err != nil {
		return nil, err
	}
	return page, nil
}

func vhostURL(name, done string) string {
	if done == "" {
		return ui.At(vhostPath, "name", name)
	}
	return ui.At(vhostPath, "name", name, "done", done)
}

// vhostForm is the form that makes a virtual host.
type vhostForm struct{ Form *ui.Form }

func (p Pages) newVHost(r *http.Request, v ui.Visitor) (ui.View, error) {
	actor := v.Actor()
	if role := operate.RoleOf(operate.ChangeVHosts); !actor.Has(role) {
		return nil, &operate.MissingRole{Role: role}
	}
	return &vhostForm{ui.NewForm(r.URL.Query())}, nil
}

func (p Pages) makeVHost(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	f := ui.NewForm(r.PostForm)
	name := f.Need("name")
	err := p.Operations.Permit(v.Actor(), operate.ChangeVHosts, "")
	if err == nil {
		if _, missing := p.Operations.VHost(r.Context(), v.Actor(), name); missing == nil {
			f.Wrong("name", "A virtual host with this name already exists.")
		}
	}
	if err == nil && f.OK() {
		_, err = p.Operations.MakeVHost(r.Context(), v.Actor(), name, operate.VHostMetadata{Description: f.Get("description"), DefaultQueueType: f.Get("default_queue_type")})
	}
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, newVHost, err, &vhostForm{f})
		return
	}
	http.Redirect(w, r, vhostURL(name, "made"), http.StatusSeeOther)
}

// changeVHost makes a change to the virtual host that a form names, and shows its page again, with what is wrong if something is.
func (p Pages) changeVHost(w http.ResponseWriter, r *http.Request, v ui.Visitor, done string, form func(*vhostPage) **ui.Form, do func(*vhostPage, *ui.Form) error) {
	page, err := p.vhostPage(r, v, r.PostForm.Get("name"))
	if err == nil {
		err = p.Operations.Permit(v.Actor(), operate.ChangeVHosts, page.Name)
	}
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	f := ui.NewForm(r.PostForm)
	*form(page) = f
	if err = do(page, f); err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, vhostPath, err, page)
		return
	}
	http.Redirect(w, r, vhostURL(page.Name, done), http.StatusSeeOther)
}

func (p Pages) describeVHost(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.changeVHost(w, r, v, "changed", func(page *vhostPage) **ui.Form { return &page.About }, func(page *vhostPage, f *ui.Form) error {
		about := page.VHostMetadata
		about.Description, about.DefaultQueueType = f.Get("description"), f.Get("default_queue_type")
		_, err := p.Operations.MakeVHost(r.Context(), v.Actor(), page.Name, about)
		return err
	})
}

func (p Pages) limitVHost(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p.changeVHost(w, r, v, "limits", func(page *vhostPage) **ui.Form { return &page.Limited }, func(page *vhostPage, f *ui.Form) error {
		limits := maps.Clone(page.Limits)
		if limits == nil {
			limits = access.Limits{}
		}
		for _, limit := range vhostLimits {
			if f.Get(limit) == f.Get("was-"+limit) {
				continue // somebody else may have changed it
			}
			delete(limits, limit)
			if n, given := f.Integer(limit); given {
				limits[limit] = int(n)
			}
		}
		if !f.OK() {
			return nil
		}
		return p.Operations.SetVHostLimits(r.Context(), v.Actor(), page.Name, limits)
	})
}

func (p Pages) protectVHost(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	name, on := r.PostForm.Get("name"), r.PostForm.Get("protected") == "1"
	if err := p.Operations.ProtectVHost(r.Context(), v.Actor(), name, on); err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, vhostURL(name, map[bool]string{true: "protected", false: "unprotected"}[on]), http.StatusSeeOther)
}

// vhostDeletion is the page that asks whether to delete a virtual host.
type vhostDeletion struct {
	operate.VHost
	Form *ui.Form
}

func (p Pages) vhostDeletion(r *http.Request, v ui.Visitor, values url.Values) (*vhostDeletion, error) {
	vh, err := p.Operations.VHost(r.Context(), v.Actor(), values.Get("name"))
	if err != nil {
		return nil, err
	}
	return &vhostDeletion{vh, ui.NewForm(values)}, nil
}

func (p Pages) askDeleteVHost(r *http.Request, v ui.Visitor) (ui.View, error) {
	d, err := p.vhostDeletion(r, v, r.URL.Query())
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (p Pages) deleteVHost(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	d, err := p.vhostDeletion(r, v, r.PostForm)
	if err == nil {
		err = p.Operations.Permit(v.Actor(), operate.DeleteVHost, d.Name)
	}
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	if d.Form.Confirmed(d.Name) {
		err = p.Operations.DeleteVHost(r.Context(), v.Actor(), d.Name)
	}
	if errors.Is(err, operate.ErrProtected) {
		d.Form.Wrong("", "Nothing was deleted: the virtual host is protected.")
		err = nil
	}
	if err != nil || !d.Form.OK() {
		d.Form.Values.Del("confirm")
		d.Form.Again(p.Site, w, r, v, deleteVHost, err, d)
		return
	}
	http.Redirect(w, r, vhosts+"?done=deleted", http.StatusSeeOther)
}
