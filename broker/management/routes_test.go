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
	"curfew/broker/operate"
	"curfew/broker/server"
)

var allRoles = map[string]string{"administrator": access.Administrator, "monitoring": access.Monitoring, "policymaker": access.Policymaker, "management": access.Management, "nobody": ""}

// suffices is written again here, so that a change of the table shows.
var suffices = map[operate.Role][]string{
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
		require.NoError(t, b.Accounts.PutUser(u))
		require.NoError(t, b.Accounts.SetPermission(access.Permission{User: name, VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	}
	amqp := server.New(server.Options{Broker: b})
	ops := operate.New(operate.Options{Broker: b, Server: amqp})
	return New(Options{Broker: b, Server: amqp, Operations: ops, Node: "curfew@test", Version: "test"})
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
	for _, one := range a.Routes() {
		require.NotZero(t, one.Role(), one.Path)
		w := ask(h, "", one.Method, filled(one.Path))
		assert.Equal(t, http.StatusUnauthorized, w.Code, one.Path)
		assert.NotEmpty(t, w.Header().Get("WWW-Authenticate"), one.Path)
		for name := range allRoles {
			path := strings.Replace(filled(one.Path), "username/nothing", "username/"+name, 1) // one's own connections
			w := ask(h, name, one.Method, path)
			refused := w.Code == http.StatusUnauthorized
			if contains(suffices[one.Role()], name) {
				assert.False(t, refused, "%s %s as %s: %s", one.Method, one.Path, name, w.Body)
			} else {
				assert.True(t, refused, "%s %s as %s: %d %s", one.Method, one.Path, name, w.Code, w.Body)
				assert.Empty(t, w.Header().Get("WWW-Authenticate"))
			}
		}
	}
}

// TestChangesTakeTheRoleRabbitMQAsksFor pins which role changes what.
func TestChangesTakeTheRoleRabbitMQAsksFor(t *testing.T) {
	forAnyManager := []string{
		"/api/exchanges/", "/api/queues/", "/api/bindings/", "/api/connections/",
		"/api/curfew/deadletters/", "/api/curfew/queues/", "/api/curfew/replays/", "/api/curfew/runs/", "/api/curfew/deadlines/", "/api/curfew/locks/", "/api/curfew/retries/", "/api/curfew/scheduled/", // and the permissions on the queue
	}
	forPolicymakers := []string{"/api/policies/", "/api/parameters/", "/api/curfew/policies/"}
	begins := func(path string, with []string) bool {
		for _, prefix := range with {
			if strings.HasPrefix(path, prefix) {
				return true
			}
		}
		return false
	}
	for _, one := range (&API{}).Routes() {
		want := administrator
		switch {
		case one.Method == get:
			continue
		case begins(one.Path, forAnyManager):
			want = management
		case begins(one.Path, forPolicymakers):
			want = policymaker
		}
		assert.Equal(t, want, one.Role(), "%s %s", one.Method, one.Path)
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
	seen := map[string]bool{}
	for _, one := range a.Routes() {
		path := one.Path
		if seen[path] {
			continue
		}
		seen[path] = true
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
	_, _, err := a.b.PutVHost("", "other", broker.VHostMetadata{})
	require.NoError(t, err)
	h := a.Handler()
	for _, one := range a.Routes() {
		if !strings.Contains(one.Path, "{vhost}") || one.Role() == administrator {
			continue
		}
		path := strings.Replace(filled(one.Path), "%2F", "other", 1)
		w := ask(h, "management", one.Method, path)
		assert.Equal(t, http.StatusUnauthorized, w.Code, "%s %s", one.Method, path)
		if one.Method != get { // not even an administrator changes anything there
			w = ask(h, "administrator", one.Method, path)
			assert.Equal(t, http.StatusUnauthorized, w.Code, "%s %s", one.Method, path)
		}
	}
}
