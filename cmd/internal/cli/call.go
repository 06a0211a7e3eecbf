package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// timeout is for one request. The server answers one that takes longer than waits with a run, which the client follows.
const (
	timeout = 2 * time.Minute
	waits   = "respond-async, wait=5"
)

// Endpoint is the address of a management API, without a slash at its end, and the user that calls it.
type Endpoint struct {
	URL, User, Password string
	Transport           http.RoundTripper // nil: the default
}

// Client calls the management API of a running Curfew.
type Client struct {
	// At is called before each request to find out where to send it.
	At func() (Endpoint, error)
	// Progress is called while a request goes on in the background, and at its end with done -1; nil: nothing is.
	Progress func(done, total int)
	// Note is called with what the server says about an answer besides; nil: nothing is.
	Note func(text string)

	now time.Time // what a manual clock showed in the last answer; zero: it is not manual
}

// Now is the time that the instants of the last answer count from.
func (c *Client) Now() time.Time {
	if c.now.IsZero() {
		return time.Now()
	}
	return c.now
}

// Error is an answer with a status other than 2xx.
type Error struct {
	Status int
	Kind   string
	Reason string
	// If the caller has to confirm a number of messages: the number, and the position up to which they were counted.
	Matched  int
	Position string

	asked Endpoint
	path  string // of the API, escaped
}

// tagOf is the tag that a user lacks, by the reason for which the API refused.
var tagOf = map[string]string{"Not management user": "management", "Not monitor user": "monitoring", "Not administrator user": "administrator"}

func (e *Error) Error() string {
	if e.Status == http.StatusNotFound && e.Reason == "Not Found" {
		return notFound(e.path)
	}
	text := strings.TrimSpace(e.Reason)
	if e.asked.URL != "" { // without a URL the error is a command's, not the API's
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	switch tag := tagOf[e.Reason]; {
	case e.Status != http.StatusUnauthorized:
	case tag != "":
		text += "; it takes the tag " + tag + ", which an administrator gives with curfew user tags USER " + tag
	default:
		text += "; check --user and --password-file, or CURFEW_USER and CURFEW_PASSWORD, and the user's permissions"
	}
	return text
}

// notFound says what there is not: a path ends in its kind, its virtual host and its name, and may go on.
func notFound(path string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/api/"), "curfew/"), "/")
	if parts[0] == "rabbitmq" {
		return "this Curfew runs its own broker, and is beside no RabbitMQ (HTTP 404); name another one with --url"
	}
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	if len(parts) < 3 || parts[0] == "bindings" {
		return "Not Found (HTTP 404); check the name and --vhost"
	}
	return fmt.Sprintf("%q was not found in virtual host %q (HTTP 404); check the name and --vhost", parts[2], parts[1])
}

// Call makes a request. path is escaped already. send is encoded as JSON; nil sends no body. The answer is
// decoded into receive unless that is nil. The error is an *Error if the status is not 2xx.
func (c *Client) Call(ctx context.Context, method, path string, send, receive any) error {
	var body io.Reader = http.NoBody
	if send != nil {
		text, err := json.Marshal(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	answer, err := c.Fetch(ctx, method, path, body)
	if err != nil || receive == nil {
		return err
	}
	if err := Decode(answer, receive); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Decode reads the JSON of an answer.
func Decode(answer []byte, receive any) error {
	if err := json.Unmarshal(answer, receive); err != nil {
		return fmt.Errorf("unexpected answer: %w", err)
	}
	return nil
}

// Fetch makes a request and returns the answer as it is.
func (c *Client) Fetch(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	var answer bytes.Buffer
	err := c.Copy(ctx, timeout, method, path, body, &answer)
	return answer.Bytes(), err
}

// Stream posts send as JSON and copies the answer to out. The answer may be large and slow.
func (c *Client) Stream(ctx context.Context, path string, send any, out io.Writer) error {
	text, err := json.Marshal(send)
	if err != nil {
		return err
	}
	return c.Copy(ctx, 0, http.MethodPost, path, bytes.NewReader(text), out)
}

// errEmptyName: a part of a path is empty, which would make it the path of something else.
var errEmptyName = errors.New("a name is empty: check the variables of your script, and --vhost")

// Copy makes a request with what is in body, and copies the answer to out if the status is 2xx. Both may be large. limit is for all of it; 0: none.
func (c *Client) Copy(ctx context.Context, limit time.Duration, method, path string, body io.Reader, out io.Writer) error {
	if named, _, _ := strings.Cut(path, "?"); strings.Contains(named+"/", "//") {
		return errEmptyName
	}
	to, err := c.At()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, to.URL+path, body)
	if err != nil {
		return err
	}
	req.SetBasicAuth(to.User, to.Password)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPost {
		req.Header.Set("Prefer", waits)
	}
	resp, err := (&http.Client{Timeout: limit, Transport: to.Transport}).Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // it repeats the URL, which may hold a password
		}
		return fmt.Errorf("no answer from %s: %w; %s", req.URL.Redacted(), err, advice(err))
	}
	defer resp.Body.Close()
	if ms, err := strconv.ParseInt(resp.Header.Get("Curfew-Now"), 10, 64); err == nil {
		c.now = time.UnixMilli(ms)
	}
	if note := resp.Header.Get("Curfew-Note"); note != "" && c.Note != nil {
		c.Note(note)
	}
	if resp.StatusCode/100 != 2 {
		answer, _ := io.ReadAll(resp.Body) // as much of the answer as could be read
		return newError(resp, answer, to)
	}
	if resp.Header.Get("Preference-Applied") != "" {
		return c.follow(ctx, resp.Header.Get("Location"), out)
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("read the answer of %s: %w", req.URL.Redacted(), err)
	}
	return nil
}

// advice is what to do about a request that was not answered.
func advice(err error) string {
	var failed net.Error
	switch {
	case isA[x509.HostnameError](err):
		return "call it by a name that is in its certificate, with --url or CURFEW_URL"
	case isA[*tls.CertificateVerificationError](err):
		return "name the file of the authority that signed its certificate, with --ca-file or CURFEW_CA_FILE"
	case isA[*net.DNSError](err):
		return "check the name of the host in --url or CURFEW_URL"
	case errors.As(err, &failed) && failed.Timeout():
		return "check the address in --url or CURFEW_URL, and the firewalls on the way"
	}
	return "is Curfew running there? If it listens elsewhere, name its address with --url or CURFEW_URL"
}

func isA[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}

func newError(resp *http.Response, answer []byte, asked Endpoint) error {
	var fields struct {
		Error    string `json:"error"`
		Reason   any    `json:"reason"`
		Matched  int    `json:"matched"`
		Position string `json:"position"`
	}
	if json.Unmarshal(answer, &fields) != nil || fields.Reason == nil {
		return &Error{Status: resp.StatusCode, Reason: resp.Status, asked: asked, path: resp.Request.URL.EscapedPath()}
	}
	return &Error{resp.StatusCode, fields.Error, html.UnescapeString(fmt.Sprint(fields.Reason)), fields.Matched, fields.Position, asked, resp.Request.URL.EscapedPath()}
}

// Path joins parts of a path of the API, each escaped: a virtual host's name may be a slash.
func Path(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return "/api/" + strings.Join(escaped, "/")
}
