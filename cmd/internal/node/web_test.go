package node

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWebGivesEachPartItsPaths(t *testing.T) {
	w := newWeb()
	for _, prefix := range []string{"/", "/api", "/api/curfew"} {
		w.parts[prefix] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Write([]byte(prefix + " " + r.URL.EscapedPath()))
		})
	}
	for path, part := range map[string]string{
		"/": "/", "/page": "/", "/apiary": "/", "/api": "/api", "/api/queues/%2F/q": "/api", "/api/curfewer": "/api",
		"/api/curfew": "/api/curfew", "/api/curfew/deadlines": "/api/curfew",
	} {
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		assert.Equal(t, part+" "+path, rec.Body.String())
	}
	bare := newWeb()
	bare.parts["/api"] = http.NotFoundHandler()
	rec := httptest.NewRecorder()
	bare.ServeHTTP(rec, httptest.NewRequest("GET", "/elsewhere", nil))
	assert.Equal(t, http.StatusNotFound, rec.Code)
}
