package commands

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/contexts"
	"curfew/cmd/internal/table"
)

// contextCommands manage the file of contexts.
type contextCommands struct{ path string }

func contextCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "context",
		Short: "Name the Curfews that you work with, and choose the one that commands call",
		Long: `A context is an address of a management API and the user to call it as, with a name. Contexts are in the file curfew/contexts.yaml of
your configuration folder, which only you can read. It has no passwords: it says which file or command they come from.

` + cli.Precedence,
		Example: `  curfew context add prod --url https://curfew.example.org:15672 --user ops --password-command 'pass show curfew/prod'
  curfew context use prod
  curfew status --context default`,
		RunE: cli.Group,
	}
	k := &contextCommands{}
	c.PersistentPreRunE = func(*cobra.Command, []string) (err error) {
		k.path, err = contexts.Path()
		return err
	}
	c.AddCommand(k.add(), k.use(), k.list(), k.remove())
	return c
}

// change loads the contexts, changes and saves them.
func (k *contextCommands) change(with func(*contexts.Contexts) error) error {
	all, err := contexts.Load(k.path)
	if err == nil {
		err = with(all)
	}
	if err != nil {
		return cli.Usage(err)
	}
	return all.Save(k.path)
}

func (k *contextCommands) add() *cobra.Command {
	var one contexts.Context
	var use bool
	c := &cobra.Command{
		Use:   "add <name>",
		Short: "Add a context, or replace the one with that name",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if one.PasswordFile != "" {
				if one.PasswordFile, err = filepath.Abs(one.PasswordFile); err != nil {
					return err
				}
			}
			return k.change(func(all *contexts.Contexts) error {
				if err := all.Set(args[0], one); err != nil || !use {
					return err
				}
				return all.Use(args[0])
			})
		},
	}
	f := c.Flags()
	f.StringVar(&one.URL, "url", "", "address of the management API, such as https://curfew.example.org:15672")
	f.StringVar(&one.User, "user", "guest", "the user to call it as")
	f.StringVar(&one.PasswordFile, "password-file", "", "file whose first line is the password")
	f.StringVar(&one.PasswordCommand, "password-command", "", "command for sh that prints the password, such as 'pass show curfew/prod'")
	f.BoolVar(&use, "use", false, "also choose it")
	return c
}

func (k *contextCommands) use() *cobra.Command {
	return &cobra.Command{
		Use:   "use <name>",
		Short: "Choose the context that commands use; the name default chooses none",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(_ *cobra.Command, args []string) error {
			return k.change(func(all *contexts.Contexts) error { return all.Use(args[0]) })
		},
		ValidArgsFunction: cli.Arguments(cli.Contexts),
	}
}

func (k *contextCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove <name>",
		Short: "Remove a context",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(_ *cobra.Command, args []string) error {
			return k.change(func(all *contexts.Contexts) error { return all.Remove(args[0]) })
		},
		ValidArgsFunction: cli.Arguments(cli.Contexts),
	}
}

func (k *contextCommands) list() *cobra.Command {
	var p table.Printer
	c := &cobra.Command{
		Use:   "list",
		Short: "List the contexts; * is the chosen one",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.Check(); err != nil {
				return cli.Usage(err)
			}
			all, err := contexts.Load(k.path)
			if err != nil {
				return cli.Usage(err)
			}
			var rows [][]string
			for _, name := range all.Names() {
				one, chosen, password := all.ByName[name], "", ""
				if name == cmp.Or(all.Current, contexts.Default) {
					chosen = "*"
				}
				switch {
				case name == contexts.Default:
					one = contexts.Context{URL: "(CURFEW_HTTP_ADDR)", User: "(CURFEW_USER)"}
					password = "(CURFEW_PASSWORD)"
				case one.PasswordFile != "":
					password = "in " + one.PasswordFile
				case one.PasswordCommand != "":
					password = fmt.Sprintf("from %q", one.PasswordCommand)
				}
				rows = append(rows, []string{chosen, name, one.URL, one.User, cli.OrDash(password)})
			}
			p.Fit(cmd.OutOrStdout(), "")
			return p.Print(cmd.OutOrStdout(), all, []string{"", "NAME", "URL", "USER", "PASSWORD?"}, rows)
		},
	}
	c.Flags().StringVarP(&p.Output, "output", "o", "table", "table or json")
	cli.Offers(c, "output", table.Outputs...)
	return c
}
