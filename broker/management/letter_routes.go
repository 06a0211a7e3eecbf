package management

import (
	"net/http"

	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// letterRoutes are those of requests about dead letters.
func letterRoutes() []rest.Route {
	return []rest.Route{
		{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/groups", Op: operate.SearchDeadLetters, Handle: group, Doc: groupsDoc},
		{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/search", Op: operate.SearchDeadLetters, Handle: search, Doc: searchDoc},
		{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/export", Op: operate.ExportDeadLetters, Handle: export, Doc: exportDoc},
		{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/import", Op: operate.ImportDeadLetters, Handle: importFile, Body: maxImport, Doc: importDoc},
		{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/draft", Op: operate.SearchDeadLetters, Handle: makeDraft, Doc: draftDoc},
		{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/resend", Op: operate.ResendDeadLetter, Handle: resend, Body: maxDraft, Weight: rest.MessageWeight, Doc: resendDoc},
		{Method: http.MethodGet, Path: "/api/curfew/deadletters/{vhost}/{queue}/messages/{seq}", Op: operate.SearchDeadLetters, Handle: getLetter, Doc: getDoc},
	}
}

var (
	groupsDoc = rest.Doc{ID: "groupDeadLetters", Summary: "Dead letters by what they died of, the largest group first", Text: "Only ready messages are counted. Only `filter` and `by_type` of the body are used.",
		Body: deadletters.Query{}, Answer: []deadletters.Group{}}
	searchDoc = rest.Doc{ID: "searchDeadLetters", Summary: "Dead letters that a filter matches", Text: "Send `next` of the answer as `after` of the next request; it is 0 at the end.",
		Body: deadletters.Query{}, Answer: deadletters.Page{}}
	exportDoc = rest.Doc{ID: "exportDeadLetters", Summary: "The dead letters that a filter matches, a line of JSON for each", Body: deadletters.Query{}, Answer: "",
		Text: "A line has the complete message. If the answer is incomplete, the connection breaks.", Kinds: []string{"application/jsonl"}}
	importDoc = rest.Doc{ID: "importDeadLetters", Summary: "Publish the lines of an exported file into the queue", Body: "", BodyKind: "application/jsonl", Answer: importedCount{}, Accepted: operate.Run{},
		Text: "It stops at a line that cannot be read (400), or when publishers are blocked (503). Then `imported` is the number of messages before that line. " +
			"A client that prefers not to wait gets 202 when the whole file has been read."}
	draftDoc = rest.Doc{ID: "draftDeadLetter", Summary: "What a replay would publish of one dead letter, for a person to change", Text: "Only `seq` of the body is used.",
		Body: draft{}, Answer: draft{}}
	resendDoc = rest.Doc{ID: "resendDeadLetter", Summary: "Publish a changed draft, and take the dead letter out of its queue", Body: draft{}, Answer: deadletters.Review{}, Empty: true,
		Text: "204: it is done. With `dry_run` nothing is done, and the answer 200 says what would happen. 409: the message stays where it is, or has changed."}
	getDoc = rest.Doc{ID: "getDeadLetter", Summary: "One message with its whole body, up to 16 MiB", Answer: deadletters.Whole{},
		Text: "`unpacked` has the body without its content encoding, if it has one."}
)
