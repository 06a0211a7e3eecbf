package management

import (
	"context"
	"net/http"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// maxImport bounds an imported file, in bytes; larger files must be imported in parts.
const maxImport = 4 << 30

// importedCount is how many messages were published.
type importedCount struct {
	Imported int `json:"imported"`
}

// download sends the headers of the answer before the first line.
type download struct {
	http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (d *download) Write(b []byte) (int, error) {
	if !d.begun {
		d.begun = true
		d.Header().Set("Content-Type", "application/jsonl")
	}
	return d.ResponseWriter.Write(b)
}

// export answers with a line of JSON for each message.
func export(r *rest.Request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	file := &download{ResponseWriter: r.W}
	switch err := r.Operations.ExportDeadLetters(r.Context(), r.Actor, letters, file); {
	case err != nil && !file.begun:
		return err
	case err != nil:
		panic(http.ErrAbortHandler) // the answer is incomplete
	case !file.begun:
		_, _ = file.Write(nil) // an empty file; the client may be gone
	}
	return nil
}

// importFile publishes the lines of the body into the queue, as they come.
func importFile(r *rest.Request) error {
	r.TakeTime()
	at, lines := r.QueueNamed(), r.Upload()
	return r.Run(operate.ImportDeadLetters, at, func(ctx context.Context) (any, error) {
		n, err := r.Operations.ImportDeadLetters(ctx, r.Actor, at, lines)
		return importedCount{n}, err
	}, r.Answer)
}
