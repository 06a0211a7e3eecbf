package management

import (
	"context"
	"io"
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

// export answers with a line of JSON for each message.
func export(r *rest.Request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	begun := false
	err = r.Operations.ExportDeadLetters(r.Context(), r.Actor, letters, func() io.Writer {
		begun = true
		r.W.Header().Set("Content-Type", "application/jsonl")
		return r.W
	})
	if err != nil && begun {
		panic(http.ErrAbortHandler) // the answer is incomplete
	}
	return err
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
