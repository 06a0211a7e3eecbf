package dashboard

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"

	"go.uber.org/zap"
)

const (
	// maxUpload bounds a file that is imported; the command takes larger ones.
	maxUpload = 64 << 20
	// maxFields and maxField bound the fields before the file.
	maxFields = 8
	maxField  = 4 << 10
	// longRequest is how long a file may take.
	longRequest = 30 * time.Minute
)

// takeTime allows a request more time than others have.
func takeTime(w http.ResponseWriter) {
	c, until := http.NewResponseController(w), time.Now().Add(longRequest)
	_ = c.SetWriteDeadline(until) // a writer without deadlines needs none
	_ = c.SetReadDeadline(until)
}

// download is a file whose headers are sent before the first byte is written.
type download struct {
	http.ResponseWriter
	begun bool
}

func (f *download) Write(b []byte) (int, error) {
	if !f.begun {
		f.begun = true
		f.Header().Set("Content-Type", "application/jsonl")
		f.Header().Set("Content-Disposition", `attachment; filename="dead-letters.jsonl"`)
	}
	return f.ResponseWriter.Write(b)
}

// exportLetters answers with the matching dead letters, one JSON object per line.
func (d *Dashboard) exportLetters(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	q, file := r.URL.Query(), &download{ResponseWriter: w}
	takeTime(w)
	err := d.Operations.ExportDeadLetters(r.Context(), v.Actor(), some(q), file)
	switch {
	case err == nil && !file.begun:
		_, _ = file.Write(nil) // an empty file
	case err != nil && !file.begun:
		d.refuse(w, r, err)
	case err != nil:
		d.log.Warn("export ended", zap.Error(err))
		panic(http.ErrAbortHandler) // the file is incomplete
	}
}

// importLetters publishes the lines of an uploaded file to a queue as it reads them.
func (d *Dashboard) importLetters(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	takeTime(w)
	fields, file, err := upload(r)
	if !d.fromHere(w, r, v, fields.Get("token")) {
		return
	}
	n := 0
	if err == nil {
		n, err = d.Operations.ImportDeadLetters(r.Context(), v.Actor(), ui.Named(fields), file)
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		err = fmt.Errorf("the file has more than %s: use curfew dlq import", format.Bytes(maxUpload))
	}
	switch {
	case err != nil && n > 0:
		d.fail(w, r, http.StatusBadRequest, format.Plural(n, "message")+" imported, then: "+err.Error())
		return
	case err != nil:
		d.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, ui.With("/dead-letter", url.Values{"vhost": fields["vhost"], "name": fields["name"]}, "imported", strconv.Itoa(n)), http.StatusSeeOther)
}

// upload reads the fields of a form up to its file. The caller reads the file.
func upload(r *http.Request) (url.Values, *multipart.Part, error) {
	fields := url.Values{}
	form, err := r.MultipartReader()
	if err != nil {
		return fields, nil, fmt.Errorf("the form cannot be read: %w", err)
	}
	for range maxFields {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fields, nil, fmt.Errorf("the form cannot be read: %w", err)
		}
		if part.FormName() == "file" && part.FileName() != "" {
			return fields, part, nil
		}
		text, err := io.ReadAll(io.LimitReader(part, maxField))
		if err != nil {
			return fields, nil, fmt.Errorf("the form cannot be read: %w", err)
		}
		fields.Set(part.FormName(), string(text))
	}
	return fields, nil, errors.New("choose a file that was exported")
}
