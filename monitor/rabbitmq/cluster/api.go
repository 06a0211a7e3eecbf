package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	apiLimit     = 30 * time.Second // for one answer
	largestReply = 256 << 20
)

// api is RabbitMQ's management API. Only GET requests are made.
type api struct {
	base, user, password string
	client               http.Client
}

// newAPI takes the credentials of the AMQP address if the URL has none. Its parameter
// cacertfile names the authorities that are trusted instead of the system's.
func newAPI(text string, address Address) (*api, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the address of the management API: %w", withoutURL(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address of the management API has to be http:// or https:// and a host")
	}
	amqp, err := amqp091.ParseURI(address.nodes[0])
	if err != nil {
		return nil, withoutURL(err)
	}
	a := &api{user: amqp.Username, password: amqp.Password, client: http.Client{Timeout: apiLimit}}
	if file := u.Query().Get("cacertfile"); file != "" {
		roots, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("the management API's cacertfile: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("the management API's cacertfile %s holds no certificate (PEM)", file)
		}
		a.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	a.base = strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/api") + "/api/"
	return a, nil
}

// denied is an answer that the user may not have.
type denied struct{ path, reason string }

func (d *denied) Error() string {
	return fmt.Sprintf("the management API refuses %s: %s", d.path, d.reason)
}

// get reads one answer. The path is escaped already. Error: *denied when the user may not ask.
func (a *api) get(ctx context.Context, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return err
	}
	req.SetBasicAuth(a.user, a.password)
	res, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the management API: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, largestReply))
	if err != nil {
		return fmt.Errorf("read the management API: %w", err)
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		var said struct{ Reason string }
		if err := json.Unmarshal(body, &said); err != nil || said.Reason == "" {
			said.Reason = res.Status
		}
		return &denied{path: "/api/" + path, reason: strings.TrimSpace(said.Reason)}
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("the management API answers %s to /api/%s", res.Status, path)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the management API's answer to /api/%s is not what it should be: %w", path, err)
	}
	return nil
}
