package commands

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/client"
	"curfew/cmd/internal/settings"
)

// api calls the management API of a running Curfew and prints the answers in the chosen format.
type api struct {
	*client.Client
	printer
	url, user, passwordFile string
}

// withAPI adds the flags of an api to a command and its subcommands.
func withAPI(cmd *cobra.Command) *api {
	a := &api{}
	a.Client = client.New(a.endpoint)
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "management API of the running Curfew (default: on CURFEW_HTTP_ADDR)")
	flags.StringVar(&a.user, "user", "", "its user (default CURFEW_USER)")
	flags.StringVar(&a.passwordFile, "password-file", "", "file with the user's password (default CURFEW_PASSWORD)")
	flags.StringVarP(&a.output, "output", "o", "table", "table or json")
	offers(cmd, "output", "table", "json")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return a.printer.check() }
	return a
}

// endpoint is the address of the API and the user that calls it, from the flags or else from the environment.
func (a *api) endpoint() (e client.Endpoint, err error) {
	if a.url == "" || a.user == "" || a.passwordFile == "" {
		s, err := settings.Load()
		if err != nil {
			return e, err
		}
		e = client.Endpoint{URL: "http://" + settings.Reachable(string(s.HTTPAddr)), User: string(s.User), Password: string(s.Password)}
	}
	if a.passwordFile != "" {
		text, err := os.ReadFile(a.passwordFile)
		if err != nil {
			return e, fmt.Errorf("read the password: %w", err)
		}
		e.Password = strings.TrimRight(string(text), "\r\n")
	}
	e.URL, e.User = strings.TrimRight(cmp.Or(a.url, e.URL), "/"), cmp.Or(a.user, e.User)
	if _, err := url.Parse(e.URL); err != nil {
		return e, usageError{fmt.Errorf("--url %q: %w", a.url, err)}
	}
	return e, nil
}
