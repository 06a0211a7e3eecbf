package management

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/server"
)

var allRoles = map[string]string{"administrator": access.Administrator, "monitoring": access.Monitoring, "policymaker": access.Policymaker, "management": access.Management, "nobody": ""}

// suffices is written again here, so that a change of the table shows.
var suffices = map[role][]string{
	management:    {"administrator", "monitoring", "policymaker", "management"},
	policymaker:   {"administrator", "policymaker"},
	monitor:       {"administrator", "monitoring"},
	administrator: {"administrator"},
}

func newTestAPI(t *testing.T) *API {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	for name, tag := range allRoles {
		u := access.User{Name: name, Tags: []string{tag}}
		u.SetPassword("p")
		require.NoError(t, b.PutUser(u))
		require.NoError(t, b.SetPermission(access.Permission{User: name, VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	}
	return New(Options{Broker: b, Server: server.New(server.Options{Broker: b}), Node: "curfew@test", Version: "test"})
}

func ask(a http.Handler, user, method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	if user != "" {
		r.SetBasicAuth(user, "p")
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// filled is a path of a route with names of nothing for its parameters.
func filled(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		switch {
		case part == "{vhost}":
			parts[i] = "%2F"
		case part == "{kind}":
			parts[i] = "q"
		case strings.HasPrefix(part, "{"):
			parts[i] = "nothing"
		}
	}
	return strings.Join(parts, "/")
}

// TestEveryRouteRefusesEveryLowerRole goes through the whole table: without
// credentials 401 with a challenge, with too low a role 401 without one, and with one
// that suffices anything but that.
func TestEveryRouteRefusesEveryLowerRole(t *testing.T) {
	a := newTestAPI(t)
	h := a.Handler()
	for _, one := range a.routes() {
		require.NotEqual(t, anybody, one.need, one.path)
		w := ask(h, "", one.method, filled(one.path))
		assert.Equal(t, http.StatusUnauthorized, w.Code, one.path)
		assert.NotEmpty(t, w.Header().Get("WWW-Authenticate"), one.path)
		for name := range allRoles {
			path := strings.Replace(filled(one.path), "username/nothing", "username/"+name, 1) // one's own connections
			w := ask(h, name, one.method, path)
			refused := w.Code == http.StatusUnauthorized
			if contains(suffices[one.need], name) {
				assert.False(t, refused, "%s %s as %s: %s", one.method, one.path, name, w.Body)
			} else {
				assert.True(t, refused, "%s %s as %s: %d %s", one.method, one.path, name, w.Code, w.Body)
				assert.Empty(t, w.Header().Get("WWW-Authenticate"))
			}
		}
	}
}

// TestChangesTakeTheRoleRabbitMQAsksFor pins which role changes what.
func TestChangesTakeTheRoleRabbitMQAsksFor(t *testing.T) {
	forAnyManager := []string{
		"/api/exchanges/", "/api/queues/", "/api/bindings/", "/api/connections/",
		"/api/curfew/deadletters/", "/api/curfew/replays/", "/api/curfew/deadlines/", "/api/curfew/locks/", // and the permissions on the queue
	}
	forMonitors := []string{"/api/auth/attempts/"}
	forPolicymakers := []string{"/api/policies/", "/api/parameters/", "/api/curfew/policies/"}
	begins := func(path string, with []string) bool {
		for _, prefix := range with {
			if strings.HasPrefix(path, prefix) {
				return true
			}
		}
		return false
	}
	for _, one := range (&API{}).routes() {
		want := administrator
		switch {
		case one.method == get || strings.HasSuffix(one.path, "/actions"):
			continue
		case begins(one.path, forAnyManager):
			want = management
		case begins(one.path, forMonitors):
			want = monitor
		case begins(one.path, forPolicymakers):
			want = policymaker
		}
		assert.Equal(t, want, one.need, "%s %s", one.method, one.path)
	}
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

func TestEveryPathAnswersOptionsAndRefusesOtherMethods(t *testing.T) {
	a := newTestAPI(t)
	h := a.Handler()
	for _, path := range a.router.paths {
		w := ask(h, "", http.MethodOptions, filled(path))
		assert.Equal(t, http.StatusOK, w.Code, path)
		allow := w.Header().Get("Allow")
		assert.Contains(t, allow, "OPTIONS")
		w = ask(h, "administrator", http.MethodPatch, filled(path))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
		assert.Equal(t, allow, w.Header().Get("Allow"))
		assert.Contains(t, w.Body.String(), `"error":"method_not_allowed"`)
	}
}

func TestVHostsAreClosedToThoseWithoutPermissions(t *testing.T) {
	a := newTestAPI(t)
	_, _, err := a.b.PutVHost("other", broker.VHostMetadata{})
	require.NoError(t, err)
	h := a.Handler()
	for _, one := range a.routes() {
		if !strings.Contains(one.path, "{vhost}") || one.need == administrator {
			continue
		}
		path := strings.Replace(filled(one.path), "%2F", "other", 1)
		w := ask(h, "management", one.method, path)
		assert.Equal(t, http.StatusUnauthorized, w.Code, "%s %s", one.method, path)
		if one.method != get { // not even an administrator changes anything there
			w = ask(h, "administrator", one.method, path)
			assert.Equal(t, http.StatusUnauthorized, w.Code, "%s %s", one.method, path)
		}
	}
}
