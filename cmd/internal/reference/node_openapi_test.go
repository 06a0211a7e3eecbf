package reference

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"
	"github.com/stretchr/testify/require"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/cmd/internal/node"
)

// TestOpenAPIIsCurrent: the document that Curfew serves is made of its routes, and is valid.
func TestOpenAPIIsCurrent(t *testing.T) {
	path, text := root+"/docs/reference/openapi.json", documentText(t)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	keep(t, path, string(old), text, func(text string) string { return text })

	path = root + "/cmd/internal/node/openapi.json.gz"
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	packed, err := gzip.NewReader(file)
	require.NoError(t, err)
	old, err = io.ReadAll(packed)
	require.NoError(t, err)
	keep(t, path, string(old), text, func(text string) string {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		_, _ = io.WriteString(w, text)
		require.NoError(t, w.Close())
		return out.String()
	})
}

// documentText is the document of all routes in JSON.
func documentText(t *testing.T) string {
	document := newDocument(t)
	require.NoError(t, document.Validate(t.Context()))
	text, err := json.Marshal(document)
	require.NoError(t, err)
	var plain any
	require.NoError(t, json.Unmarshal(text, &plain))
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	require.NoError(t, encoder.Encode(plain))
	return out.String()
}

// subjects are the tags of the document, in the order of the page, and the parts of paths that they are about.
var subjects = []struct{ tag, parts, text string }{
	{"State", "status forecasts history", "What this Curfew does, did and is about to do."},
	{"Deadlines", "deadlines", "The deadlines of queued messages."},
	{"Queues", "queues", "What is done to a whole queue."},
	{"Retries", "retries", "Messages that came back and wait for another try."},
	{"Delayed messages", "delayed", "Messages that wait to be enqueued."},
	{"Scheduled messages", "scheduled", "Delayed messages that the user has published, or that wait in a delay queue of RabbitMQ."},
	{"Locks", "locks", "Locks of deliveries, on queues with `x-lock-duration`."},
	{"Consumers", "consumers", "Who holds messages."},
	{"Dead letters", "deadletters replays", "Dead letters, and the replays that send them back."},
	{"Clock", "clock", "The clock of deadlines, which tests move where it is manual."},
	{"Runs", "runs", "Operations that may take long, while they run and after they have ended."},
	{"Policies", "policies operator-policies", "Policies that count for what is queued already."},
	{"Virtual hosts", "vhosts", "Virtual hosts, with what is in them."},
	{"Users", "users", "Users, their passwords and their tags."},
	{"Incidents", "incidents maintenance", "What is wrong, who is told, and maintenance."},
	{"Audit", "audit", "The record of what expired and what users changed."},
	{"RabbitMQ", "rabbitmq", "The queues of RabbitMQ beside which Curfew runs."},
	{"Document", "openapi.json", "The document of this API."},
}

func subjectOf(t *testing.T, path string) string {
	part := strings.Split(path, "/")[3]
	for _, one := range subjects {
		if slices.Contains(strings.Fields(one.parts), part) {
			return one.tag
		}
	}
	require.Fail(t, "no subject has "+path)
	return ""
}

// pathParameters are what the names in braces mean.
var pathParameters = map[string]string{
	"vhost":    "Virtual host, escaped: `/` is `%2F`.",
	"queue":    "Queue, escaped.",
	"seq":      "Number of the message in its queue.",
	"token":    "Token of the lock.",
	"exchange": "Exchange, escaped; `amq.default` is the default one.",
	"id":       "ID, as the list has it.",
	"name":     "Name of the filter, escaped.",
	"replay":   "ID of the replay.",
	"run":      "ID of the run.",
	"policy":   "Name of the policy, escaped.",
	"user":     "Name of the user, escaped.",
	"incident": "ID of the incident.",

	"message_id": "The message-id, escaped.",
}

// tags are which tag of a user gives a role; administrator gives all.
var tags = map[operate.Role]string{
	operate.Management: "management", operate.Policymaker: "policymaker", operate.Monitor: "monitoring", operate.Administrator: "administrator",
}

// documentor makes the document.
type documentor struct {
	t        *testing.T
	comments *comments
	document *openapi3.T
	answers  *openapi3gen.Generator
	bodies   *openapi3gen.Generator // nothing is required in what is read
	names    map[string]reflect.Type
	ids      map[string]bool
}

