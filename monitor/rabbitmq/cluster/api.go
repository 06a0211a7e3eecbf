package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	apiLimit     = 30 * time.Second // for one answer
	apiSilence   = 10 * time.Second // until the answer begins, if there is another node to ask
	largestReply = 256 << 20
)

// api is RabbitMQ's management API, on one node or several, each of which answers for the whole cluster. It only makes GET
// requests. It is safe for concurrent use.
type api struct {
	nodes []*apiNode

	mu   sync.Mutex
	next int // the node that is asked first: the last one that answered
}

type apiNode struct {
	base, user, password string
	client               http.Client
}

// apiURLs returns the URLs in a text such as http://user:password@a:15672,b:15672 or http://a:15672,http://b:15672.
func apiURLs(text string) (list []*url.URL, err error) {
	for _, part := range splitURLs(text) {
		urls, err := splitHosts(part, "http")
		if err != nil {
			return nil, fmt.Errorf("the address of the management API %w", err)
		}
		for _, one := range urls {
			u, err := url.Parse(one)
			if err != nil {
				return nil, fmt.Errorf("the address of the management API: %w", withoutURL(err))
			}
			if u.Hostname() == "" {
				return nil, errors.New("the address of the management API has an empty host name")
			}
			list = append(list, u)
		}
	}
	return list, nil
}

// APINodes lists the nodes of an Options.APIURL as URLs without user, password, path and parameters.
func APINodes(text string) (list []string, err error) {
	urls, err := apiURLs(text)
	for _, u := range urls {
		list = append(list, u.Scheme+"://"+u.Host)
	}
	return list, err
}

// newAPI takes the credentials of the AMQP address where a URL has none. The parameter
// cacertfile names the authorities that are trusted instead of the system's.
func newAPI(text string, address Address) (*api, error) {
	urls, err := apiURLs(text)
	if err != nil {
		return nil, err
	}
	amqp, err := amqp091.ParseURI(address.nodes[0])
	if err != nil {
		return nil, withoutURL(err)
	}
	a := &api{}
	for _, u := range urls {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DialContext = (&net.Dialer{Timeout: dialLimit}).DialContext
		if len(urls) > 1 {
			transport.ResponseHeaderTimeout = apiSilence
		}
		n := &apiNode{user: amqp.Username, password: amqp.Password, client: http.Client{Timeout: apiLimit, Transport: transport}}
		if file := u.Query().Get("cacertfile"); file != "" {
			roots, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("the management API's cacertfile: %w", err)
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(roots) {
				return nil, fmt.Errorf("the management API's cacertfile %s holds no certificate (PEM)", file)
			}
			transport.TLSClientConfig = &tls.Config{RootCAs: pool}
		}
		if u.User != nil {
			n.user = u.User.Username()
			n.password, _ = u.User.Password()
			u.User = nil
		}
		u.RawQuery, u.Fragment = "", ""
		n.base = strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/api") + "/api/"
		a.nodes = append(a.nodes, n)
	}
	return a, nil
}

// denied is the error for an answer that the user may not see.
type denied struct{ path, reason string }

func (d *denied) Error() string {
	return fmt.Sprintf("the management API refuses %s: %s", d.path, d.reason)
}

// get reads one answer, from the first node that gives one. The path is escaped already. Error: *denied when the user
// may not ask; then all nodes would refuse.
func (a *api) get(ctx context.Context, path string, out any) error {
	a.mu.Lock()
	first := a.next
	a.mu.Unlock()
	var errs []error
	for i := range a.nodes {
		at := (first + i) % len(a.nodes)
		err := a.nodes[at].get(ctx, path, out)
		if _, refused := errors.AsType[*denied](err); err == nil || refused {
			a.mu.Lock()
			a.next = at
			a.mu.Unlock()
			return err
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (a *apiNode) get(ctx context.Context, path string, out any) error {
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
		return fmt.Errorf("cannot read the management API's answer to /api/%s: %w", path, err)
	}
	return nil
}

// list reads an answer that is a list. An entry that cannot be read is left out, so that it does not spoil the others; odd has a sentence for each.
func list[T any](ctx context.Context, a *api, path string) (all []T, odd []string, err error) {
	var entries []json.RawMessage
	if err := a.get(ctx, path, &entries); err != nil {
		return nil, nil, err
	}
	all, odd = entriesOf[T](entries)
	return all, odd, nil
}

func entriesOf[T any](entries []json.RawMessage) (all []T, odd []string) {
	for _, entry := range entries {
		var one T
		if err := json.Unmarshal(entry, &one); err != nil {
			var named struct{ Name any }
			_ = json.Unmarshal(entry, &named) // without a name, the sentence says so
			odd = append(odd, fmt.Sprintf("the entry of %v cannot be read: %v", named.Name, err))
			continue
		}
		all = append(all, one)
	}
	return all, odd
}

// object is an object of the API. RabbitMQ writes one without members as an empty list.
type object[T any] struct{ value T }

// UnmarshalJSON implements json.Unmarshaler.
func (o *object[T]) UnmarshalJSON(text []byte) error {
	var none T
	o.value = none
	if string(text) == "[]" || string(text) == "null" || string(text) == `""` {
		return nil
	}
	return json.Unmarshal(text, &o.value)
}
