package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/operate"
)

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