func newDocument(t *testing.T) *openapi3.T {
	d := &documentor{t: t, comments: newComments(t), names: map[string]reflect.Type{}, ids: map[string]bool{}}
	d.document = &openapi3.T{
		OpenAPI: "3.1.0",
		Info: &openapi3.Info{
			Title: "Curfew", Version: "devel",
			Description: "Curfew's own HTTP API, beside RabbitMQ's management API. Instants are Unix milliseconds unless they are written as text.",
			License:     &openapi3.License{Name: "MIT"},
		},
		Servers:  openapi3.Servers{{URL: "/"}},
		Security: openapi3.SecurityRequirements{openapi3.NewSecurityRequirement().Authenticate("basic")},
		Paths:    openapi3.NewPaths(),
		Components: &openapi3.Components{
			Schemas:         openapi3.Schemas{"Error": openapi3.NewSchemaRef("", errorSchema())},
			SecuritySchemes: openapi3.SecuritySchemes{"basic": {Value: openapi3.NewSecurityScheme().WithType("http").WithScheme("basic")}},
			Responses: openapi3.ResponseBodies{"Error": {Value: openapi3.NewResponse().
				WithDescription("It was refused, or failed: 400 the request is wrong, 401 the user may not do this or is not known, 404 it does not exist, 409 it has changed, 503 try again.").
				WithJSONSchemaRef(openapi3.NewSchemaRef("#/components/schemas/Error", nil))}},
		},
	}
	for _, one := range subjects {
		d.document.Tags = append(d.document.Tags, &openapi3.Tag{Name: one.tag, Description: one.text})
	}
	exported := openapi3gen.CreateComponentSchemas(openapi3gen.ExportComponentSchemasOptions{ExportComponentSchemas: true, ExportTopLevelSchema: true})
	d.answers = openapi3gen.NewGenerator(exported, openapi3gen.CreateTypeNameGenerator(d.nameOf("")), openapi3gen.SchemaCustomizer(d.customize(false, "")))
	d.bodies = openapi3gen.NewGenerator(exported, openapi3gen.CreateTypeNameGenerator(d.nameOf("Request")), openapi3gen.SchemaCustomizer(d.customize(true, "Request")))
	for _, one := range node.APIRoutes() {
		d.add(&one)
	}
	text, err := json.Marshal(d.document) // so that references are resolved
	require.NoError(t, err)
	document, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	return document
}

func errorSchema() *openapi3.Schema {
	reason := openapi3.NewSchema()
	reason.Description = "why, in words; some answers have a list here, as RabbitMQ's have."
	kind := openapi3.NewStringSchema()
	kind.Description = "what is wrong, such as bad_request or not_found"
	s := openapi3.NewObjectSchema().WithProperty("error", kind).WithProperty("reason", reason)
	for name, of := range map[string]struct{ kind, text string }{
		"imported": {"integer", "of an import: how many messages were published before the line at which it ended."},
		"matched":  {"integer", "of a purge that has to be confirmed: how many messages it is about."},
		"position": {"string", "of a purge that has to be confirmed: what makes a second request about the same messages."},
	} {
		s.WithProperty(name, &openapi3.Schema{Type: &openapi3.Types{of.kind}, Description: of.text})
	}
	s.Required, s.Description = []string{"error", "reason"}, "Why a request was refused or failed."
	return s
}

func (d *documentor) add(one *rest.Route) {
	require.NotEmpty(d.t, one.Doc.ID, "%s %s has no doc", one.Method, one.Path)
	op := &openapi3.Operation{
		Tags: []string{subjectOf(d.t, one.Path)}, OperationID: d.id(one), Summary: one.Doc.Summary, Responses: openapi3.NewResponsesWithCapacity(3),
	}
	op.Description = strings.TrimSpace(one.Doc.Text + " It takes a user with the tag `" + tags[one.Role()] + "`")
	if one.Body > 0 {
		op.Description += ", and a body of " + humanize.IBytes(uint64(one.Body)) + " at most"
	}
	op.Description += "."
	for _, match := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(one.Path, -1) {
		p := openapi3.NewPathParameter(match[1]).WithDescription(pathParameters[match[1]]).WithSchema(openapi3.NewStringSchema())
		require.NotEmpty(d.t, p.Description, match[1])
		if match[1] == "seq" {
			p.Schema.Value = openapi3.NewIntegerSchema()
		}
		op.AddParameter(p)
	}
	for _, one := range append(slices.Clone(one.Doc.Query), rowParameters(one.Doc.Rows)...) {
		schema, err := openapi3gen.NewSchemaRefForValue(one.Value, nil)
		require.NoError(d.t, err)
		for _, value := range one.OneOf {
			schema.Value.Enum = append(schema.Value.Enum, value)
		}
		op.AddParameter(openapi3.NewQueryParameter(one.Name).WithDescription(one.Text).WithSchema(schema.Value))
	}
	if one.Doc.Body != nil {
		op.RequestBody = &openapi3.RequestBodyRef{Value: openapi3.NewRequestBody().WithContent(d.content(d.bodies, one.Doc.Body, cmp.Or(one.Doc.BodyKind, "application/json")))}
	}
	d.addAnswers(op, &one.Doc)
	d.document.AddOperation(one.Path, one.Method, op)
}

