package audit

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	defaultLimit = 100
	maxLimit     = 10_000
	// exportTime is how long a client has to read the answer: a file of all records is large.
	exportTime = 30 * time.Minute
)

// Handler answers GET with the records that match its query parameters: vhost, queue,
// message_id, path, outcome, reason (expired, rejected, maxlen, delivery_limit; changed for
// what users did), user, from and to (RFC 3339), min_lateness (a duration such as
// 250ms), order (newest, the default, or oldest), limit (100; with format csv or jsonl
// all, oldest first) and format (json, jsonl, csv). JSON is an array. A parameter with a wrong
// value is answered with 400 and {"error","reason"}.
func (l *Log) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, format, err := parseQuery(r.URL.Query())
		if err != nil {
			refuse(w, err.Error())
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(exportTime)) // a writer without deadlines needs none
		records := Search(r.Context(), l.Dir, q)
		switch format {
		case "csv":
			attach(w, "text/csv; charset=utf-8", "audit.csv")
			err = WriteCSV(w, records)
		case "jsonl":
			attach(w, "application/jsonl", "audit.jsonl")
			err = WriteJSONLines(w, records)
		default:
			w.Header().Set("Content-Type", "application/json")
			err = writeArray(w, records)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the answer is incomplete
		}
	})
}

func attach(w http.ResponseWriter, kind, name string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", "attachment; filename="+name)
}

func refuse(w http.ResponseWriter, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":"bad_request","reason":%s}`, appendString(nil, reason))
}

var knownParameters = []string{
	"vhost", "queue", "message_id", "path", "outcome", "reason", "user", "from", "to", "min_lateness", "order", "limit", "format",
}

func parseQuery(v url.Values) (q Query, format string, err error) {
	for name := range v {
		if !slices.Contains(knownParameters, name) {
			return q, "", fmt.Errorf("unknown parameter %q", name)
		}
	}
	if q, err = QueryOf(v); err != nil {
		return q, "", err
	}
	if format, err = oneOf(v, "format", "json", "jsonl", "csv"); err != nil {
		return q, "", err
	}
	initial := "newest"
	if format != "json" {
		initial = "oldest"
	}
	order, err := oneOf(v, "order", initial, "newest", "oldest")
	if err != nil {
		return q, "", err
	}
	q.Newest = order == "newest"
	q.Limit, err = parseLimit(v, format)
	return q, format, err
}

// oneOf returns the parameter, which must be one of those allowed; the first is its
// default.
func oneOf(v url.Values, name string, allowed ...string) (string, error) {
	text := v.Get(name)
	if text == "" {
		return allowed[0], nil
	}
	if !slices.Contains(allowed, text) {
		return "", fmt.Errorf("%s: %q is not one of %q", name, text, allowed)
	}
	return text, nil
}

func parseLimit(v url.Values, format string) (int, error) {
	text := v.Get("limit")
	if text == "" && format != "json" {
		return 0, nil
	}
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fmt.Errorf("limit: %q is not between 1 and %d", text, maxLimit)
	}
	return n, nil
}
