package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"curfew/broker/operate"
)

// before lets the flag of a variant stand before the verb if all verbs of the family have it: "policy --operator list".
func (f *Families) before(op *operate.Op) {
	if op.Variant == "" {
		return
	}
	parent := subcommand(f.root, op.Words()[0])
	flags := parent.PersistentFlags()
	if flags.Lookup(op.Variant) == nil && !slices.ContainsFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Flags().Lookup(op.Variant) == nil }) {
		flags.Bool(op.Variant, false, "")
		flags.Lookup(op.Variant).Hidden = true // each verb shows its own, which is set
	}
}

// addVariant makes a command do another operation if the flag is given that names it.
func (a *API) addVariant(c *cobra.Command, op *operate.Op) {
	var without []string // flags that the other operation has alone
	c.Flags().VisitAll(func(f *pflag.Flag) {
		has := slices.ContainsFunc(flagsOf(op), func(o operate.Field) bool {
			name, _, _ := strings.Cut(o.Flag, ",")
			return name == f.Name
		})
		if !has && f.Name != "watch" && !(f.Name == allVHosts && ofAllVHosts(op)) {
			without = append(without, f.Name)
		}
	})
	c.Flags().Bool(op.Variant, false, strings.ToLower(op.Title[:1])+op.Title[1:])
	a.AddFlags(c, op)
	names, _ := op.Arguments()
	other := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if chosen, err := cmd.Flags().GetBool(op.Variant); err == nil && chosen {
			if len(args) > len(names) {
				return Usagef("--%s takes no %s", op.Variant, args[len(args)-1])
			}
			for _, name := range without {
				if cmd.Flags().Changed(name) {
					return Usagef("--%s does not go with --%s", op.Variant, name)
				}
			}
			return a.run(cmd, op, args)
		}
		return other(cmd, args)
	}
}
