package topology

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// exchangeList is the content of the page of exchanges.
type exchangeList struct {
	Find string
	List []operate.ExchangeInfo
	Cut  ui.Cut
	Done string
}

func (p Pages) listExchanges(r *http.Request, v ui.Visitor) (ui.View, error) {
	all, err := p.Operations.ListExchanges(r.Context(), v.Actor())
	q := r.URL.Query()
	page := &exchangeList{Find: q.Get("q"), Done: map[string]string{"deleted": "Exchange deleted."}[q.Get("done")]}
	for _, x := range all {
		if strings.Contains(strings.ToLower(x.Name), strings.ToLower(page.Find)) {
			page.List = append(page.List, x)
		}
	}
	q.Del("done")
	page.List, page.Cut = ui.CutOf(page.List, exchanges, q, "page")
	return page, err
}

func exchangeNamed(v url.Values) operate.ExchangeName {
	return operate.ExchangeName{VHost: v.Get("vhost"), Name: v.Get("name")}
}

// exchangePage is the content of the page of an exchange.
type exchangePage struct {
	operate.ExchangeInfo
	To, From []operate.Binding // bindings by which it routes, and those that lead to it
	Delete   bool              // it may be deleted
	Done     string
}

// done has what was done to an exchange, in words.
var done = map[string]string{
	"declared": "Exchange declared.", "bound": "Binding added.", "unbound": "Binding removed.",
}

func (p Pages) exchange(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	x, err := p.Operations.Exchange(r.Context(), v.Actor(), exchangeNamed(q))
	if err != nil {
		return nil, err
	}
	page := &exchangePage{ExchangeInfo: x, Delete: x.Name != "" && !strings.HasPrefix(x.Name, "amq."), Done: done[q.Get("done")]}
	all, err := p.Operations.ListBindings(r.Context(), v.Actor(), x.VHost)
	for _, b := range all {
		if b.Source == x.Name {
			page.To = append(page.To, b)
		}
		if b.ToExchange && b.Destination == x.Name {
			page.From = append(page.From, b)
		}
	}
	sortBindings(page.To)
	sortBindings(page.From)
	return page, err
}

// BindingsTo are the bindings that lead to a queue, without the default exchange's.
func BindingsTo(ctx context.Context, o *operate.Operations, by operate.Actor, at operate.QueueName) (list []operate.Binding, err error) {
	all, err := o.ListBindings(ctx, by, at.VHost)
	for _, b := range all {
		if !b.ToExchange && b.Destination == at.Name && b.Source != "" {
			list = append(list, b)
		}
	}
	sortBindings(list)
	return list, err
}

func sortBindings(list []operate.Binding) {
	slices.SortStableFunc(list, func(x, y operate.Binding) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Destination, y.Destination), cmp.Compare(x.RoutingKey, y.RoutingKey))
	})
}

// exchangeForm is the form that declares an exchange.
type exchangeForm struct {
	Form   *ui.Form
	VHosts []string
}

func (p Pages) exchangeForm(v ui.Visitor, values url.Values) *exchangeForm {
	f := ui.NewForm(values, "vhost", "/", "type", "topic", "x-delayed-type", "topic")
	if len(values["token"]) == 0 { // not sent yet
		f.Values.Set("durable", "1")
	}
	return &exchangeForm{f, p.Operations.VHostNames(v.Actor())}
}

func (p Pages) newExchange(r *http.Request, v ui.Visitor) (ui.View, error) {
	return p.exchangeForm(v, r.URL.Query()), nil
}

func (p Pages) declareExchange(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	e := p.exchangeForm(v, r.PostForm)
	f := e.Form
	f.Need("name")
	args := f.Table("arguments")
	if text := f.Get("alternate-exchange"); text != "" {
		args["alternate-exchange"] = text
	}
	if ms, given := f.Millis("x-message-ttl"); given {
		args["x-message-ttl"] = ms
	}
	d := operate.ExchangeDeclare{Kind: f.Get("type"), Durable: f.Checked("durable"), AutoDelete: f.Checked("auto_delete"), Internal: f.Checked("internal"), Args: args}
	if d.Kind == delayedKind {
		args["x-delayed-type"] = f.Get("x-delayed-type")
	}
	var err error
	if f.OK() {
		_, err = p.Operations.DeclareExchange(r.Context(), v.Actor(), exchangeNamed(f.Values), d)
	}
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, newExchange, err, e)
		return
	}
	http.Redirect(w, r, exchangeURL(f.Get("vhost"), f.Get("name"))+"&done=declared", http.StatusSeeOther)
}

