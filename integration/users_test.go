package integration

import (
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"curfew/broker/amqp"
	"curfew/integration/testenv"
)

// user runs `curfew user` with the given standard input against c, as guest.
func (c *curfew) user(stdin string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(mustBinary(c.t, release), append([]string{"user", "--url", c.http}, args...)...)
	cmd.Env = environment(nil)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("curfew user %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// request asks the management API as a user and returns the status and the answer.
func (c *curfew) request(user, password, method, path, body string) (int, string) {
	c.t.Helper()
	return request(c.t, c.http, user, password, method, path, body)
}

// request asks the management API at a URL.
func request(t testing.TB, base, user, password, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	check(t, err)
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp.StatusCode, string(answer)
}

// TestUsersOutliveAKill: users, passwords, permissions and virtual hosts are there again after kill -9, made by the command line and the
// management API.
func TestUsersOutliveAKill(t *testing.T) {
	t.Parallel()
	dir := "DATA_DIR=" + t.TempDir()
	first := startCurfew(t, dir)
	first.user("secret\n", "add", "app", "--tags", "monitoring")
	if status, answer := first.request("guest", "guest", http.MethodPut, "/api/vhosts/v", "{}"); status != http.StatusCreated {
		t.Fatalf("PUT vhost: %d %s", status, answer)
	}
	first.user("", "permissions", "set", "app", "^q", "^(q|amq.default$)", "^(q|amq.direct$)", "--vhost", "v")
	first.user("", "add", "gone", "--no-password")
	first.user("", "delete", "gone")
	first.kill()

	second := startCurfew(t, dir)
	if list := second.user("", "list"); !strings.Contains(list, "app    monitoring") || strings.Contains(list, "gone") {
		t.Errorf("the users are\n%s", list)
	}
	url := userURL(second.url, "app") + "/v"
	if got := login(t, url); got != "in" {
		t.Errorf("app: %s", got)
	}
	_, err := openChannel(t, dial(t, url)).QueueDeclare("other", false, false, false, false, nil)
	const refused = `Exception (403) Reason: "ACCESS_REFUSED - access to queue 'other' in vhost 'v' refused for user 'app'"`
	if err == nil || err.Error() != refused {
		t.Errorf("got %v, want %s", err, refused)
	}
	second.user("changed\n", "passwd", "app")
	if got := login(t, url); got == "in" {
		t.Error("the old password still lets app in")
	}
	if status, answer := second.request("app", "changed", http.MethodGet, "/api/overview", ""); status != http.StatusOK {
		t.Errorf("GET overview: %d %s", status, answer)
	}
}

// TestSecretsAreNotTold: passwords that were right, wrong, set or updated stand in no log at debug, in no metric, in no answer and not in
// `curfew config`.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	const canary = "canary-7d1f"
	c := startCurfew(t, "LOG_LEVEL=debug", "USER=boss", "PASSWORD="+canary+"-configured")
	c.request("boss", canary+"-configured", http.MethodPut, "/api/users/app", `{"password":"`+canary+`-set","tags":"administrator"}`)
	for _, password := range []string{canary + "-configured", canary + "-wrong"} {
		for _, mechanism := range []struct{ name, response string }{
			{"PLAIN", "\x00boss\x00" + password},
			{"PLAIN", password}, // cannot be read
			{"AMQPLAIN", string(amqp.AppendTable(nil, amqp.Table{"LOGIN": "boss", "PASSWORD": password})[4:])},
		} {
			r := dialRaw(t, c.url).greet()
			r.send(0, &amqp.ConnectionStartOk{Mechanism: mechanism.name, Response: []byte(mechanism.response)})
			if m, err := r.method(); err == nil && amqp.IDOf(m) == amqp.ConnectionTuneID {
				r.send(0, &amqp.ConnectionTuneOk{}, &amqp.ConnectionOpen{VirtualHost: "/"}, &amqp.ConnectionUpdateSecret{NewSecret: []byte(canary + "-updated"), Reason: "rotation"})
				r.expectMethod("connection.open-ok")
				r.expectMethod("connection.update-secret-ok")
			}
		}
	}
	var told []string
	for _, path := range []string{"/api/users", "/api/definitions", "/api/overview", "/api/connections", "/api/whoami"} {
		_, answer := c.request("app", canary+"-set", http.MethodGet, path, "")
		told = append(told, answer)
	}
	c.request("boss", canary+"-wrong", http.MethodGet, "/api/whoami", "")
	metrics, err := http.Get(c.ops + "/metrics")
	check(t, err)
	defer metrics.Body.Close()
	text, err := io.ReadAll(metrics.Body)
	check(t, err)
	config := exec.Command(mustBinary(t, release), "config")
	config.Env = environment([]string{"PASSWORD=" + canary + "-configured"})
	shown, err := config.CombinedOutput()
	check(t, err)
	told = append(told, string(text), string(shown), c.log.String())
	if !strings.Contains(c.log.String(), "login refused") || !strings.Contains(c.log.String(), "secret updated") {
		t.Error("the log has nothing of what it must not tell")
	}
	for _, where := range told {
		if at := strings.Index(where, canary); at >= 0 {
			t.Errorf("told: ...%s", where[max(0, at-200):min(len(where), at+50)])
		}
	}
}

// TestTLSWithPika: another language's client over TLS, with a password and with a certificate; the management API over TLS.
func TestTLSWithPika(t *testing.T) {
	t.Parallel()
	needs(t, "python3-pika", "/usr/bin/python3", "-c", "import pika")
	ca, addr, httpsAddr := testenv.NewAuthority(t), testenv.FreeAddr(), testenv.FreeAddr()
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	c := startCurfew(t, "AMQPS_ADDR="+addr, "HTTPS_ADDR="+httpsAddr, "TLS_CERT="+cert, "TLS_KEY="+key, "TLS_CLIENT_CA="+ca.CA, "TLS_CLIENT_AUTH=request", "TLS_LOGIN_FROM=common_name")
	c.user("", "add", "app", "--no-password")
	c.user("", "permissions", "set", "app", ".*", ".*", ".*")
	cmd := exec.Command(mustBinary(t, release), "user", "list", "--url", "https://"+httpsAddr)
	cmd.Env = append(environment(nil), "SSL_CERT_FILE="+ca.CA)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "app") {
		t.Errorf("curfew user list over TLS: %v\n%s", err, out)
	}
	own := t.TempDir()
	clientCert, clientKey := ca.Write(t, own, pkix.Name{CommonName: "app"})
	host, port, err := net.SplitHostPort(addr)
	check(t, err)
	for _, identity := range [][]string{nil, {clientCert, clientKey}} {
		out, err := exec.Command("/usr/bin/python3", append([]string{"clients/pika/secure.py", host, port, ca.CA}, identity...)...).CombinedOutput()
		if err != nil || string(out) != "over TLS\n" {
			t.Errorf("%d files: %v\n%s", len(identity), err, out)
		}
	}
}
