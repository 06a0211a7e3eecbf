package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/settings"
	"curfew/monitor/printable"
)

// API calls the management API of a running Curfew and prints the answers in the chosen format.
type API struct {
	*Client
	Printer
	VHost string // "" unless the command has --vhost

	url, user, passwordFile, caFile string
	found                           *Endpoint // nil: not looked for yet
}

// WithAPI adds the flags of an API to a command and its subcommands.
func WithAPI(cmd *cobra.Command) *API {
	a := &API{}
	a.Client = &Client{At: a.Endpoint}
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "management API of the running Curfew (default: CURFEW_URL, or on CURFEW_HTTP_ADDR)")
	flags.StringVar(&a.user, "user", "", "its user (default CURFEW_USER)")
	flags.StringVar(&a.passwordFile, "password-file", "", "file with the user's password (default CURFEW_PASSWORD)")
	flags.StringVar(&a.caFile, "ca-file", "", "file with the certificate authorities to trust, PEM (default CURFEW_CA_FILE, or those of the system)")
	flags.StringVarP(&a.Output, "output", "o", "table", "table or json")
	flags.StringVar(&a.Color, "color", "auto", "colors in tables: auto (on a terminal, unless NO_COLOR is set), always or never")
	Offers(cmd, "output", Outputs...)
	Offers(cmd, "color", Colors...)
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.Check(); err != nil {
			return Usage(err)
		}
		a.Fit(cmd.OutOrStdout(), os.Getenv("NO_COLOR"))
		errOut, noted := cmd.ErrOrStderr(), false
		a.Note = func(text string) {
			if !noted {
				fmt.Fprintln(errOut, printable.Text(text, ""))
			}
			noted = true
		}
		if OnTerminal(errOut) {
			a.Progress = func(done, total int) { drawProgress(errOut, done, total) }
		}
		return nil
	}
	return a
}

// drawProgress draws how far a request that goes on in the background is; done is -1 at its end.
func drawProgress(w io.Writer, done, total int) {
	switch {
	case done < 0:
		fmt.Fprintln(w)
	case total > 0:
		fmt.Fprintf(w, "\r%s  %d of %d", Bar(float64(done)/float64(total)), done, total)
	default:
		fmt.Fprint(w, "\rit is running in the background")
	}
}

// WithVHost is WithAPI and the flag --vhost.
func WithVHost(cmd *cobra.Command) *API {
	a := WithAPI(cmd)
	cmd.PersistentFlags().StringVar(&a.VHost, "vhost", "/", "virtual host")
	OffersBy(cmd, "vhost", a.Completing("vhost"))
	return a
}

// Endpoint is the address of the API and the user that calls it: from flags or else from the environment.
func (a *API) Endpoint() (e Endpoint, err error) {
	if a.found != nil {
		return *a.found, nil
	}
	if a.url == "" || a.user == "" || a.passwordFile == "" {
		s, err := settings.Load()
		if e = (Endpoint{URL: os.Getenv(urlVariable), User: s.User, Password: s.Password}); err != nil {
			return e, err
		}
		if e.URL == "" {
			e.URL = "http://" + settings.Reachable(s.HTTPAddr)
		}
	}
	if a.passwordFile != "" {
		if e.Password, err = readPassword(a.passwordFile); err != nil {
			return e, err
		}
	}
	e.URL, e.User = strings.TrimRight(cmp.Or(a.url, e.URL), "/"), cmp.Or(a.user, e.User)
	if u, err := url.Parse(e.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return e, Usagef("%q is not the address of a management API: want one such as https://curfew.example.org:15672 in --url or %s", e.URL, urlVariable)
	}
	if file := cmp.Or(a.caFile, os.Getenv("CURFEW_CA_FILE")); file != "" {
		if e.Transport, err = trusting(file); err != nil {
			return e, err
		}
	}
	a.found = &e
	return e, nil
}

// trusting is how to call a server whose certificate is signed by an authority in the file.
func trusting(file string) (http.RoundTripper, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authorities: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, Usagef("--ca-file or CURFEW_CA_FILE: %s has no certificate in PEM", file)
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}}, nil
}

// urlVariable names the address that commands call. It is read only here: serve does not use it.
const urlVariable = "CURFEW_URL"

// Precedence explains which Curfew a command calls.
const Precedence = `A command calls the management API at the first of these that is given:
  1. --url
  2. the variable CURFEW_URL, such as https://curfew.example.org:15672
  3. the variable CURFEW_HTTP_ADDR
  4. http://127.0.0.1:15672
The user is --user, with the password in the file --password-file. Without them it is CURFEW_USER, with CURFEW_PASSWORD or
CURFEW_PASSWORD_FILE; without these, guest. If the certificate of an https address is not signed by an authority that the system trusts,
--ca-file or CURFEW_CA_FILE names a file with that authority, or with the certificate itself.`

// readPassword reads a password from a file: its first line.
func readPassword(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimRight(line, "\r"), nil
}
