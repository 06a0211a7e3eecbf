package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// apiTimeout is for one request to a running Curfew; an import of many queues is the slowest.
const apiTimeout = 2 * time.Minute

// api is the management API of a running Curfew, as commands ask it, and the form of what they print.
type api struct {
	url, user, passwordFile string
	output                  string
	client                  http.Client
}

// withAPI gives a command and those below it the flags of an api.
func withAPI(cmd *cobra.Command) *api {
	a := &api{client: http.Client{Timeout: apiTimeout}}
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "management API of the running Curfew (default: on CURFEW_HTTP_ADDR)")
	flags.StringVar(&a.user, "user", "", "its user (default CURFEW_USER)")
	flags.StringVar(&a.passwordFile, "password-file", "", "file with the user's password (default CURFEW_PASSWORD)")
	flags.StringVarP(&a.output, "output", "o", "table", "table or json")
	offers(cmd, "output", "table", "json")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.output != "table" && a.output != "json" {
			return usageError{fmt.Errorf("-o takes table or json, not %q", a.output)}
		}
		return nil
	}
	return a
}

// site is where the API is and who asks: by the flags, else by the environment.
type site struct{ url, user, password string }

func (a *api) site() (s site, err error) {
	if a.url == "" || a.user == "" || a.passwordFile == "" {
		c, err := loadConfig()
		if err != nil {
			return s, err
		}
		s = site{"http://" + reachable(string(c.HTTPAddr)), string(c.User), string(c.Password)}
	}
	if a.passwordFile != "" {
		text, err := os.ReadFile(a.passwordFile)
		if err != nil {
			return s, fmt.Errorf("read the password: %w", err)
		}
		s.password = strings.TrimRight(string(text), "\r\n")
	}
	s.url, s.user = strings.TrimRight(cmp.Or(a.url, s.url), "/"), cmp.Or(a.user, s.user)
	return s, nil
}

// refusal is an answer that says no.
type refusal struct {
	status  int
	kind    string
	reason  string
	matched int // messages, where a number has to be confirmed
}

func (r *refusal) Error() string {
	if r.status == http.StatusNotFound && r.reason == "Not Found" {
		return "Not Found (HTTP 404); check the name and --vhost"
	}
	said := fmt.Sprintf("%s (HTTP %d)", strings.TrimSpace(r.reason), r.status)
	if r.status == http.StatusUnauthorized {
		said += "; check --user and --password-file (else CURFEW_USER and CURFEW_PASSWORD), and what that user may do"
	}
	return said
}

// call makes a request: path is escaped already, send is its body as JSON, nil for none; the answer is
// read into receive unless that is nil. Error: *refusal for an answer that is none of 2xx.
func (a *api) call(ctx context.Context, method, path string, send, receive any) error {
	var body io.Reader = http.NoBody
	if send != nil {
		text, err := json.Marshal(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	answer, err := a.do(ctx, method, path, body)
	if err != nil || receive == nil {
		return err
	}
	if err := decode(answer, receive); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func decode(answer []byte, receive any) error {
	if err := json.Unmarshal(answer, receive); err != nil {
		return fmt.Errorf("the answer is not what it should be: %w", err)
	}
	return nil
}

func (a *api) do(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	var answer bytes.Buffer
	err := a.exchange(ctx, &a.client, method, path, body, &answer)
	return answer.Bytes(), err
}

// stream posts send and copies the answer, which may be large and take long, to out.
func (a *api) stream(ctx context.Context, path string, send any, out io.Writer) error {
	text, err := json.Marshal(send)
	if err != nil {
		return err
	}
	return a.exchange(ctx, &http.Client{}, http.MethodPost, path, bytes.NewReader(text), out)
}

// download copies an answer, which may be large and take long, to out.
func (a *api) download(ctx context.Context, path string, out io.Writer) error {
	return a.exchange(ctx, &http.Client{}, http.MethodGet, path, http.NoBody, out)
}

// streamFrom posts what in has, which may be large.
func (a *api) streamFrom(ctx context.Context, path string, in io.Reader, out io.Writer) error {
	return a.exchange(ctx, &http.Client{}, http.MethodPost, path, in, out)
}

// exchange makes a request and copies an answer that says yes to out.
func (a *api) exchange(ctx context.Context, client *http.Client, method, path string, body io.Reader, out io.Writer) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return usageError{fmt.Errorf("--url %q: %w", a.url, err)}
	}
	req.SetBasicAuth(s.user, s.password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // it repeats the URL, which may hold a password
		}
		return fmt.Errorf("no answer from %s: %w; is Curfew running there?", req.URL.Redacted(), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		answer, _ := io.ReadAll(resp.Body) // what came of it is told with the status
		return refused(resp, answer)
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("read the answer of %s: %w", req.URL.Redacted(), err)
	}
	return nil
}

func refused(resp *http.Response, answer []byte) error {
	var said struct {
		Error   string `json:"error"`
		Reason  any    `json:"reason"`
		Matched int    `json:"matched"`
	}
	if json.Unmarshal(answer, &said) != nil || said.Reason == nil {
		return &refusal{status: resp.StatusCode, reason: resp.Status}
	}
	return &refusal{resp.StatusCode, said.Error, html.UnescapeString(fmt.Sprint(said.Reason)), said.Matched}
}

// path joins parts of a path, each escaped: a virtual host's name may be a slash.
func path(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return "/api/" + strings.Join(escaped, "/")
}

// print writes v as JSON, or as a table: its head, then rows.
func (a *api) print(w io.Writer, v any, head []string, rows [][]string) error {
	if a.output == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(v)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(head, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = visible(cell, "")
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}
