package ui

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
)

// Form is what a user typed, and what is wrong with it. It is drawn again as it was typed, with each mistake next to its field.
type Form struct {
	url.Values
	problems map[string]string // by field; "" is the whole form
}

// NewForm is a form with the values of a query or of a form that was sent. Fields that these do not have get the given values, in pairs.
func NewForm(values url.Values, otherwise ...string) *Form {
	f := &Form{Values: url.Values{}, problems: map[string]string{}}
	for name, list := range values {
		f.Values[name] = list
	}
	for i := 0; i < len(otherwise); i += 2 {
		if !values.Has(otherwise[i]) {
			f.Values.Set(otherwise[i], otherwise[i+1])
		}
	}
	return f
}

// Wrong notes what is wrong with a field, or for "" with the whole form. Only the first mistake of a field is kept.
func (f *Form) Wrong(name, text string) {
	if _, known := f.problems[name]; !known {
		f.problems[name] = text
	}
}

// OK reports whether nothing is wrong so far.
func (f *Form) OK() bool { return len(f.problems) == 0 }

// Again answers with the page at path, which shows the form in content as it was typed, with what is wrong. err is the error of an operation, which is shown
// next to the field that it names in quotes, or above all fields; nil: there are mistakes in the form.
func (f *Form) Again(s Site, w http.ResponseWriter, r *http.Request, v Visitor, path string, err error, content View) {
	status, text := explain(err)
	for name := range f.Values {
		if strings.HasPrefix(name, "x-") && strings.Contains(text, "'"+name+"'") {
			f.Wrong(name, text)
			err = nil
		}
	}
	if err != nil {
		f.Wrong("", text)
	}
	s.Show(w, r, status, v, path, content)
}

// explain is the status and the text for an operation's error; nil is a form with mistakes.
func explain(err error) (status int, text string) {
	role, isRole := errors.AsType[*operate.MissingRole](err)
	stale, isStale := errors.AsType[*operate.Stale](err)
	switch {
	case err == nil:
		return http.StatusBadRequest, ""
	case isRole:
		return http.StatusForbidden, Sentence(role.Error()) + "."
	case errors.Is(err, operate.ErrNoEntry):
		return http.StatusForbidden, "This user has no permissions in the virtual host."
	case isStale && !stale.Exists:
		return http.StatusConflict, Sentence(err.Error()) + ". Nothing was changed. Open this page again to see what it is now."
	case isStale:
		return http.StatusBadRequest, Sentence(err.Error()) + "."
	case errors.Is(err, operate.ErrNotFound), errors.Is(err, operate.ErrNoVHost):
		return http.StatusNotFound, "It no longer exists, or it has changed. Reload the page."
	case operate.Refused(err):
		return http.StatusForbidden, "This user lacks the permission: " + err.Error()
	case operate.Gone(err):
		return http.StatusNotFound, err.Error()
	}
	return http.StatusBadRequest, err.Error()
}

// Need is the value of a field that must not be empty.
func (f *Form) Need(name string) string {
	text := f.Get(name)
	if text == "" {
		f.Wrong(name, "Fill this in.")
	}
	return text
}

// Value reads a field that has what an operation's fields of this kind have; nil: it is empty, and this is not an object.
func (f *Form) Value(name string, kind operate.Kind) any {
	text := strings.TrimSpace(f.Get(name))
	if text == "" && kind != operate.Object {
		return nil
	}
	v, err := kind.Read(text)
	if err != nil {
		f.Wrong(name, Sentence(err.Error())+".")
	}
	return v
}

// Table reads arguments or headers from a field with a JSON object.
func (f *Form) Table(name string) operate.Table {
	object, _ := f.Value(name, operate.Object).(map[string]any)
	t, err := operate.TableOf(object)
	if err != nil {
		f.Wrong(name, Sentence(err.Error())+".")
	}
	if t == nil {
		t = operate.Table{}
	}
	return t
}

// Problem shows what is wrong with the whole form, if anything is.
func (f *Form) Problem() g.Node {
	return Problem(f.problems[""])
}

// labelled is a label around a control that is made of its name and other attributes, with a hint and the mistake of its field.
func (f *Form) labelled(class, label, name, hint string, control func(...g.Node) g.Node, attributes ...g.Node) g.Node {
	text, wrong := f.problems[name]
	if wrong {
		attributes = append(attributes, h.Aria("invalid", "true"), h.Aria("describedby", "wrong-"+name))
	}
	return h.Label(g.If(class != "", h.Class(class)), h.Span(g.Text(label)), control(h.Name(name), g.Group(attributes)),
		g.If(hint != "", h.Span(h.Class("hint"), g.Text(hint))),
		g.If(wrong, h.Span(h.Class("wrong"), h.ID("wrong-"+name), h.Role("alert"), Name(text))))
}

