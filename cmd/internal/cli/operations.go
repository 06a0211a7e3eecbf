package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/access"
	"curfew/broker/deadline"
	"curfew/broker/operate"
)

// Families are the commands of operations by their first word, each with the API that its subcommands call.
type Families struct {
	root *cobra.Command
	apis map[string]*API
}

// Of returns the family of a word, for more commands.
func (f *Families) Of(word string) (*cobra.Command, *API) {
	c := group(f.root, word, operate.Groups[word])
	inVHost := slices.ContainsFunc(operate.All, func(op *operate.Op) bool {
		return slices.ContainsFunc(op.Routes, ofOneVHost) && strings.HasPrefix(op.Command, word+" ")
	})
	if f.apis[word] == nil && inVHost {
		f.apis[word] = WithVHost(c)
	} else if f.apis[word] == nil {
		f.apis[word] = WithAPI(c)
	}
	return c, f.apis[word]
}

// AddOperations adds the commands of operations to root, and groups for their words that root does not have.
func AddOperations(root *cobra.Command, ops []*operate.Op) *Families {
	families := &Families{root, map[string]*API{}}
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b *operate.Op) int { return min(len(a.Variant), 1) - min(len(b.Variant), 1) }) // variants last
	for _, op := range ops {
		families.add(op)
		for _, way := range op.Also {
			also := *op
			also.Command, also.Title, also.Example, also.Sets, also.Flags, also.Starts = way.Command, way.Title, way.Example, way.Sets, way.Flags, way.Starts
			families.add(&also)
		}
	}
	for _, op := range ops {
		families.before(op)
	}
	return families
}

// add adds the command of an operation.
func (f *Families) add(op *operate.Op) {
	words := op.Words()
	if len(words) == 0 {
		return
	}
	if len(words) == 1 {
		c, api := f.Of(words[0])
		api.fill(c, op)
		return
	}
	parent := f.root
	for i := range words[:len(words)-1] {
		parent = group(parent, words[i], operate.Groups[strings.Join(words[:i+1], " ")])
	}
	_, api := f.Of(words[0])
	if same := subcommand(parent, words[len(words)-1]); same != nil {
		api.addVariant(same, op)
	} else {
		c := &cobra.Command{}
		api.fill(c, op)
		parent.AddCommand(c)
	}
}

