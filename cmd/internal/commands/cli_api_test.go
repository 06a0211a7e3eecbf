package commands

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

func TestAPICommandsWithoutAnAnswer(t *testing.T) {
	setenv(t, "CURFEW_HTTP_ADDR="+testenv.FreeAddr())
	code, _, errOut := runCommand(t, "policy", "list")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "is Curfew running there?")
	for text, args := range map[string][]string{
		`unknown command "sit"; curfew policy has clear, list, set`:        {"policy", "sit"},
		`unknown command "x"; curfew definitions has diff, export, import`: {"definitions", "x"},
		"curfew policy set takes <policy> <pattern> <definition>":          {"policy", "set", "a"},
		"definition: it is not a JSON object":                              {"policy", "set", "a", "b", "[]"},
		`-o: "xml" is invalid: want table or json`:                         {"policy", "list", "-o", "xml"},
		"curfew definitions import takes a file":                           {"definitions", "import"},
	} {
		code, _, errOut := runCommand(t, args...)
		assert.Equal(t, exitUsage, code, "%v", args)
		assert.Contains(t, errOut, text)
	}
}

// TestForeignAnswers: answers that are not the API's are shown as they are.
func TestForeignAnswers(t *testing.T) {
	setenv(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			http.Error(w, "<html>", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte("<html>"))
	})}
	go s.Serve(l)
	defer s.Close()
	code, _, errOut := runCommand(t, "policy", "list", "--url", "http://"+l.Addr().String())
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "unexpected answer")
	_, _, errOut = runCommand(t, "policy", "clear", "x", "--url", "http://"+l.Addr().String()+"/")
	assert.Contains(t, errOut, "502 Bad Gateway (HTTP 502)")
}