func (d *documentor) addAnswers(op *openapi3.Operation, doc *rest.Doc) {
	done := openapi3.NewResponse().WithDescription("Done.")
	if doc.Answer != nil {
		kinds := doc.Kinds
		if kinds == nil {
			kinds = []string{"application/json"}
		}
		answer := openapi3.NewResponse().WithDescription("Done.").WithContent(d.content(d.answers, doc.Answer, kinds...))
		if doc.Rows {
			items := answer.Content["application/json"].Schema
			answer.Content["application/json"].Schema = openapi3.NewSchemaRef("", &openapi3.Schema{OneOf: openapi3.SchemaRefs{items, openapi3.NewSchemaRef("", pageOf(items))}})
		}
		status := http.StatusOK
		if doc.Created {
			status = http.StatusCreated
		}
		op.AddResponse(status, answer)
	}
	if doc.Accepted != nil {
		op.AddResponse(http.StatusAccepted, openapi3.NewResponse().WithDescription("It goes on in the background.").WithContent(d.content(d.answers, doc.Accepted, "application/json")))
	}
	if doc.Answer == nil || doc.Empty {
		op.AddResponse(http.StatusNoContent, done)
	}
	op.Responses.Set("default", &openapi3.ResponseRef{Ref: "#/components/responses/Error"})
}

// content has a schema for JSON, and text for other media types.
func (d *documentor) content(by *openapi3gen.Generator, value any, kinds ...string) openapi3.Content {
	out := openapi3.Content{}
	for _, kind := range kinds {
		schema := openapi3.NewSchemaRef("", openapi3.NewStringSchema())
		if kind == "application/json" {
			var err error
			schema, err = by.NewSchemaRefForValue(value, d.document.Components.Schemas)
			require.NoError(d.t, err)
		}
		out[kind] = openapi3.NewMediaType().WithSchemaRef(schema)
	}
	return out
}

// id is the operation's name. Routes that differ in how much of a place they name have one name in the code.
func (d *documentor) id(one *rest.Route) string {
	id := one.Doc.ID
	if d.ids[id] {
		id += "InVHost"
	}
	if d.ids[id] {
		id = one.Doc.ID + "InQueue"
	}
	require.False(d.t, d.ids[id], id)
	d.ids[id] = true
	return id
}

// rowParameters are those that rest.Request.Rows reads.
func rowParameters(rows bool) []rest.Parameter {
	if !rows {
		return nil
	}
	return []rest.Parameter{
		{Name: "page", Text: "Answer with one page, from 1 on, and not with the plain list.", Value: int64(0)},
		{Name: "page_size", Text: "Objects on a page: 1 to 500; 100 if it is missing.", Value: int64(0)},
		{Name: "name", Text: "With `page`: only objects whose field `name` has this in it.", Value: ""},
		{Name: "use_regex", Text: "`name` is a regular expression.", Value: false},
		{Name: "sort", Text: "The field to sort by; a dot leads into a field.", Value: ""},
		{Name: "sort_reverse", Text: "The other way round.", Value: false},
		{Name: "columns", Text: "The fields to answer with, with commas between; objects have no others then.", Value: ""},
	}
}

func pageOf(items *openapi3.SchemaRef) *openapi3.Schema {
	s := openapi3.NewObjectSchema()
	for _, name := range []string{"page", "page_count", "page_size", "filtered_count", "item_count", "total_count"} {
		s.WithProperty(name, openapi3.NewIntegerSchema())
		s.Required = append(s.Required, name)
	}
	s.WithPropertyRef("items", items)
	s.Required, s.Description = append(s.Required, "items"), "One page, if the query has `page`."
	return s
}

