package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/client"
	"curfew/cmd/internal/settings"
	"curfew/cmd/internal/table"
)

// API calls the management API of a running Curfew and prints the answers in the chosen format.
type API struct {
	*client.Client
	table.Printer
	VHost string // "" unless the command has --vhost

	url, user, passwordFile string
}

// WithAPI adds the flags of an API to a command and its subcommands.
func WithAPI(cmd *cobra.Command) *API {
	a := &API{}
	a.Client = client.New(a.Endpoint)
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "management API of the running Curfew (default: on CURFEW_HTTP_ADDR)")
	flags.StringVar(&a.user, "user", "", "its user (default CURFEW_USER)")
	flags.StringVar(&a.passwordFile, "password-file", "", "file with the user's password (default CURFEW_PASSWORD)")
	flags.StringVarP(&a.Output, "output", "o", "table", "table or json")
	flags.StringVar(&a.Color, "color", "auto", "colors in tables: auto (on a terminal, unless NO_COLOR is set), always or never")
	Offers(cmd, "output", table.Outputs...)
	Offers(cmd, "color", table.Colors...)
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.Check(); err != nil {
			return Usage(err)
		}
		a.Fit(cmd.OutOrStdout(), os.Getenv("NO_COLOR"))
		return nil
	}
	return a
}

// WithVHost is WithAPI and the flag --vhost.
func WithVHost(cmd *cobra.Command) *API {
	a := WithAPI(cmd)
	cmd.PersistentFlags().StringVar(&a.VHost, "vhost", "/", "virtual host")
	OffersBy(cmd, "vhost", a.VHosts)
	return a
}

// Endpoint is the address of the API and the user that calls it, from the flags or else from the environment.
func (a *API) Endpoint() (e client.Endpoint, err error) {
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
		return e, Usagef("--url %q: %w", a.url, err)
	}
	return e, nil
}
