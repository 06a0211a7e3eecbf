package commands

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"curfew/broker/definitions"
	"curfew/cmd/internal/cli"
)

func definitionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "definitions",
		Short: "Export, import and compare the definitions of a running Curfew, in RabbitMQ's format",
		RunE:  cli.Group,
	}
	d := definitionsCommands{cli.WithAPI(c)}
	c.PersistentFlags().StringVar(&d.VHost, "vhost", "", "only the definitions in this virtual host")
	cli.OffersBy(c, "vhost", d.Completing("vhost"))
	c.AddCommand(d.export(), d.load(), d.diff())
	return c
}

type definitionsCommands struct{ *cli.API }

func (d *definitionsCommands) at() string {
	if d.VHost == "" {
		return cli.Path("definitions")
	}
	return cli.Path("definitions", d.VHost)
}

func (d *definitionsCommands) fetch(ctx context.Context) (*definitions.Document, error) {
	text, err := d.Fetch(ctx, http.MethodGet, d.at(), http.NoBody)
	if err != nil {
		return nil, err
	}
	return definitions.Parse(text)
}

func (d *definitionsCommands) export() *cobra.Command {
	return &cobra.Command{
		Use:   "export [file]",
		Short: "Write the definitions to a file, or print them; they hold password hashes",
		Args:  cli.Between(0, 1, "a file, or none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			document, err := d.fetch(cmd.Context())
			if err != nil {
				return err
			}
			text, err := document.Marshal()
			if err != nil {
				return err
			}
			if len(args) == 1 && args[0] != "-" {
				return os.WriteFile(args[0], text, 0o600)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}

func (d *definitionsCommands) load() *cobra.Command {
	return &cobra.Command{
		Use:   "import <file>",
		Short: "Import definitions from a file, or - for standard input; deletes nothing, and an invalid file changes nothing",
		Args:  cli.Exactly(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := cli.ReadFile(cmd, args[0])
			if err != nil {
				return err
			}
			if _, err := definitions.Parse(text); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if _, err = d.Fetch(cmd.Context(), http.MethodPost, d.at(), bytes.NewReader(text)); err != nil {
				return err
			}
			return d.Say(cmd, map[string]string{"imported": args[0], "vhost": d.VHost}, "imported "+args[0])
		},
	}
}

func (d *definitionsCommands) diff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff <file>",
		Short: "Print what importing a file would do: + add, ~ change, ! differs and would stay, - is only here and would stay",
		Long:  "Exit code 1: an import would add or change something, or something differs that an import would not change.",
		Args:  cli.Exactly(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := cli.ReadFile(cmd, args[0])
			if err != nil {
				return err
			}
			want, err := definitions.Parse(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			have, err := d.fetch(cmd.Context())
			if err != nil {
				return err
			}
			return d.printDifferences(cmd.OutOrStdout(), definitions.Diff(have, want))
		},
	}
}

func (d *definitionsCommands) printDifferences(w io.Writer, list []definitions.Difference) error {
	rows, differs := [][]string{}, 0
	for _, x := range list {
		rows = append(rows, []string{string(x.Mark), x.What})
		if x.Mark != definitions.Missing {
			differs++
		}
	}
	if len(list) == 0 && !d.JSON() {
		_, err := fmt.Fprintln(w, "no difference")
		return err
	}
	if err := d.Print(w, list, []string{"", "WHAT="}, rows); err != nil {
		return err
	}
	if differs > 0 {
		return fmt.Errorf("%d differences", differs)
	}
	return nil
}
