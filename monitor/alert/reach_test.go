package alert

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReach: what an operator can have meant is connected to, and nothing else.
func TestReach(t *testing.T) {
	for _, c := range []struct {
		host, ip string
		plain    bool
		allow    string
		want     error
	}{
		{"hooks.slack.com", "44.1.2.3", false, "", nil},
		{"hooks.slack.com", "44.1.2.3", true, "", errPlain},
		{"hooks.slack.com", "44.1.2.3", true, "hooks.slack.com", nil},
		{"hooks.slack.com", "44.1.2.3", true, "44.1.0.0/16", nil},
		{"127.0.0.1", "127.0.0.1", true, "", nil},
		{"localhost", "127.0.0.1", true, "", nil},
		{"localhost", "::1", true, "", nil},
		{"alertmanager", "10.96.0.7", true, "", nil},
		{"alertmanager.monitoring.svc", "10.96.0.7", true, "", nil},
		{"alertmanager.monitoring.svc.cluster.local", "10.96.0.7", true, "", nil},
		{"alertmanager.monitoring.svc.example.com", "10.96.0.7", true, "", nil},
		{"metadata.google.internal", "169.254.169.254", true, "", errNever},
		{"169.254.169.254", "169.254.169.254", true, "", errNever},
		{"169.254.169.254", "169.254.169.254", true, "metadata, 169.254.169.254", nil},
		{"169.254.169.254", "::ffff:169.254.169.254", true, "", errNever},
		{"printer", "fe80::1", true, "", errNever},
		{"printer", "fe80::1", true, "printer", errNever},
		{"all", "224.0.0.1", true, "", errNever},
		{"any", "0.0.0.0", true, "", errNever},
		{"any", "::", true, "", errNever},
		{"rebound.example.com", "127.0.0.1", false, "", errInside},
		{"rebound.example.com", "::ffff:127.0.0.1", false, "", errInside},
		{"rebound.example.com", "10.0.0.1", false, "", errInside},
		{"rebound.example.com", "172.16.9.9", false, "", errInside},
		{"rebound.example.com", "192.168.1.1", false, "", errInside},
		{"rebound.example.com", "100.64.0.1", false, "", errInside},
		{"rebound.example.com", "fd00::1", false, "", errInside},
		{"Alerts.Corp.Example.", "10.0.0.1", false, "alerts.corp.example", nil},
		{"alerts.corp.example", "10.0.0.1", false, "10.0.0.0/8", nil},
		{"alerts.corp.example", "192.168.0.1", false, "10.0.0.0/8", errInside},
	} {
		r, err := newReach(nonEmpty(c.allow))
		require.NoError(t, err)
		require.Equal(t, c.want, r.permit(c.host, netip.MustParseAddr(c.ip), c.plain), "%+v", c)
	}
	for _, bad := range []string{"http://h", "h:80", "a b", "u@h", " ", "10.0.0.0/99"} {
		require.Error(t, CheckAllow([]string{bad}), bad)
	}
}

func nonEmpty(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// TestReachHoldsWhenConnecting: the name is judged by where it leads, before a byte is
// sent there.
func TestReachHoldsWhenConnecting(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		client := reach{}.client(&url.URL{Scheme: "http", Host: host})
		answer, err := client.Get("http://" + host + ":" + u.Port())
		require.NoError(t, err, host)
		answer.Body.Close()
		client.CloseIdleConnections()
	}
	require.True(t, asked)
	refused := reach{}.client(&url.URL{Scheme: "http", Host: "169.254.169.254"})
	_, err = refused.Get("http://169.254.169.254/latest/meta-data/")
	require.ErrorIs(t, err, errNever)
}
