package dashboard

import (
	"encoding/json"
	"net/http"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

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
		for _, f := range findNames(d.Operations.Access, v.Actor(), text, maxHits) {
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
