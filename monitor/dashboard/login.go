package dashboard

import (
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

func (d *Dashboard) showLogin(w http.ResponseWriter, r *http.Request) {
	d.pages["/login"].write(w, r, http.StatusOK, visitor{}, loginForm{To: local(r.FormValue("to"))})
}

func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	form := loginForm{Name: r.PostFormValue("name"), To: local(r.PostFormValue("to"))}
	u, err := d.Broker.Authenticate(r.Context(), form.Name, r.PostFormValue("password"), peerOf(r))
	if err != nil {
		d.log.Info("login refused", zap.String("user", form.Name), zap.Error(err))
		form.Problem = "Name or password is wrong."
		if errors.Is(err, ErrForbidden) {
			form.Problem = "This user may not look here: give it the tag monitoring or administrator."
		}
		d.pages["/login"].write(w, r, http.StatusUnauthorized, visitor{}, form)
		return
	}
	d.sessions.end(secretOf(r))
	setCookie(w, r, d.sessions.begin(u))
	http.Redirect(w, r, form.To, http.StatusSeeOther)
}

// logout needs no token: other sites cannot send the cookie, and could do no harm.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	d.sessions.end(secretOf(r))
	setCookie(w, r, "")
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// local is a path of this site to go to, or "/".
func local(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}
