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

func (d *Dashboard) loginPage(w http.ResponseWriter, r *http.Request) {
	d.Show(w, r, http.StatusOK, ui.Visitor{}, "/login", loginForm{ui.NewForm(nil), ui.Local(r.FormValue("to"))})
}

func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("name")
	form := loginForm{ui.NewForm(nil, "name", name), ui.Local(r.PostFormValue("to"))}
	u, err := d.authenticate(r, name, r.PostFormValue("password"))
	if err != nil {
		d.log.Info("login refused", zap.String("user", name), zap.Error(err))
		if errors.Is(err, errForbidden) {
			form.Wrong("", "This user may not open the dashboard: give it the tag monitoring or administrator.")
		}
		form.Wrong("", "The name or the password is wrong.")
		d.Show(w, r, http.StatusUnauthorized, ui.Visitor{}, "/login", form)
		return
	}
	if err := d.sessions.Begin(w, r, u.Name, u.Stamp); err != nil {
		d.log.Error("login", zap.String("user", name), zap.Error(err))
		http.Error(w, "the session could not be opened; see the log", http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, form.To, http.StatusSeeOther)
}

// logout needs no token: other sites cannot send the cookie, and could do no harm with it.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	d.sessions.End(r)
	d.sessions.cookies(r).WriteSessionCookie(r.Context(), w, "", time.Time{}) // the browser deletes it
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// loginForm is the content of the login page.
type loginForm struct {
	*ui.Form
	To string
}

func (f loginForm) Draw(*ui.Info) ui.Drawing {
	return ui.Drawing{Live: h.Form(h.Class("login card sheet"), h.Method("post"), h.Action("/login"),
		h.H1(g.Text("Log in")),
		f.Problem(),
		ui.Hidden("to", f.To),
		f.Field("User", "name", "", h.AutoComplete("username"), h.Required(), h.AutoFocus()),
		f.Password("Password", "password", "current-password", ""),
		ui.Primary("Log in"),
		h.P(h.Class("faint"), g.Text("A user of the broker with the tag "), ui.Code("monitoring"), g.Text(" or "), ui.Code("administrator"),
			g.Text(". Make one with "), ui.Code("curfew user add"), g.Text(".")),
	)}
}
