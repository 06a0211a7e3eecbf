package cli

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/client"
	"curfew/cmd/internal/contexts"
	"curfew/cmd/internal/settings"
	"curfew/cmd/internal/table"
)

// API calls the management API of a running Curfew and prints the answers in the chosen format.
type API struct {
	*client.Client
	table.Printer
	VHost string // "" unless the command has --vhost

	url, user, passwordFile, context string
	found                            *client.Endpoint // nil: not looked for yet
}

// WithAPI adds the flags of an API to a command and its subcommands.
func WithAPI(cmd *cobra.Command) *API {
	a := &API{}
	a.Client = client.New(a.Endpoint)
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "management API of the running Curfew (default: on CURFEW_HTTP_ADDR)")
	flags.StringVar(&a.user, "user", "", "its user (default CURFEW_USER)")
	flags.StringVar(&a.passwordFile, "password-file", "", "file with the user's password (default CURFEW_PASSWORD)")
	flags.StringVar(&a.context, "context", "", "a context, as curfew context list shows them (default CURFEW_CONTEXT)")
	flags.StringVarP(&a.Output, "output", "o", "table", "table or json")
	flags.StringVar(&a.Color, "color", "auto", "colors in tables: auto (on a terminal, unless NO_COLOR is set), always or never")
	OffersBy(cmd, "context", Contexts)
	Offers(cmd, "output", table.Outputs...)
	Offers(cmd, "color", table.Colors...)
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.Check(); err != nil {
			return Usage(err)
		}
		a.Fit(cmd.OutOrStdout(), os.Getenv("NO_COLOR"))
		if errOut := cmd.ErrOrStderr(); table.OnTerminal(errOut) {
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
		fmt.Fprintf(w, "\r%s  %d of %d", table.Bar(float64(done)/float64(total)), done, total)
	default:
		fmt.Fprint(w, "\rit is running in the background")
	}
}

// WithVHost is WithAPI and the flag --vhost.
func WithVHost(cmd *cobra.Command) *API {
	a := WithAPI(cmd)
	cmd.PersistentFlags().StringVar(&a.VHost, "vhost", "/", "virtual host")
	OffersBy(cmd, "vhost", a.VHosts)
	return a
}

// Endpoint is the address of the API and the user that calls it, from a context or the environment. Flags override both.
func (a *API) Endpoint() (e client.Endpoint, err error) {
	if a.found != nil {
		return *a.found, nil
	}
	if a.url == "" || a.user == "" || a.passwordFile == "" {
		if e, err = a.named(); err != nil {
			return e, err
		}
	}
	if a.passwordFile != "" {
		if e.Password, err = contexts.ReadPassword(a.passwordFile); err != nil {
			return e, err
		}
	}
	e.URL, e.User = strings.TrimRight(cmp.Or(a.url, e.URL), "/"), cmp.Or(a.user, e.User)
	if _, err := url.Parse(e.URL); err != nil {
		return e, Usagef("--url %q: %w", a.url, err)
	}
	a.found = &e
	return e, nil
}

// contextVariable names the context that commands use. It is read only here: serve does not use contexts.
const contextVariable = "CURFEW_CONTEXT"

// Precedence explains which Curfew a command calls. The address, the user and the password all come from one place, so that a password is never
// sent to an address that it is not for.
const Precedence = `A command calls the Curfew of the first of these that is given:
  1. --context NAME
  2. the variable CURFEW_CONTEXT
  3. the variables CURFEW_HTTP_ADDR, CURFEW_USER, CURFEW_PASSWORD or CURFEW_PASSWORD_FILE, if one is set, or --url
  4. the context that "curfew context use" chose
  5. http://127.0.0.1:15672 as guest
The name "default" stands for 3 and 5. --url, --user and --password-file replace a single part of what is found.`

// named finds the API by a context or, without one, by the environment.
func (a *API) named() (client.Endpoint, error) {
	name := cmp.Or(a.context, os.Getenv(contextVariable))
	if name == contexts.Default {
		return fromEnvironment()
	}
	if name == "" && (a.url != "" || settings.NamesAPI()) {
		return fromEnvironment()
	}
	path, err := contexts.Path()
	if err != nil && name == "" {
		return fromEnvironment() // there is no home folder, so there is no chosen context
	}
	var all *contexts.Contexts
	if err == nil {
		all, err = contexts.Load(path)
	}
	if err != nil {
		return client.Endpoint{}, Usage(err)
	}
	if name = cmp.Or(name, all.Current); name == "" {
		return fromEnvironment()
	}
	one, err := all.Find(name)
	if err != nil {
		return client.Endpoint{}, Usage(err)
	}
	e := client.Endpoint{URL: one.URL, User: one.User, From: fmt.Sprintf("context %q", name)}
	if a.passwordFile == "" {
		e.Password, err = one.Password()
	}
	return e, err
}

func fromEnvironment() (client.Endpoint, error) {
	s, err := settings.Load()
	return client.Endpoint{URL: "http://" + settings.Reachable(string(s.HTTPAddr)), User: string(s.User), Password: string(s.Password)}, err
}

// Contexts completes the name of a context.
func Contexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	path, err := contexts.Path()
	if err == nil {
		if all, err := contexts.Load(path); err == nil {
			return all.Names(), cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
