package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"curfew/broker/deadline"
)

// Formats are those that Emit knows.
var Formats = []string{"rabbitmqctl", "definitions", "kubernetes"}

// Emit writes the setup in one of Formats.
func (s *Setup) Emit(w io.Writer, format string) error {
	switch format {
	case "rabbitmqctl":
		_, err := io.WriteString(w, s.script())
		return err
	case "definitions":
		return s.write(w)
	case "kubernetes":
		return s.kubernetes(w)
	}
	return fmt.Errorf("unknown format %q: want one of %s", format, strings.Join(Formats, ", "))
}

// object is a JSON object.
type object = map[string]any

func inline(v any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // maps of strings, numbers and booleans
	return strings.TrimSpace(text.String())
}

// script is shell commands that import the definitions. Not through the standard input of rabbitmqctl: 4.0 on Erlang 27 hangs then. It may run as
// another user.
func (s *Setup) script() string {
	var b strings.Builder
	comment := func(text string) { b.WriteString("# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n") }
	b.WriteString("#!/bin/sh\n")
	comment("For rabbitmqctl, in virtual host " + s.vhost + ".")
	for _, note := range s.Notes {
		comment(note)
	}
	b.WriteString("set -eu\n")
	if s.named("users", nil, s.user) != nil {
		comment("Set CURFEW_PASSWORD to the password that user " + s.user + " is to have.")
		b.WriteString(": \"${CURFEW_PASSWORD:?}\"\n")
	}
	b.WriteString("definitions=$(mktemp)\ncat >\"$definitions\" <<'END_OF_DEFINITIONS'\n")
	_ = s.write(&b) // a Builder takes everything
	b.WriteString("END_OF_DEFINITIONS\nchmod a+r \"$definitions\"\nrabbitmqctl import_definitions \"$definitions\"\nrm \"$definitions\"\n")
	if s.named("users", nil, s.user) != nil {
		b.WriteString("rabbitmqctl change_password " + deadline.Shell(s.user) + " \"$CURFEW_PASSWORD\"\n")
	}
	if len(s.unbind) > 0 {
		comment("Last of all, remove these bindings (management page, or rabbitmqadmin delete binding):")
	}
	for _, one := range s.unbind {
		comment("  exchange " + one.Exchange + ", queue " + one.Queue + ", routing key " + one.RoutingKey + ", arguments " + inline(one.Arguments))
	}
	return b.String()
}
