package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
)

// themeCookie has the colors that the user chose. Without it, a page has the system's colors.
const themeCookie = "curfew_theme"

// themes are the colors to choose from; "system" means no choice.
var themes = []string{"system", "light", "dark"}

// themeOf is the theme that a request asks for.
func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || !slices.Contains(themes, c.Value) {
		return themes[0]
	}
	return c.Value
}

// chooseTheme keeps the choice in the browser, for a year. It needs neither a login nor a token: it has nothing
// to protect.
func chooseTheme(w http.ResponseWriter, r *http.Request) {
	theme := r.PostFormValue("theme")
	if !slices.Contains(themes, theme) {
		http.Error(w, "theme: want one of system, light, dark", http.StatusBadRequest)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: themeCookie, Value: theme, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, ui.Local(r.FormValue("to")), http.StatusSeeOther)
}

// themeSwitch has a button for each theme.
func themeSwitch(s *ui.Info) g.Node {
	return h.Form(h.Class("themes"), h.Method("post"), h.Action(ui.With("/theme", url.Values{"to": {s.Here}})),
		h.Span(g.Text("Colors")),
		g.Map(themes, func(theme string) g.Node {
			return h.Button(h.Class("quiet"), h.Name("theme"), h.Value(theme), h.Aria("pressed", strconv.FormatBool(s.Theme == theme)), g.Text(theme))
		}))
}
