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

	"go.uber.org/zap"
)

const (
	// maxUpload bounds a file that is imported; the command takes larger ones.
	maxUpload = 64 << 20
	// maxFields and maxField bound what comes before it.
	maxFields = 8
	maxField  = 4 << 10
	// longRequest is how long a file may take.
	longRequest = 30 * time.Minute
)

// takeTime lets a request last longer than others may.
func takeTime(w http.ResponseWriter) {
	c, until := http.NewResponseController(w), time.Now().Add(longRequest)
	_ = c.SetWriteDeadline(until) // a writer that has none needs none
	_ = c.SetReadDeadline(until)
}

// download is a file that begins with the first byte that is written.
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

// exportLetters answers with the dead letters that fit, a line of JSON for each.
func (d *Dashboard) exportLetters(w http.ResponseWriter, r *http.Request, v visitor) {
	q, file := r.URL.Query(), &download{ResponseWriter: w}
	takeTime(w)
	err := d.DeadLetters.Export(r.Context(), v.User, q.Get("vhost"), q.Get("name"), letterFilter(q), file)
	switch {
	case err == nil && !file.begun:
		_, _ = file.Write(nil) // an empty file
	case err != nil && !file.begun:
		d.refuse(w, r, err)
	case err != nil:
		d.log.Warn("export ended", zap.Error(err))
		panic(http.ErrAbortHandler) // what was sent is not all there is
	}
}

// importLetters publishes the lines of a file that is uploaded into a queue, as they come.
func (d *Dashboard) importLetters(w http.ResponseWriter, r *http.Request, v visitor) {
	takeTime(w)
	fields, file, err := upload(r)
	if !d.mayChange(w, r, v, fields.Get("token")) {
		return
	}
	n := 0
	if err == nil {
		n, err = d.DeadLetters.Import(r.Context(), v.User, fields.Get("vhost"), fields.Get("name"), file)
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		err = fmt.Errorf("the file has more than %s: use curfew dlq import", byteCount(maxUpload))
	}
	if err != nil && n > 0 {
		err = fmt.Errorf("%s imported, then: %w", plural(n, "message"), err)
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	d.log.Info("dead letters imported", zap.String("user", v.Name), zap.String("vhost", fields.Get("vhost")), zap.String("queue", fields.Get("name")), zap.Int("messages", n))
	http.Redirect(w, r, with("/dead-letter", url.Values{"vhost": fields["vhost"], "name": fields["name"]}, "imported", strconv.Itoa(n)), http.StatusSeeOther)
}

// upload reads the fields of a form up to its file, which is for the caller to read.
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
