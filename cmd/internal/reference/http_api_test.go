package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"curfew/broker/management"
)

// apiPages has a section for each route of Curfew's own API.
func apiPages(t *testing.T) string {
	document := newDocument(t)
	var out strings.Builder
	for _, tag := range document.Tags {
		fmt.Fprintf(&out, "### %s\n\n%s\n\n", tag.Name, tag.Description)
		for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
			operations := document.Paths.Value(path).Operations()
			for _, method := range slices.Sorted(maps.Keys(operations)) {
				if op := operations[method]; op.Tags[0] == tag.Name && !isNarrower(document, path, method) {
					fmt.Fprintf(&out, "#### %s %s\n", method, path)
					also := "\nAlso, for a single virtual host or queue: "
					for _, narrower := range []string{path + "/{vhost}", path + "/{vhost}/{queue}"} {
						if isNarrower(document, narrower, method) {
							out.WriteString(also + code(narrower))
							also = ", "
						}
					}
					out.WriteString("\n")
					describeOperation(&out, op)
				}
			}
		}
	}
	return out.String()
}

// isNarrower reports whether a route is another one for a single virtual host or queue.
func isNarrower(document *openapi3.T, path, method string) bool {
	item := document.Paths.Value(path)
	if item == nil {
		return false
	}
	wide := document.Paths.Value(strings.TrimSuffix(strings.TrimSuffix(path, "/{queue}"), "/{vhost}"))
	return wide != nil && wide != item && wide.GetOperation(method) != nil && wide.GetOperation(method).Summary == item.GetOperation(method).Summary
}

func describeOperation(out *strings.Builder, op *openapi3.Operation) {
	fmt.Fprintf(out, "\n%s. %s\n\n", op.Summary, op.Description)
	query := newTable("Query", "Type", "Meaning")
	some := false
	for _, p := range op.Parameters {
		if p.Value.In == "query" {
			some = true
			query.row(code(p.Value.Name), typeOf(p.Value.Schema), p.Value.Description)
		}
	}
	if some {
		out.WriteString(query.String() + "\n")
	}
	if op.RequestBody != nil {
		for kind, media := range op.RequestBody.Value.Content {
			fmt.Fprintf(out, "Body: %s\n\n", contentOf(kind, media))
		}
	}
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
		if status == "default" {
			continue
		}
		content := op.Responses.Value(status).Value.Content
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			kinds = append(kinds, contentOf(kind, content[kind]))
		}
		if kinds == nil {
			kinds = []string{"nothing"}
		}
		answers = append(answers, status+" "+strings.Join(kinds, " or "))
	}
	fmt.Fprintf(out, "Answer: %s\n\n", strings.Join(answers, "; "))
}

func contentOf(kind string, media *openapi3.MediaType) string {
	if kind == "application/json" {
		return typeOf(media.Schema)
	}
	return code(kind)
}

// typeOf is a type in words; an object with a name is a link to its section.
func typeOf(of *openapi3.SchemaRef) string {
	if name, found := strings.CutPrefix(of.Ref, "#/components/schemas/"); found {
		return fmt.Sprintf("[%s](#%s)", name, anchor(name))
	}
	s := of.Value
	switch {
	case len(s.OneOf) > 0:
		return typeOf(s.OneOf[0]) + ", or with `page` an object with these in `items`"
	case len(s.Enum) > 0:
		var values []string
		for _, one := range s.Enum {
			values = append(values, fmt.Sprint(one))
		}
		return strings.Join(quoted(values), ", ")
	case s.Type == nil:
		return "any"
	case s.Type.Includes("array"):
		return "array of " + typeOf(s.Items)
	case s.Type.Includes("object") && s.AdditionalProperties.Schema != nil && s.AdditionalProperties.Schema.Value.Type != nil:
		return "object of " + typeOf(s.AdditionalProperties.Schema)
	case s.Type.Includes("object") && len(s.Properties) > 0:
		return "object with " + strings.Join(quoted(slices.Sorted(maps.Keys(s.Properties))), ", ")
	case s.Format == "date-time":
		return "instant as text"
	}
	return strings.Join(*s.Type, " or ")
}

// schemaPages has a section for each object with a name.
func schemaPages(t *testing.T) string {
	document := newDocument(t)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(document.Components.Schemas)) {
		s := document.Components.Schemas[name].Value
		fmt.Fprintf(&out, "#### %s\n\n", name)
		if s.Description != "" {
			out.WriteString(s.Description + "\n\n")
		}
		if s.Properties == nil {
			fmt.Fprintf(&out, "Type: %s\n\n", typeOf(document.Components.Schemas[name]))
			continue
		}
		fields := newTable("Field", "Type", "Meaning")
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			text := ""
			if s.Properties[field].Ref == "" {
				text = s.Properties[field].Value.Description
			}
			if len(s.Required) > 0 && !slices.Contains(s.Required, field) {
				text = strings.TrimSpace("May be absent. " + text)
			}
			fields.row(code(field), typeOf(s.Properties[field]), text)
		}
		out.WriteString(fields.String() + "\n")
	}
	return out.String()
}

// managementRoutes is a table of the routes of RabbitMQ's management API that are served.
func managementRoutes(*testing.T) string {
	out := newTable("Path", "Method", "Tag")
	methods, paths := map[string][]string{}, []string{}
	for _, one := range (*management.API)(nil).Routes() {
		if strings.HasPrefix(one.Path, "/api/curfew/") {
			continue
		}
		if methods[one.Path] == nil {
			paths = append(paths, one.Path)
		}
		methods[one.Path] = append(methods[one.Path], one.Method+" "+code(tags[one.Role()]))
	}
	for _, path := range paths {
		for i, one := range methods[path] {
			method, tag, _ := strings.Cut(one, " ")
			shown := code(path)
			if i > 0 {
				shown = ""
			}
			out.row(shown, method, tag)
		}
	}
	return out.String()
}