// Field is a field of one line.
func (f *Form) Field(label, name, hint string, attributes ...g.Node) g.Node {
	return f.labelled("", label, name, hint, h.Input, h.Value(f.Get(name)), g.Group(attributes))
}

// Password is a field whose content is never sent back. what is what browsers fill in: "current-password" or "new-password".
func (f *Form) Password(label, name, what, hint string) g.Node {
	return f.labelled("", label, name, hint, h.Input, h.Type("password"), h.AutoComplete(what))
}

// Area is a field of several lines, as wide as the form. Browsers drop a line break at its beginning.
func (f *Form) Area(label, name, hint string, rows int) g.Node {
	text := g.Text("\n" + strings.ReplaceAll(f.Get(name), "\r\n", "\n"))
	return f.labelled("whole", label, name, hint, h.Textarea, h.Rows(strconv.Itoa(rows)), g.Attr("spellcheck", "false"), text)
}

// Choose is a field with values to choose from, each followed by its text.
func (f *Form) Choose(label, name, hint string, options ...string) g.Node {
	chosen := f.Get(name)
	var list g.Group
	for i := 0; i < len(options); i += 2 {
		list = append(list, h.Option(h.Value(options[i]), g.If(options[i] == chosen, h.Selected()), g.Text(Visible(options[i+1]))))
	}
	return f.labelled("", label, name, hint, h.Select, list)
}

// Or are values to choose from, each with itself as its text. An empty value comes first, with the text empty, unless that is "".
func Or(empty string, values []string) (options []string) {
	if empty != "" {
		options = append(options, "", empty)
	}
	for _, v := range values {
		options = append(options, v, v)
	}
	return options
}

// Check is a box to check.
func (f *Form) Check(label, name string) g.Node {
	return h.Label(h.Class("inline"), h.Input(h.Type("checkbox"), h.Name(name), h.Value("1"), g.If(f.Get(name) != "", h.Checked())), h.Span(g.Text(label)))
}

// Search is a form that searches and changes nothing: its fields are next to each other.
func Search(action string, children ...g.Node) g.Node {
	return h.Form(h.Class("filter"), h.Method("get"), h.Action(action), h.Role("search"), h.AutoComplete("off"), g.Group(children))
}

// Change is a form that changes something. It has the visitor's token. Its class is its layout: "sheet" is as Sheet has it; "filter" has the fields
// next to each other; "doing" is a line of buttons.
func (s *Info) Change(action, class string, children ...g.Node) g.Node {
	return h.Form(g.If(class != "", h.Class(class)), h.Method("post"), h.Action(action), h.AutoComplete("off"), Hidden("token", s.Token), g.Group(children))
}

// Sheet is a form that changes something, with its fields in one column or two. Actions are its buttons.
func (s *Info) Sheet(action string, f *Form, fields g.Group, actions ...g.Node) g.Node {
	return s.Change(action, "sheet", f.Problem(), fields, h.P(h.Class("doing"), Spaced(actions...)))
}

// Typed asks for a number or a name to be typed, so that nobody deletes by accident.
func (f *Form) Typed(text string) g.Node {
	return f.Field("Type "+Visible(text)+" to confirm", "confirm", "", g.Attr("size", "10"), h.Required(), h.AutoFocus())
}

// Confirmed reports whether the user typed the text that was asked for, as it is or as Typed shows it.
func (f *Form) Confirmed(text string) bool {
	typed := strings.TrimSpace(f.Get("confirm"))
	if typed == strings.TrimSpace(text) || typed == strings.TrimSpace(Visible(text)) {
		return true
	}
	problem := fmt.Sprintf("Nothing was deleted: %q is not the text to type.", typed)
	if typed == "" {
		problem = "Nothing was deleted: type " + Visible(text) + " to confirm."
	}
	f.Wrong("confirm", problem)
	return false
}

// Menu is a line of links to actions.
func Menu(label string, links ...g.Node) g.Node {
	return h.Nav(h.Class("doing"), h.Aria("label", label), Spaced(links...))
}

// Action is a link that looks like a button.
func Action(to, text string) g.Node { return h.A(h.Class("button"), Href(to), g.Text(text)) }

// DangerLink links to a page that asks whether to delete.
func DangerLink(to, text string) g.Node {
	return h.A(h.Class("button danger"), Href(to), g.Text(text))
}

// Done shows what was done, or nothing if text is "".
func Done(text string) g.Node {
	if text == "" {
		return nil
	}
	return h.P(h.Class("done"), h.Role("status"), g.Text(text))
}

// Problem shows what went wrong, or nothing if text is "".
func Problem(text string) g.Node {
	if text == "" {
		return nil
	}
	return h.P(h.Class("problem"), h.Role("alert"), Name(text))
}
