package commands

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asked is a server that remembers who called it last.
type asked struct {
	*httptest.Server
	user, password string
}

func startAsked(t *testing.T) *asked {
	a := &asked{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.user, a.password, _ = r.BasicAuth()
		_, _ = w.Write([]byte("[]"))
	}))
	t.Cleanup(a.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return a
}

// TestWhichCurfewIsCalled: a flag comes before the environment, that before the chosen context, and that before this machine. A password
// never goes to another address than it is for.
func TestWhichCurfewIsCalled(t *testing.T) {
	setenv(t)
	prod, stage, local := startAsked(t), startAsked(t), startAsked(t)
	file := filepath.Join(t.TempDir(), "stage.password")
	require.NoError(t, os.WriteFile(file, []byte("of stage\n"), 0o600))
	run := func(args ...string) string {
		t.Helper()
		code, out, errOut := runCommand(t, args...)
		require.Zero(t, code, errOut)
		return out
	}
	run("context", "add", "prod", "--url", prod.URL, "--user", "ops", "--password-command", "echo of prod", "--use")
	run("context", "add", "stage", "--url", stage.URL, "--user", "dev", "--password-file", file)
	called := func(to *asked, user, password string, args ...string) {
		t.Helper()
		prod.user, stage.user, local.user = "", "", ""
		run(append([]string{"policy", "list"}, args...)...)
		for _, one := range []*asked{prod, stage, local} {
			if one != to {
				assert.Empty(t, one.user, "%v", args)
			}
		}
		assert.Equal(t, user+":"+password, to.user+":"+to.password, "%v", args)
	}
	called(prod, "ops", "of prod")
	called(stage, "dev", "of stage", "--context", "stage")
	called(local, "guest", "guest", "--url", local.URL)
	called(local, "ops", "of prod", "--url", local.URL, "--context", "prod") // asked for in so many words
	t.Setenv("CURFEW_HTTP_ADDR", local.Listener.Addr().String())
	t.Setenv("CURFEW_PASSWORD", "of local")
	called(local, "guest", "of local")
	called(local, "guest", "of local", "--context", "default")
	called(prod, "ops", "of prod", "--context", "prod")
	t.Setenv("CURFEW_CONTEXT", "stage")
	called(stage, "dev", "of stage")
	called(prod, "ops", "of prod", "--context", "prod")

	list := run("context", "list")
	assert.Regexp(t, `(?m)^\* +prod +`, list)
	for _, secret := range []string{"of stage", "of local"} {
		assert.NotContains(t, list+run("context", "list", "-o", "json"), secret)
	}
	run("context", "use", "stage")
	run("context", "remove", "stage")
	assert.Regexp(t, `(?m)^\* +default +`, run("context", "list"))
	code, _, errOut := runCommand(t, "policy", "list")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, `unknown context "stage": want one of default, prod`)
	prod.Close()
	_, _, errOut = runCommand(t, "policy", "list", "--context", "prod")
	assert.Contains(t, errOut, `(context "prod")`)
	assert.NotContains(t, errOut, "of prod")
	_, out, _ := runCommand(t, "__complete", "status", "--context", "")
	assert.Equal(t, "default\nprod\n:4\n", out)
}
