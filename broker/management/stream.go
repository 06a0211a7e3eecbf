package management

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

// streamBytes is how much of an answer is gathered before it is written.
const streamBytes = 32 << 10

// stream writes an answer of any length piece by piece. Whoever has one holds a turn
// (takeTurn), which others may have while the client takes a piece.
type stream struct {
	api   *API
	w     http.ResponseWriter
	kind  string // media type
	buf   bytes.Buffer
	begun bool
	err   error // nothing more is written
}

func (q *request) stream() *stream { return &stream{api: q.api, w: q.w, kind: "application/json"} }

// list writes n values, which at makes.
func (s *stream) list(n int, at func(i int) any) {
	s.text("[")
	for i := range n {
		if i > 0 {
			s.text(",")
		}
		s.value(at(i))
	}
	s.text("]")
}

func (s *stream) text(t string) { s.buf.WriteString(t) }

// value writes any value.
func (s *stream) value(v any) {
	encoder := json.NewEncoder(&s.buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil && s.err == nil {
		s.err = err
	}
	s.buf.Truncate(s.buf.Len() - 1) // the line's end
	s.pass()
}

// pass writes what is gathered if that is enough.
func (s *stream) pass() {
	if s.buf.Len() >= streamBytes {
		s.flush()
	}
}

// flush writes what is gathered, while others have the turn.
func (s *stream) flush() {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", s.kind)
		s.w.WriteHeader(http.StatusOK)
	}
	if s.err == nil {
		s.api.endTurn()
		_, s.err = s.w.Write(s.buf.Bytes())
		s.api.retakeTurn()
	}
	s.buf.Reset()
}

// end writes the rest. An answer that is not whole does not end as if it were.
func (s *stream) end() {
	s.flush()
	if s.err != nil {
		panic(http.ErrAbortHandler)
	}
}

// turns is how many long answers are made at a time.
const turns = 2

// takeTurn waits until this one may be made.
func (a *API) takeTurn(ctx context.Context) error {
	select {
	case a.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *API) retakeTurn() { a.turns <- struct{}{} }
func (a *API) endTurn()    { <-a.turns }
