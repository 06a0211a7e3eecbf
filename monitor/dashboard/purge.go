package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"go.uber.org/zap"
)

// purgePlan is a deletion that has to be confirmed with the number of messages.
type purgePlan struct {
	VHost, Queue string
	Filter       LetterFilter
	Matched      int
	Typed        string // the wrong number; "" none yet
}

// purge deletes dead letters if the number that was typed in is theirs; else it asks.
func (d *Dashboard) purge(w http.ResponseWriter, r *http.Request, v visitor) {
	f := r.PostForm
	p := &purgePlan{VHost: f.Get("vhost"), Queue: f.Get("name"), Filter: letterFilter(f), Typed: f.Get("confirm")}
	confirmed, err := -1, error(nil)
	if p.Typed != "" {
		if confirmed, err = strconv.Atoi(p.Typed); err != nil {
			d.refuse(w, r, fmt.Errorf("%q is no number of messages", p.Typed))
			return
		}
	}
	takeTime(w)
	n, done, err := d.DeadLetters.Purge(r.Context(), v.User, p.VHost, p.Queue, p.Filter, confirmed)
	switch {
	case err != nil:
		d.refuse(w, r, err)
	case !done:
		p.Matched = n
		d.pages["/purge"].write(w, r, http.StatusOK, v, p)
	default:
		d.log.Info("dead letters deleted", zap.String("user", v.Name), zap.String("vhost", p.VHost), zap.String("queue", p.Queue), zap.Int("messages", n))
		http.Redirect(w, r, with("/dead-letter", url.Values{"vhost": {p.VHost}, "name": {p.Queue}}, "deleted", strconv.Itoa(n)), http.StatusSeeOther)
	}
}
