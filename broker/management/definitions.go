package management

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"curfew/broker"
	"curfew/broker/definitions"
)

func (a *API) definitionsVersion() definitions.Version {
	return definitions.Version{RabbitMQ: a.Compat, Product: "Curfew", ProductVersion: a.Version}
}

// exportDefinitions is everything, in RabbitMQ's format.
func (q *request) exportDefinitions() error {
	return q.answerDefinitions(definitions.Export(q.api.b, q.api.definitionsVersion()))
}

func (q *request) exportVHost() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	return q.answerDefinitions(definitions.ExportVHost(vh, q.api.definitionsVersion()))
}

// fileName is a token (RFC 9110 §5.6.2), as RabbitMQ 4 wants it.
var fileName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

func (q *request) answerDefinitions(d *definitions.Document) error {
	if name := q.URL.Query().Get("download"); name != "" {
		if !fileName.MatchString(name) {
			return bad("download is not a file's name")
		}
		q.w.Header().Set("Content-Disposition", "attachment; filename="+name)
	}
	if !q.accepts() {
		return errNotAcceptable
	}
	if err := q.api.takeTurn(q.Context()); err != nil {
		return err
	}
	defer q.api.endTurn()
	s := q.stream()
	s.document(d)
	s.end()
	return nil
}

// document writes a definitions document field by field and its lists entry by entry, as
// json.Marshal would.
func (s *stream) document(d *definitions.Document) {
	v := reflect.ValueOf(d).Elem()
	between := "{"
	for i := range v.NumField() {
		f := v.Field(i)
		name, rule, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if rule == "omitempty" && (f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0) || rule == "omitzero" && f.IsZero() {
			continue
		}
		s.text(between + `"` + name + `":`)
		if between = ","; f.Kind() == reflect.Slice && !f.IsNil() {
			s.list(f.Len(), func(i int) any { return f.Index(i).Interface() })
		} else {
			s.value(f.Interface())
		}
	}
	s.text("}\n")
}

func (q *request) importDefinitions() error {
	d, err := q.definitions()
	if err != nil {
		return invalidDefinitions(err)
	}
	return q.imported(definitions.ImportAs(q.api.b, q.user.Name, d))
}

func (q *request) importVHost() error {
	vh, err := q.vhost()
	if err != nil {
		return errNoVHost
	}
	d, err := q.definitions()
	if err != nil {
		return invalidDefinitions(err)
	}
	return q.imported(definitions.ImportVHost(q.api.b, vh.Name(), d))
}

// imported answers an import; what it left out is in the log.
func (q *request) imported(left definitions.Report, err error) error {
	if err != nil {
		return invalidDefinitions(err)
	}
	left.Tell(q.api.log)
	if q.MultipartForm != nil && q.FormValue("redirect") != "" { // where the page wants to go on
		q.w.Header().Set("Location", q.FormValue("redirect"))
		q.w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return q.done()
}

// definitions reads the body, or the file of the form that web pages send.
func (q *request) definitions() (*definitions.Document, error) {
	if kind, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type")); kind == "multipart/form-data" {
		file, _, err := q.FormFile("file")
		if err != nil {
			return nil, err
		}
		defer file.Close()
		b, err := io.ReadAll(file)
		if err != nil {
			return nil, err
		}
		return definitions.Parse(b)
	}
	b, err := q.body()
	if err != nil {
		return nil, err
	}
	return definitions.Parse(b)
}

// invalidDefinitions: what cannot be imported is the document's fault, unless
// something else is said.
func invalidDefinitions(err error) error {
	if errors.Is(err, broker.ErrNotSaved) {
		return err
	}
	if errors.Is(err, definitions.ErrNotJSON) {
		return bad("failed_to_parse_json")
	}
	if p := asProblem(err); p.kind != "internal_error" {
		return p
	}
	return bad(err.Error())
}
