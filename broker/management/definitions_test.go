package management_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDefinitionsFromAPageAndToAFile: a form's file is imported and the page goes on where
// it wants; a download has the name that is asked for.
func TestDefinitionsFromAPageAndToAFile(t *testing.T) {
	x := start(t)
	form := func(fields ...string) reply {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for _, field := range fields {
			require.NoError(t, w.WriteField(field, "/#/import"))
		}
		h := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="d.json"`}}
		part, err := w.CreatePart(h)
		require.NoError(t, err)
		_, err = part.Write([]byte("\ufeff" + `{"vhosts":[{"name":"v"}]}`))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		req, err := http.NewRequest("POST", x.http.URL+"/api/definitions", &b)
		require.NoError(t, err)
		req.Header.Set("Content-Type", w.FormDataContentType())
		req.SetBasicAuth("guest", "guest")
		return x.do(req)
	}
	form().is(204, "")
	assert.Equal(t, "/#/import", form("redirect").is(303, "").header.Get("Location"))
	x.ask("PUT", "/api/queues/v/q", `{}`).is(201, "")

	assert.Equal(t, "attachment; filename=v.json", x.ask("GET", "/api/definitions/v?download=v.json", nil).is(200, "").header.Get("Content-Disposition"))
	for _, name := range []string{"a%20b", "a%3Bb", "a%22b"} {
		x.ask("GET", "/api/definitions?download="+name, nil).is(400, "")
	}
}
