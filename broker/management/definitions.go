package management

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"curfew/broker"
	"curfew/broker/definitions"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// fileName matches a token (RFC 9110 §5.6.2), which RabbitMQ 4 requires.
var fileName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// exportDefinitions answers with the definitions of the virtual host in the path, or with all, in RabbitMQ's format.
func exportDefinitions(r *request) error {
	d, err := r.Operations.ExportAll(r.HTTP.Context(), r.Actor, r.Param("vhost"))
	if err != nil {
		return err
	}
	if name := r.HTTP.URL.Query().Get("download"); name != "" {
		if !fileName.MatchString(name) {
			return rest.Bad("download is not a valid file name")
		}
		r.W.Header().Set("Content-Disposition", "attachment; filename="+name)
	}
	if !r.Accepts() {
		return rest.ErrNotAcceptable
	}
	if err := r.api.server.Turns.Take(r.HTTP.Context()); err != nil {
		return err
	}
	defer r.api.server.Turns.End()
	s := r.Stream()
	writeDocument(s, d)
	s.End()
	return nil
}

// writeDocument writes a definitions document field by field, and its lists entry by entry, in
// the form of json.Marshal.
func writeDocument(s *rest.Stream, d *definitions.Document) {
	v := reflect.ValueOf(d).Elem()
	between := "{"
	for i := range v.NumField() {
		f := v.Field(i)
		name, rule, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if rule == "omitempty" && (f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0) || rule == "omitzero" && f.IsZero() {
			continue
		}
		s.Text(between + `"` + name + `":`)
		if between = ","; f.Kind() == reflect.Slice && !f.IsNil() {
			s.List(f.Len(), func(i int) any { return f.Index(i).Interface() })
		} else {
			s.Value(f.Interface())
		}
	}
	s.Text("}\n")
}

// importDefinitions runs an import into the virtual host in the path, or of everything, and answers it.
func importDefinitions(r *request) error {
	vhost := r.Param("vhost")
	if _, err := r.vhost(); err != nil && vhost != "" {
		return rest.ErrNoVHost
	}
	d, err := readDefinitions(r)
	if err != nil {
		return invalidDefinitions(err)
	}
	return r.Run(operate.ImportDefinitions, operate.QueueName{VHost: vhost}, func(ctx context.Context) (any, error) {
		if err := r.Operations.ImportAll(ctx, r.Actor, vhost, d); err != nil {
			return nil, invalidDefinitions(err)
		}
		return nil, nil
	}, func(any) error { return imported(r) })
}

// imported answers an import.
func imported(r *request) error {
	if r.HTTP.MultipartForm != nil && r.HTTP.FormValue("redirect") != "" { // where the page continues
		r.W.Header().Set("Location", r.HTTP.FormValue("redirect"))
		r.W.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return r.Done(nil)
}

// readDefinitions reads the body, or the file of the form that web pages send.
func readDefinitions(r *request) (*definitions.Document, error) {
	read := r.ReadBody
	if kind, _, _ := mime.ParseMediaType(r.HTTP.Header.Get("Content-Type")); kind == "multipart/form-data" {
		file, _, err := r.HTTP.FormFile("file")
		if err != nil {
			return nil, err
		}
		defer file.Close()
		read = func() ([]byte, error) { return io.ReadAll(file) }
	}
	b, err := read()
	if err != nil {
		return nil, err
	}
	return definitions.Parse(b)
}

// invalidDefinitions returns 400 for an import that failed, unless the error has another status.
func invalidDefinitions(err error) error {
	if errors.Is(err, broker.ErrNotSaved) || errors.Is(err, context.Canceled) || errors.Is(err, operate.ErrTooManyRuns) {
		return err
	}
	if errors.Is(err, definitions.ErrNotJSON) {
		return rest.Bad("failed_to_parse_json")
	}
	if p := rest.AsProblem(err); p.Kind != "internal_error" {
		return p
	}
	return rest.Bad(err.Error())
}
