package dashboard

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

const (
	findPath = "/find"
	// maxHits is how many places the palette offers.
	maxHits = 20
)

// hit is a place to go to.
type hit struct {
	Name string `json:"name"`
	What string `json:"what"` // "page", "queue" or "exchange"
	In   string `json:"in,omitempty"`
	URL  string `json:"url"`
}

// find answers the palette: pages, queues and exchanges whose names contain the text "q", as far as the user may see them.
func (d *Dashboard) find(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	list := []hit{}
	pages := d.entries(&v.User)
	if d.Operations != nil {
		pages = append(pages, entry{"/consumers", "Consumers"}, entry{"/runs", "Runs"})
		if v.Admin {
			pages = append(pages, entry{"/vhosts", "Virtual hosts"})
		}
	}
	for _, e := range pages {
		if strings.Contains(strings.ToLower(e.text), strings.ToLower(text)) {
			list = append(list, hit{Name: e.text, What: "page", URL: e.path})
		}
	}
	if d.Operations != nil && text != "" {
		for _, f := range findNames(d.Operations, v.Actor, text, maxHits) {
			one := hit{Name: ui.Visible(f.Name), What: "queue", In: ui.Visible(f.VHost), URL: ui.QueueURL(f.VHost, f.Name)}
			if f.exchange {
				one.What, one.URL = "exchange", ui.At("/exchange", "vhost", f.VHost, "name", f.Name)
			}
			list = append(list, one)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list[:min(len(list), maxHits)]) // it fails only if the client is gone
}

// palette is the dialog that a script opens: a field, and the places whose names contain what is typed there.
func palette() g.Node {
	return h.Dialog(h.ID("palette"), h.Aria("label", "Go to a queue, an exchange or a page"), h.Data("find", findPath),
		h.Input(h.Type("text"), h.Role("combobox"), h.Aria("label", "Name of a queue, an exchange or a page"), h.Aria("autocomplete", "list"), h.Aria("expanded", "true"),
			h.Aria("controls", "hits"), h.AutoComplete("off"), g.Attr("spellcheck", "false"), h.MaxLength("255"), h.Placeholder("Queue, exchange or page")),
		h.Ul(h.ID("hits"), h.Role("listbox"), h.Aria("label", "Places")),
		h.P(h.Class("note"), h.Role("status")))
}

// found is a queue or an exchange by its name.
type found struct {
	operate.QueueName
	exchange bool
}

// findNames returns at most the given number of queues and exchanges whose names contain a text, in the virtual hosts that the actor may look into:
// those that are it first, then those that begin with it, each the shortest first. Case does not matter. It looks at names only, which takes some
// milliseconds for 50,000 queues.
func findNames(o *operate.Operations, a operate.Actor, text string, most int) (list []found) {
	text = strings.ToLower(text)
	add := func(one found) {
		if !strings.Contains(strings.ToLower(one.Name), text) {
			return
		}
		at, _ := slices.BinarySearchFunc(list, one, func(a, b found) int { return nearer(&a, &b, text) })
		if at < most {
			list = slices.Insert(list, at, one)
			list = list[:min(len(list), most)]
		}
	}
	for _, vh := range o.VHosts(a) {
		for _, q := range vh.Queues.List() {
			add(found{operate.QueueName{VHost: vh.Name(), Name: q.Name}, false})
		}
		for _, x := range vh.Exchanges.List() {
			if x.Name != "" {
				add(found{operate.QueueName{VHost: vh.Name(), Name: x.Name}, true})
			}
		}
	}
	return list
}

// nearer orders by how near names are to a text in small letters.
func nearer(a, b *found, text string) int {
	begins := func(of *found) int {
		if strings.HasPrefix(strings.ToLower(of.Name), text) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(begins(a), begins(b)), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.VHost, b.VHost))
}