// subcommand returns a direct subcommand; nil: there is none.
func subcommand(parent *cobra.Command, name string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

func group(parent *cobra.Command, name, short string) *cobra.Command {
	c := subcommand(parent, name)
	if c == nil {
		c = &cobra.Command{Use: name, Short: short, RunE: Group}
		parent.AddCommand(c)
	}
	return c
}

// fill makes the command of an operation: each field of its request is an argument or a flag.
func (a *API) fill(c *cobra.Command, op *operate.Op) {
	names, needed := op.Arguments()
	words := op.Words()
	c.Use, c.Short, c.Example = strings.TrimSpace(words[len(words)-1]+strings.TrimPrefix(op.Command, strings.Join(words, " "))), op.Title, exampleOf(op)
	c.Args, c.RunE = noneOrVerb, func(cmd *cobra.Command, args []string) error { return a.run(cmd, op, args) }
	if op.Help != "" {
		c.Long = op.Help
	}
	if len(names) > 0 {
		most := len(names)
		if op.Each() {
			most = math.MaxInt
		}
		c.Args = Between(needed, most, strings.TrimPrefix(op.Command, strings.Join(words, " ")+" "))
		var complete []cobra.CompletionFunc
		for _, name := range names {
			complete = append(complete, a.Completing(name))
		}
		c.ValidArgsFunction = Arguments(complete...)
	}
	a.AddFlags(c, op)
	if ofAllVHosts(op) {
		AllVHosts(c)
	}
	switch {
	case op.Alias != "":
		c.Aliases = []string{op.Alias}
	case c.Name() == "list":
		c.Aliases = []string{"ls"}
	case c.Name() == "ls":
		c.Aliases = []string{"list"}
	}
	if op.Watched {
		Watched(c)
	}
}

func ofOneVHost(route string) bool { return strings.Contains(route, "{vhost}") }

// ofAllVHosts reports whether a list can be one of all virtual hosts.
func ofAllVHosts(op *operate.Op) bool {
	return ofOneVHost(op.Routes[0]) && slices.ContainsFunc(op.Routes, func(route string) bool { return strings.HasPrefix(route, "GET ") && !ofOneVHost(route) })
}

// allVHosts is the flag that makes a list one of all virtual hosts.
const allVHosts = "all-vhosts"

// AllVHosts adds the flag -A to a list that can be one of all virtual hosts.
func AllVHosts(c *cobra.Command) {
	c.Flags().BoolP(allVHosts, "A", false, "those of all virtual hosts, as without --vhost")
}

// Everywhere reports whether a list is one of all virtual hosts: with -A, or without --vhost and the arguments that name something in a virtual host.
func Everywhere(cmd *cobra.Command) (bool, error) {
	all := cmd.Flags().Lookup(allVHosts) // most commands do not have it
	if all == nil {
		return false, nil
	}
	vhost, args := cmd.Flags().Changed("vhost"), cmd.Flags().Args()
	switch {
	case !all.Changed:
		return !vhost && len(args) == 0, nil
	case all.Value.String() != "true":
		return false, nil
	case vhost:
		return false, Usagef("use either -A (all virtual hosts) or --vhost, not both")
	case len(args) > 0:
		return false, Usagef("%q is in one virtual host: use --vhost instead of -A", args[0])
	}
	return true, nil
}

// AddFlags adds the flags of an operation to a command.
func (a *API) AddFlags(c *cobra.Command, op *operate.Op) {
	for _, f := range flagsOf(op) {
		name, letter, _ := strings.Cut(f.Flag, ",")
		if c.Flags().Lookup(name) != nil {
			continue // the operation that this is a variant of has it
		}
		switch f.Kind {
		case operate.Flag:
			c.Flags().BoolP(name, letter, f.Start != "", f.Help)
		case operate.Number, operate.Shown:
			n, _ := strconv.ParseInt(cmp.Or(op.Starts[f.Name], f.Start, f.Default), 10, 64)
			c.Flags().Int64P(name, letter, n, f.Help)
		case operate.Filter:
			AddFilter(c)
		case operate.Fraction:
			c.Flags().Float64P(name, letter, 0, f.Help)
		case operate.Password:
			c.Flags().String("new-password-file", "", "file with the user's password (default standard input)")
			if op.Field("tags") != nil {
				c.Flags().Bool("no-password", false, "allow login only by certificate, not by password")
			}
		default:
			c.Flags().StringP(name, letter, f.Default, f.Help)
			if len(f.OneOf) > 0 {
				Offers(c, name, f.OneOf...)
			}
		}
	}
}

// exampleOf is the example of the operation, or one made of those of its arguments.
func exampleOf(op *operate.Op) string {
	if op.Example != "" {
		return op.Example
	}
	parts := append([]string{"  curfew"}, op.Words()...)
	names, _ := op.Arguments()
	for _, name := range names {
		parts = append(parts, op.Field(name).Eg)
	}
	return strings.Join(parts, " ")
}

// flagsOf are the fields that are flags: those that are neither arguments nor the virtual host, nor left out. Without a body the route has to have them.
func flagsOf(op *operate.Op) (list []operate.Field) {
	names, _ := op.Arguments()
	for _, f := range op.Fields {
		if op.Flags != nil && !slices.Contains(op.Flags, f.Name) {
			continue
		}
		if _, set := op.Sets[f.Name]; !set && f.Name != "vhost" && f.On("command") && !slices.Contains(names, f.Name) {
			list = append(list, f)
		}
	}
	return list
}

// run does an operation, and prints the result.
func (a *API) run(cmd *cobra.Command, op *operate.Op, args []string) error {
	if op.Each() && len(args) > 1 {
		var errs []error
		for i := range args {
			errs = append(errs, a.run(cmd, op, args[i:i+1]))
		}
		return errors.Join(errs...)
	}
	if _, err := Everywhere(cmd); err != nil {
		return err
	}
	values, err := a.Values(cmd, op, args)
	if err != nil {
		return err
	}
	maps.Copy(values, op.Sets)
	if err := op.Check(values); err != nil {
		return Usage(err)
	}
	if err = a.Send(cmd, op, values); err == nil || len(args) == 0 {
		return err
	}
	if asks, is := errors.AsType[*Error](err); is && asks.Kind == "unconfirmed" {
		return unconfirmed(op, args[0], asks)
	}
	if strings.Contains(op.Command, "<queue>") {
		err = a.Elsewhere(cmd.Context(), args[0], err)
	}
	return Unknown(err, op, args[len(args)-1])
}

// Unknown adds to the error about something unknown where its names are listed.
func Unknown(err error, op *operate.Op, name string) error {
	if r, ok := errors.AsType[*Error](err); ok && r.Status == http.StatusNotFound && r.Reason == "Not Found" && op.Lists != "" {
		r.Reason = fmt.Sprintf("there is no %s %q; %s lists them", op.Noun, name, op.Lists)
	}
	return err
}

// Elsewhere adds to the error about a queue that is not there in which other virtual hosts there is one of that name.
func (a *API) Elsewhere(ctx context.Context, queue string, err error) error {
	if missing, is := errors.AsType[*Error](err); !is || missing.Status != http.StatusNotFound {
		return err
	}
	var list []struct{ Name, VHost string }
	_ = a.Call(ctx, http.MethodGet, Path("queues")+"?columns=name,vhost", nil, &list)
	var in []string
	for _, one := range list {
		if one.Name == queue && one.VHost == a.VHost {
			return err // it is what was asked of it that is not there
		}
		if one.Name == queue {
			in = append(in, "--vhost "+deadline.Shell(one.VHost))
		}
	}
	if in != nil {
		err = fmt.Errorf("%w; there is one with %s", err, strings.Join(in, " or "))
	}
	return err
}

// Send does an operation with the values of its fields, by its first route that needs no others, and prints the result. The virtual host is the command's.
func (a *API) Send(cmd *cobra.Command, op *operate.Op, parts ...map[string]any) error {
	values := map[string]any{}
	all, _ := Everywhere(cmd)
	if ofOneVHost(op.Routes[0]) && !(all && ofAllVHosts(op)) {
		values["vhost"] = a.VHost
	}
	for _, part := range parts {
		maps.Copy(values, part)
	}
	named := maps.Clone(values)
	count, isLimited := values["count"].(int64)
	isLimited = isLimited && op.IsList
	method, path, _ := strings.Cut(routeOf(op, values), " ")
	query := url.Values{}
	for name, v := range values {
		text := operate.Plain(v)
		f := op.Field(name)
		switch {
		case strings.Contains(path, "{"+name+"}"):
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(text), 1)
		case f != nil && f.Own || method == http.MethodGet || method == http.MethodDelete:
			if yes, is := v.(bool); is {
				text = strconv.FormatBool(yes)
			}
			query.Set(name, text)
		default:
			continue
		}
		delete(values, name)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var body io.Reader = http.NoBody
	if len(values) > 0 {
		text, err := json.Marshal(values)
		if err != nil {
			return err
		}
		body = strings.NewReader(string(text))
	}
	answer, err := a.Fetch(cmd.Context(), method, path, body)
	if err != nil {
		return err
	}
	if len(answer) == 0 {
		return a.sayDone(cmd, op, named)
	}
	if op.ByHand && a.JSON() {
		return a.Print(cmd.OutOrStdout(), json.RawMessage(answer), nil, nil)
	}
	into := reflect.New(op.Result)
	if err := Decode(answer, into.Interface()); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	result := into.Elem().Interface()
	if n := len(operate.Rows(result)); isLimited && int64(n) >= count {
		defer fmt.Fprintf(cmd.ErrOrStderr(), "These are the first %d, and there may be more: --count takes up to %d.\n", n, op.Field("count").Max)
	}
	return a.PrintResult(cmd, op, result)
}

// routeOf is the first route whose parts of the path have values.
func routeOf(op *operate.Op, values map[string]any) string {
	for _, route := range op.Routes {
		missing := false
		for _, part := range strings.Split(route, "{")[1:] {
			name, _, _ := strings.Cut(part, "}")
			missing = missing || values[name] == nil
		}
		if !missing {
			return route
		}
	}
	return op.Routes[0]
}

// Values are the values of a request's fields: arguments, flags and the virtual host.
func (a *API) Values(cmd *cobra.Command, op *operate.Op, args []string) (map[string]any, error) {
	values := map[string]any{}
	names, _ := op.Arguments()
	for i, name := range names[:len(args)] {
		v, err := valueOf(op.Field(name), args[i])
		if err != nil {
			return nil, err
		}
		values[name] = v
	}
	for _, f := range flagsOf(op) {
		if f.Kind == operate.Password {
			if err := readNewPassword(cmd, values); err != nil {
				return nil, err
			}
			continue
		}
		if f.Kind == operate.Filter {
			filter, err := a.Filter(cmd, cmd.Flags().Arg(0))
			if err != nil {
				return nil, err
			}
			values[f.Name] = string(filter)
			continue
		}
		name, _, _ := strings.Cut(f.Flag, ",")
		flag := cmd.Flags().Lookup(name)
		switch {
		case f.Kind == operate.Confirm && flag.Changed:
			if err := confirmed(flag.Value.String(), values); err != nil {
				return nil, err
			}
			continue
		case f.Kind == operate.Shown && !flag.Changed && a.JSON(): // a program wants whole bodies, as far as they fit into the answer
			count, _ := values["count"].(int64)
			values[f.Name] = operate.MaxPeekBytes / max(count, 1)
			continue
		}
		if !flag.Changed && (f.Optional || !f.Own && f.Default == "" && !f.Key && f.Kind != operate.List) {
			continue
		}
		v, err := valueOf(&f, flag.Value.String())
		if err != nil {
			return nil, err
		}
		values[f.Name] = v
	}
	return values, nil
}

// valueOf is the JSON value of a field's text.
func valueOf(f *operate.Field, text string) (any, error) {
	switch f.Kind {
	case operate.Flag:
		return text == "true", nil
	case operate.JSON:
		return value(text), nil
	case operate.Span:
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return nil, Usagef("%s: %q is invalid: want a duration with its unit, such as 500ms, 90s or 1h30m", f.Name, text)
		}
	}
	v, err := f.Read(text)
	if err != nil {
		err = Usage(err)
	}
	return v, err
}

// readNewPassword puts the hash of a new password into the values of a request, from the first line of a file or of standard input. The password is hashed
// here: only the hash is sent.
func readNewPassword(cmd *cobra.Command, values map[string]any) error {
	if none, err := cmd.Flags().GetBool("no-password"); err == nil && none {
		return nil
	}
	in := cmd.InOrStdin()
	if file, _ := cmd.Flags().GetString("new-password-file"); file != "" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("read the password: %w", err)
		}
		defer f.Close()
		in = f
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return Usagef("the password is empty")
	}
	values["password_hash"], values["hashing_algorithm"] = access.Hash(password), access.SHA256
	return nil
}