// packageNames are what the names of schemas begin with, by package; "" of packages whose types have names that say enough.
var packageNames = map[string]string{
	"deadletters": "DeadLetter", "rabbitmq": "RabbitMQ", "cluster": "RabbitMQ", "observe": "Observed", "delay": "Delay", "history": "History", "audit": "Audit",
	"management": "", "letters": "", "node": "", "incident": "", "operate": "", "admin": "", "messages": "", "monitor": "", "broker": "", "topology": "", "changes": "", "deadline": "",
}

// nameOf returns what names the schema of a type: two types never share a name.
func (d *documentor) nameOf(suffix string) func(reflect.Type) string {
	return func(of reflect.Type) string {
		if of.Name() == "" || of.PkgPath() == "" {
			return ""
		}
		prefix, known := packageNames[of.PkgPath()[strings.LastIndex(of.PkgPath(), "/")+1:]]
		require.True(d.t, known, "packageNames has no %s", of.PkgPath())
		name := prefix + upper(strings.TrimSuffix(of.Name(), suffix)) + suffix
		require.Contains(d.t, []reflect.Type{nil, of}, d.names[name], name)
		d.names[name] = of
		return name
	}
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType        = reflect.TypeFor[time.Time]()
)

// customize says what openapi3gen does not find out.
func (d *documentor) customize(reads bool, suffix string) openapi3gen.SchemaCustomizerFn {
	return func(_ string, of reflect.Type, tag reflect.StructTag, s *openapi3.Schema) error {
		_, options, _ := strings.Cut(tag.Get("json"), ",")
		isText := of != timeType && reflect.PointerTo(of).Implements(textUnmarshaler)
		switch {
		case isText || strings.Contains(options, "string") && of.Kind() == reflect.Uint64:
			*s = openapi3.Schema{Type: &openapi3.Types{"string"}, Nullable: s.Nullable}
			if of.Name() == "instant" {
				s.Format = "date-time"
			}
			if of.Kind() == reflect.Struct { // openapi3gen refers to a component
				d.document.Components.Schemas[d.nameOf(suffix)(of)] = openapi3.NewSchemaRef("", s)
				s.Description = upper(spoken(of.Name(), of.Name(), d.comments.ofType(of)))
			}
		case of.Kind() == reflect.Array:
			n := uint64(of.Len())
			s.Type, s.MinItems, s.MaxItems = &openapi3.Types{"array"}, n, &n
			s.Items = openapi3.NewSchemaRef("", openapi3.NewIntegerSchema())
			require.Equal(d.t, reflect.Int, of.Elem().Kind())
		case of.Kind() == reflect.Uint64:
			s.Max = nil // no JSON reader can tell
		case of.Kind() == reflect.Struct && of != timeType:
			s.Description = upper(spoken(of.Name(), of.Name(), d.comments.ofType(of)))
			d.describeFields(of, s, reads)
		}
		if s.Nullable {
			s.Nullable = false
			if s.Type != nil && (of.Kind() != reflect.Struct || of == timeType) { // an object is absent and not null
				s.Type = &openapi3.Types{(*s.Type)[0], "null"}
			}
		}
		return nil
	}
}

// describeFields adds the comments of fields, and which of them are always there.
func (d *documentor) describeFields(of reflect.Type, s *openapi3.Schema, reads bool) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			d.describeFields(f.Type, s, reads)
			continue
		}
		property := s.Properties[name]
		if property == nil {
			continue
		}
		text := f.Tag.Get("doc")
		if text == "" {
			text = spoken(f.Name, name, d.comments.ofField(of, f.Name))
		}
		if text != "" && !strings.HasPrefix(property.Ref, "#") {
			property.Value.Description = text
		}
		optional := tagged && (strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"))
		if !optional && !reads && !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
}

// spoken is a comment of a field or a type, which may call it by its name in Go, as people read it who know its name in JSON.
func spoken(goName, name, text string) string {
	rest, named := strings.CutPrefix(text, goName)
	if !named {
		return text
	}
	for _, verb := range []string{" is ", " are ", ": "} {
		if bare, found := strings.CutPrefix(rest, verb); found {
			return bare
		}
	}
	if strings.HasPrefix(rest, " ") {
		return "`" + name + "`" + rest
	}
	return text
}
