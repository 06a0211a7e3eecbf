package letters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"

	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"

	"go.uber.org/zap"
)

// maxFields and maxField bound the fields before the file that is imported.
const (
	maxFields = 8
	maxField  = 4 << 10
)

// export answers with all dead letters that the address or a form selects, one JSON object per line.
func (d Pages) export(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	c := chosenBy(r.URL.Query())
	if r.Method == http.MethodPost {
		if c = chosenBy(r.PostForm); d.stopped(w, r, v, &c) {
			return
		}
	}
	takeTime(w)
	begun := false
	err := c.Wrong
	if err == nil {
		c.Begin = func() io.Writer {
			begun = true
			w.Header().Set("Content-Type", "application/jsonl")
			w.Header().Set("Content-Disposition", `attachment; filename="dead-letters.jsonl"`)
			return w
		}
		_, err = messages.ExportDeadLetters.Do(r.Context(), d.Operations, v.Actor, c.DeadLetters)
	}
	switch {
	case err != nil && !begun:
		d.Site.Refuse(w, r, err)
	case err != nil:
		d.Log.Warn("export ended", zap.Error(err))
		panic(http.ErrAbortHandler) // the file is incomplete
	}
}

// importLetters publishes the lines of an uploaded file to a queue as it reads them.
func (d Pages) importLetters(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	takeTime(w)
	fields, file, err := upload(r)
	if !d.Site.FromHere(w, r, v, fields.Get("token")) {
		return
	}
	n := 0
	if err == nil {
		at := ui.Named(fields)
		n, err = d.long(r, v, messages.ImportDeadLetters.Name, at, "imported", func(ctx context.Context) (int, error) {
			done, err := messages.ImportDeadLetters.Do(ctx, d.Operations, v.Actor, messages.LettersFile{VHost: at.VHost, Queue: at.Name, Lines: file})
			return done.Imported, err
		})
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		err = fmt.Errorf("the file is larger than %s: use curfew dlq import", ui.Bytes(MaxUpload))
	}
	switch {
	case err != nil && n > 0:
		d.Site.Fail(w, r, http.StatusBadRequest, ui.Plural(n, "message")+" imported, then: "+err.Error())
		return
	case err != nil:
		d.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, URL(fields.Get("vhost"), fields.Get("name"), "")+"&imported="+strconv.Itoa(n), http.StatusSeeOther)
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
	return fields, nil, errors.New("choose an exported file")
}
