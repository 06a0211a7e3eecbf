package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/access"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
)

func userCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "user",
		Short: "Add, change, delete and list the users of a running Curfew and what they may do",
		RunE:  cli.Group,
	}
	u := userCommands{cli.WithAPI(c)}
	c.AddCommand(u.add(), u.passwd(), u.delete(), u.list(), u.permissions())
	return c
}

type userCommands struct{ *cli.API }

// userBody is a user as the API takes it. The password is hashed here: only the hash is sent.
type userBody struct {
	Tags         string `json:"tags"`
	PasswordHash []byte `json:"password_hash"`
	Algorithm    string `json:"hashing_algorithm,omitempty"`
}

func (u *userCommands) add() *cobra.Command {
	var tags, file string
	var none bool
	c := &cobra.Command{
		Use:   "add <name>",
		Short: "Add a user, or replace one; the password is read from standard input or a file",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := userBody{Tags: tags}
			if !none {
				if err := body.readPassword(cmd.InOrStdin(), file); err != nil {
					return err
				}
			}
			return u.Call(cmd.Context(), http.MethodPut, client.Path("users", args[0]), body, nil)
		},
	}
	c.Flags().StringVar(&tags, "tags", "", "management, policymaker, monitoring, administrator, impersonator or others, separated by commas")
	c.Flags().StringVar(&file, "new-password-file", "", "file with the user's password (default standard input)")
	c.Flags().BoolVar(&none, "no-password", false, "allow login only by certificate, not by password")
	return c
}

func (u *userCommands) passwd() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "passwd <name>",
		Short: "Change a user's password; it is read from standard input or a file",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var is access.User
			if err := u.Call(cmd.Context(), http.MethodGet, client.Path("users", args[0]), nil, &is); err != nil {
				return err
			}
			body := userBody{Tags: strings.Join(is.Tags, ",")}
			if err := body.readPassword(cmd.InOrStdin(), file); err != nil {
				return err
			}
			return u.Call(cmd.Context(), http.MethodPut, client.Path("users", args[0]), body, nil)
		},
	}
	c.Flags().StringVar(&file, "new-password-file", "", "file with the new password (default standard input)")
	return c
}

// readPassword reads the first line of the file or, if file is "", of stdin.
func (b *userBody) readPassword(stdin io.Reader, file string) error {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("read the password: %w", err)
		}
		defer f.Close()
		stdin = f
	}
	line, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return cli.Usagef("the password is empty")
	}
	b.PasswordHash, b.Algorithm = access.Hash(password), access.SHA256
	return nil
}

func (u *userCommands) delete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete <name>",
		Short: "Delete a user and close the user's connections",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return u.Call(cmd.Context(), http.MethodDelete, client.Path("users", args[0]), nil, nil)
		},
	}
}

// userView is a user without the password's hash.
type userView struct {
	Name   string        `json:"name"`
	Tags   []string      `json:"tags"`
	Limits access.Limits `json:"limits"`
}

func (u *userCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the users",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []userView{}
			if err := u.Call(cmd.Context(), http.MethodGet, client.Path("users"), nil, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, one := range list {
				rows = append(rows, []string{one.Name, strings.Join(one.Tags, ",")})
			}
			return u.Print(cmd.OutOrStdout(), list, []string{"NAME", "TAGS"}, rows)
		},
	}
}

func (u *userCommands) permissions() *cobra.Command {
	c := &cobra.Command{
		Use:   "permissions",
		Short: "Set, clear and list what users may do in a virtual host",
		RunE:  cli.Group,
	}
	c.PersistentFlags().StringVar(&u.VHost, "vhost", "/", "virtual host")
	cli.OffersBy(c, "vhost", u.VHosts)
	c.AddCommand(&cobra.Command{
		Use:     "set <name> <configure> <write> <read>",
		Short:   "Give a user access to the virtual host: regular expressions over the names of exchanges and queues",
		Example: `  curfew user permissions set app '^app\.' '^(app\.|amq\.default$)' '^app\.'`,
		Args:    cli.Exactly(4, "a name and three regular expressions"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := access.Permission{User: args[0], VHost: u.VHost, Configure: args[1], Write: args[2], Read: args[3]}
			return u.Call(cmd.Context(), http.MethodPut, client.Path("permissions", u.VHost, p.User), p, nil)
		},
	}, &cobra.Command{
		Use:   "clear <name>",
		Short: "Remove a user's access to the virtual host",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return u.Call(cmd.Context(), http.MethodDelete, client.Path("permissions", u.VHost, args[0]), nil, nil)
		},
	}, u.listPermissions())
	return c
}

func (u *userCommands) listPermissions() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the permissions in all virtual hosts",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []access.Permission{}
			if err := u.Call(cmd.Context(), http.MethodGet, client.Path("permissions"), nil, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, p := range list {
				rows = append(rows, []string{p.VHost, p.User, p.Configure, p.Write, p.Read})
			}
			return u.Print(cmd.OutOrStdout(), list, []string{"VHOST", "USER", "CONFIGURE", "WRITE", "READ"}, rows)
		},
	}
}
