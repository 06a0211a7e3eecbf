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

// TestWhichCurfewIsCalled: a flag comes before the environment, and that before this machine.
func TestWhichCurfewIsCalled(t *testing.T) {
	setenv(t)
	prod, stage, local := startAsked(t), startAsked(t), startAsked(t)
	file := filepath.Join(t.TempDir(), "stage.password")
	require.NoError(t, os.WriteFile(file, []byte("of stage\n"), 0o600))
	called := func(to *asked, user, password string, args ...string) {
		t.Helper()
		prod.user, stage.user, local.user = "", "", ""
		code, _, errOut := runCommand(t, append([]string{"policy", "list"}, args...)...)
		require.Zero(t, code, errOut)
		for _, one := range []*asked{prod, stage, local} {
			if one != to {
				assert.Empty(t, one.user, "%v", args)
			}
		}
		assert.Equal(t, user+":"+password, to.user+":"+to.password, "%v", args)
	}
	called(local, "guest", "guest", "--url", local.URL)
	called(stage, "dev", "of stage", "--url", stage.URL+"/", "--user", "dev", "--password-file", file)
	t.Setenv("CURFEW_HTTP_ADDR", local.Listener.Addr().String())
	t.Setenv("CURFEW_USER", "ops")
	t.Setenv("CURFEW_PASSWORD", "of local")
	called(local, "ops", "of local")
	t.Setenv("CURFEW_URL", prod.URL)
	called(prod, "ops", "of local")
	called(stage, "ops", "of stage", "--url", stage.URL, "--password-file", file)

	code, _, errOut := runCommand(t, "policy", "list", "--url", "curfew.example.org")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, `"curfew.example.org" is not the address of a management API`)
}