// delayedKind is the type of exchanges that hold messages back.
const delayedKind = "x-delayed-message"

func exchangeURL(vhost, name string) string {
	return ui.At("/exchange", "vhost", vhost, "name", name)
}

// exchangeDeletion is the page that asks whether to delete an exchange.
type exchangeDeletion struct {
	operate.ExchangeInfo
	Form *ui.Form
}

func (p Pages) exchangeDeletion(r *http.Request, v ui.Visitor, values url.Values) (*exchangeDeletion, error) {
	x, err := p.Operations.Exchange(r.Context(), v.Actor(), exchangeNamed(values))
	return &exchangeDeletion{x, ui.NewForm(values)}, err
}

func (p Pages) askDeleteExchange(r *http.Request, v ui.Visitor) (ui.View, error) {
	return p.exchangeDeletion(r, v, r.URL.Query())
}

func (p Pages) deleteExchange(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	d, err := p.exchangeDeletion(r, v, r.PostForm)
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	if err = p.Operations.DeleteExchange(r.Context(), v.Actor(), exchangeNamed(r.PostForm), d.Form.Checked("if_unused")); err != nil {
		d.Form.Again(p.Site, w, r, v, deleteExchange, err, d)
		return
	}
	http.Redirect(w, r, exchanges+"?done=deleted", http.StatusSeeOther)
}

// bindingForm is the form that binds a queue or an exchange to an exchange.
type bindingForm struct {
	Form   *ui.Form
	VHosts []string
}

func (p Pages) bindingForm(v ui.Visitor, values url.Values) *bindingForm {
	return &bindingForm{ui.NewForm(values, "vhost", "/"), p.Operations.VHostNames(v.Actor())}
}

func (p Pages) newBinding(r *http.Request, v ui.Visitor) (ui.View, error) {
	return p.bindingForm(v, r.URL.Query()), nil
}

// bindingOf is the binding of a form, without arguments.
func bindingOf(f *ui.Form) operate.Binding {
	return operate.Binding{Source: f.Get("source"), Destination: f.Get("destination"), ToExchange: f.Get("to") == "exchange", RoutingKey: f.Get("key")}
}

func (p Pages) bind(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	b := p.bindingForm(v, r.PostForm)
	f := b.Form
	f.Need("source")
	f.Need("destination")
	binding := bindingOf(f)
	binding.Args = f.Table("arguments")
	var err error
	if f.OK() {
		err = p.Operations.Bind(r.Context(), v.Actor(), f.Get("vhost"), binding)
	}
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, newBinding, err, b)
		return
	}
	http.Redirect(w, r, exchangeURL(f.Get("vhost"), binding.Source)+"&done=bound", http.StatusSeeOther)
}

// unbinding is the page that asks whether to remove a binding.
type unbinding struct {
	operate.Binding
	VHost string
	Form  *ui.Form
}

// digest distinguishes bindings that have the same ends and the same key.
func digest(args operate.Table) string {
	if len(args) == 0 {
		return ""
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%#v", map[string]any(args)) // in the order of the keys
	return strconv.FormatUint(sum.Sum64(), 36)
}

func (p Pages) unbind(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	f := ui.NewForm(r.PostForm)
	u := &unbinding{VHost: f.Get("vhost"), Form: f}
	all, err := p.Operations.ListBindings(r.Context(), v.Actor(), u.VHost)
	if err == nil {
		i := slices.IndexFunc(all, func(b operate.Binding) bool {
			return b.Source == f.Get("source") && b.Destination == f.Get("destination") && b.ToExchange == (f.Get("to") == "exchange") &&
				b.RoutingKey == f.Get("key") && digest(b.Args) == f.Get("args")
		})
		if i < 0 {
			err = operate.ErrNotFound
		} else {
			u.Binding = all[i]
		}
	}
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	if f.Get("confirmed") != "1" {
		p.Site.Show(w, r, http.StatusOK, v, deleteBinding, u)
		return
	}
	if err := p.Operations.Unbind(r.Context(), v.Actor(), u.VHost, u.Binding); err != nil {
		f.Again(p.Site, w, r, v, deleteBinding, err, u)
		return
	}
	http.Redirect(w, r, exchangeURL(u.VHost, u.Source)+"&done=unbound", http.StatusSeeOther)
}
