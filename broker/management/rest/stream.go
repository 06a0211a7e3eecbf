package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// streamBytes is how much of an answer is gathered before it is written.
const streamBytes = 32 << 10

// Stream writes an answer of any length piece by piece. Its owner holds a turn (Turns.Take), and
// gives it to others while the client reads a piece.
type Stream struct {
	Turns Turns
	W     http.ResponseWriter
	Kind  string // media type
	Buf   bytes.Buffer
	begun bool
	err   error // nothing more is written
}

// Stream answers in JSON, and lets the request take long.
func (r *Request) Stream() *Stream {
	r.TakeTime()
	return &Stream{Turns: r.server.Turns, W: r.W, Kind: "application/json"}
}

// List writes n values, which at makes. It ends early if the client is gone.
func (s *Stream) List(n int, at func(i int) any) {
	s.Text("[")
	for i := 0; i < n && s.err == nil; i++ {
		if i > 0 {
			s.Text(",")
		}
		s.Value(at(i))
	}
	s.Text("]")
}

// Text writes text as it is.
func (s *Stream) Text(t string) { s.Buf.WriteString(t) }

// Value writes any value.
func (s *Stream) Value(v any) {
	encoder := json.NewEncoder(&s.Buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil && s.err == nil {
		s.err = err
	}
	s.Buf.Truncate(s.Buf.Len() - 1) // the line's end
	s.Pass()
}

// Pass writes what is gathered if that is enough for a piece.
func (s *Stream) Pass() {
	if s.Buf.Len() >= streamBytes {
		s.flush()
	}
}

// flush writes what is gathered, while others have the turn.
func (s *Stream) flush() {
	if !s.begun {
		s.begun = true
		s.W.Header().Set("Content-Type", s.Kind)
		s.W.WriteHeader(http.StatusOK)
	}
	if s.err == nil {
		s.Turns.End()
		_, s.err = s.W.Write(s.Buf.Bytes())
		s.Turns <- struct{}{}
	}
	s.Buf.Reset()
}

// End writes the rest. An incomplete answer does not end like a complete one.
func (s *Stream) End() {
	s.flush()
	if s.err != nil {
		panic(http.ErrAbortHandler)
	}
}

// Fail ends the answer because of an error; it is incomplete.
func (s *Stream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}
