package dashboard

import (
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
)

func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("name")
	form := ui.NewForm(nil, "name", name)
	u, err := d.authenticate(r, name, r.PostFormValue("password"))
	if err != nil {
		d.log.Info("login refused", zap.String("user", name), zap.Error(err))
		if errors.Is(err, errForbidden) {
			form.Wrong("", "This user may not open the dashboard: give it the tag monitoring or administrator.")
		}
		form.Wrong("", "The name or the password is wrong.")
		d.showLogin(w, r, http.StatusUnauthorized, form)
		return
	}
	if err := d.sessions.Begin(w, r, u.Name, u.Stamp); err != nil {
		d.log.Error("login", zap.String("user", name), zap.Error(err))
		http.Error(w, "the session could not be opened; see the log", http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, ui.Local(r.PostFormValue("to")), http.StatusSeeOther)
}

// logout needs no token: other sites cannot send the cookie, and could do no harm with it.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	d.sessions.End(r)
	d.sessions.cookies(r).WriteSessionCookie(r.Context(), w, "", time.Time{}) // the browser deletes it
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// showLogin answers with the login page, which leads to the page that the request names.
func (d *Dashboard) showLogin(w http.ResponseWriter, r *http.Request, status int, f *ui.Form) {
	form := h.Form(h.Class("login card sheet"), h.Method("post"), h.Action("/login"),
		h.H1(g.Text("Log in")),
		f.Problem(),
		ui.Hidden("to", ui.Local(r.FormValue("to"))),
		f.Field("User", "name", "", h.AutoComplete("username"), h.Required(), h.AutoFocus()),
		f.Password("Password", "password", "current-password", ""),
		ui.Button("Log in", h.Class("primary")),
		h.P(h.Class("faint"), g.Text("A user of the broker with the tag "), ui.Code("monitoring"), g.Text(" or "), ui.Code("administrator"),
			g.Text(". Make one with "), ui.Code("curfew user add"), g.Text(".")),
	)
	d.Show(w, r, status, ui.Visitor{}, "/login", func(*ui.Info) ui.Drawing { return ui.Drawing{Live: form} })
}
