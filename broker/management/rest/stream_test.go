package rest_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/management/rest"
)

// gone is a client that has closed its connection.
type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) { return 0, errors.New("closed") }

// TestNothingIsMadeForAClientThatIsGone: a list of any length ends with the first piece that cannot be written.
func TestNothingIsMadeForAClientThatIsGone(t *testing.T) {
	s := rest.Stream{Turns: make(rest.Turns, 1), W: gone{httptest.NewRecorder()}}
	s.Turns <- struct{}{}
	made := 0
	s.List(1_000_000, func(i int) any {
		made++
		return i
	})
	assert.Less(t, made, 10_000)
	assert.PanicsWithValue(t, http.ErrAbortHandler, s.End)
}
