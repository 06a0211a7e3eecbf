package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/operate"
)

// PrintResult prints the result of an operation: its rows as a table, and on stderr what it says in words.
func (a *API) PrintResult(cmd *cobra.Command, op *operate.Op, result any) error {
	if effect, is := result.(operate.Effect); is {
		sentences, _, _ := effect.Words()
		for _, one := range sentences {
			fmt.Fprintln(cmd.ErrOrStderr(), one)
		}
	}
	rows := operate.Rows(result)
	objects := []map[string]any{}
	for _, row := range rows {
		objects = append(objects, op.Object("command", row))
	}
	var all any = objects
	switch {
	case op.IsPage:
		all = result
	case !op.IsList:
		all = objects[0]
	}
	var heads []string
	cells := make([][]string, len(rows))
	everywhere, _ := Everywhere(cmd)
	names := everywhere && (cmd.Flags().Changed(allVHosts) || slices.ContainsFunc(objects, func(o map[string]any) bool { name, _ := o["vhost"].(string); return name != "" && name != "/" }))
	if one, is := op.Row().(operate.Rowed); is { // it makes its line itself
		heads, _ = one.Cells(a.Time)
		all = append([]any{}, rows...)
		for i, row := range rows {
			heads, cells[i] = row.(operate.Rowed).Cells(a.Time)
			for j, text := range cells[i] {
				cells[i][j] = OrDash(text)
			}
		}
		return a.noted(cmd, op, all, heads, cells)
	}
	for _, f := range op.Shown("command", rows) {
		if !f.On("table") && !(names && f.Name == "vhost") {
			continue
		}
		heads = append(heads, f.Heading)
		for i, row := range rows {
			cells[i] = append(cells[i], a.cell(&f, row))
		}
		if f.Until == "" {
			continue
		}
		heads = append(heads, f.Until)
		for i, row := range rows {
			cells[i] = append(cells[i], Until(a.Now(), instantOf(f.Of(row))))
		}
	}
	return a.noted(cmd, op, all, heads, cells)
}

// noted prints a table, and on stderr why it has no rows.
func (a *API) noted(cmd *cobra.Command, op *operate.Op, all any, heads []string, cells [][]string) error {
	everywhere, _ := Everywhere(cmd)
	names, _ := op.Arguments()
	note := ""
	switch {
	case len(cells) > 0 || a.JSON():
	case !everywhere && ofAllVHosts(op) && cmd.Flags().NArg() > 0:
		note = fmt.Sprintf("%s %q in virtual host %q has none", names[0], cmd.Flags().Arg(0), a.VHost)
	case !everywhere && ofAllVHosts(op):
		note = fmt.Sprintf("none in virtual host %q; -A lists those of all", a.VHost)
	case op.IsList:
		note = strings.NewReplacer("{vhost}", strconv.Quote(a.VHost), "{queue}", strconv.Quote(cmd.Flags().Arg(0))).Replace(op.Page.Empty)
	}
	if note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
	return a.Print(cmd.OutOrStdout(), all, heads, cells)
}

// cell is a value as text for a table.
func (a *API) cell(f *operate.Field, row any) string {
	if says, is := row.(interface {
		Cell(column string) (string, bool)
	}); is {
		if text, is := says.Cell(f.Name); is {
			return text
		}
	}
	v := f.Of(row)
	if f.Kind == operate.Instant || f.Kind == operate.Ago {
		if f.Until != "" {
			return a.TimeAt(a.Now(), instantOf(v))
		}
		return a.Time(instantOf(v))
	}
	if f.Kind == operate.Pattern { // an empty one matches nothing
		return operate.Plain(v)
	}
	return OrDash(operate.Plain(v))
}

// instantOf is the time that a field of this kind has; zero: none.
func instantOf(v any) (at time.Time) {
	switch v := v.(type) {
	case time.Time:
		at = v
	case int64:
		if v != 0 {
			at = time.UnixMilli(v)
		}
	}
	return at
}

// Say prints what was done as a line, or v as JSON.
func (a *API) Say(cmd *cobra.Command, v any, done string) error {
	if a.JSON() {
		return a.Print(cmd.OutOrStdout(), v, nil, nil)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), done)
	return err
}

// sayDone says what an operation has done that has no result.
func (a *API) sayDone(cmd *cobra.Command, op *operate.Op, values map[string]any) error {
	v := map[string]any{"operation": op.Name}
	for _, name := range namesOf(op) {
		v[name] = values[name]
	}
	return a.Say(cmd, v, wordsOf(op, values))
}

// namesOf are the fields that name what an operation is about: those in its path.
func namesOf(op *operate.Op) (names []string) {
	for _, part := range strings.Split(op.Routes[0], "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		names = append(names, name)
	}
	return names
}

// past says what a verb, the first word of an operation's name, has done.
var past = map[string]string{
	"acknowledge": "acknowledged", "cancel": "cancelled", "change": "changed", "clear": "removed", "close": "closed", "declare": "declared", "delete": "deleted", "deliver": "delivered", "end": "ended", "make": "made",
	"reschedule": "rescheduled", "return": "returned", "save": "saved", "set": "set", "unacknowledge": "unacknowledged",
}

// wordsOf says what was done and to what, such as: set policy "retry" (vhost "/").
func wordsOf(op *operate.Op, values map[string]any) string {
	verb, thing, _ := strings.Cut(string(op.Name), "_")
	thing = strings.NewReplacer("_", " ", "vhost", "virtual host").Replace(thing)
	if strings.HasPrefix(op.Noun, thing) {
		thing = op.Noun
	}
	words, others := past[verb]+" "+thing, []string(nil)
	names := namesOf(op)
	for i, name := range names {
		value := fmt.Sprintf("%q", operate.Plain(values[name]))
		if i == len(names)-1 && (strings.HasSuffix(name, "id") || name == "name" || name == "vhost" || strings.HasSuffix(thing, name)) {
			words += " " + value
		} else {
			others = append(others, strings.ReplaceAll(name, "_", " ")+" "+value)
		}
	}
	if others != nil {
		words += " (" + strings.Join(others, ", ") + ")"
	}
	return words
}
