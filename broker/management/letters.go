package management

import (
	"context"
	"io"
	"net/http"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
)

const lettersPath = "/api/curfew/deadletters/{vhost}/{queue}/"

// letterRoutes are those of requests about dead letters whose bodies or answers are not an operation's.
var letterRoutes = []rest.Route{
	exportRoute(),
	{Method: http.MethodPost, Path: lettersPath + "import", Op: messages.ImportDeadLetters.Name, Handle: importFile, Body: maxImport, Doc: rest.Doc{
		ID: "importDeadLetters", Summary: "Publish the lines of an exported file into the queue", Body: "", BodyKind: jsonLines, Answer: messages.Imported{}, Accepted: operate.Run{},
		Text: "It stops at a line that cannot be read (400), or when publishers are blocked (503). Then `imported` is the number of messages before that line. " +
			"A client that prefers not to wait gets 202 when the whole file has been read."}},
}

const (
	jsonLines = "application/jsonl"
	maxImport = 4 << 30 // of an imported file, in bytes; larger files must be imported in parts
)

// exportRoute answers with a line of JSON for each message.
func exportRoute() rest.Route {
	route := rest.Served(messages.ExportDeadLetters.Op, http.MethodPost+" "+lettersPath+"export", func(r *rest.Request, request any) error {
		letters, begun := request.(messages.DeadLetters), false
		letters.Begin = func() io.Writer {
			begun = true
			r.W.Header().Set("Content-Type", jsonLines)
			return r.W
		}
		_, err := messages.ExportDeadLetters.Do(r.HTTP.Context(), r.Operations, r.Actor, letters)
		if err != nil && begun {
			panic(http.ErrAbortHandler) // the answer is incomplete
		}
		return err
	})
	route.Doc.Answer, route.Doc.Kinds = "", []string{jsonLines}
	return route
}

// importFile publishes the lines of the body into the queue, as they come.
func importFile(r *rest.Request) error {
	r.TakeTime()
	at, upload := r.QueueNamed(), r.Upload()
	return r.Run(messages.ImportDeadLetters.Name, at, func(ctx context.Context) (any, error) {
		return messages.ImportDeadLetters.Do(ctx, r.Operations, r.Actor, messages.LettersFile{VHost: at.VHost, Queue: at.Name, Lines: upload(ctx)})
	}, r.Answer)
}
