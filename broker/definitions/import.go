package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// Report lists what an import left out.
type Report struct {
	// Kept are existing queues and exchanges that have other properties than the
	// document's.
	Kept []string
	// Skipped are names that only the broker may use, and bindings with a missing end.
	Skipped []string
}

// Log logs what was left out.
func (r *Report) Log(log *zap.Logger) {
	for _, what := range r.Kept {
		log.Warn("definitions: it already exists with other properties and was not changed", zap.String("reason", what))
	}
	for _, what := range r.Skipped {
		log.Warn("definitions: left out", zap.String("what", what))
	}
}

// Options of an import.
type Options struct {
	// User gets all permissions in the virtual hosts that the import creates, as in RabbitMQ; "": nobody does. The document's permissions for
	// that user take precedence.
	User string
	// VHost is the only virtual host that objects are added to, whatever virtual hosts the document names. Users, permissions and
	// global parameters are left out then. "": each object names its own.
	VHost string
	// Progress is told how many of the document's objects were checked; nil: nothing is. It is called from the goroutine of the import.
	Progress func(done, total int)
}

// Import adds the document's objects to the broker. An error reports what is invalid, that ctx has ended, or
// that the result cannot be saved (broker.ErrNotSaved); in each case nothing was changed. With Options.VHost it may
// also be broker.ErrNoVHost.
func Import(ctx context.Context, b *broker.Broker, d *Document, o Options) (Report, error) {
	if o.VHost != "" {
		if _, ok := b.VHost(o.VHost); !ok {
			return Report{}, broker.ErrNoVHost
		}
		d = &Document{Parameters: d.Parameters, Policies: d.Policies, Queues: d.Queues, Exchanges: d.Exchanges, Bindings: d.Bindings}
	}
	w := writer{Options: o, ctx: ctx}
	err := b.Change(o.VHost, func(c *broker.Broker) error {
		w.b = c
		return w.write(d)
	})
	if err != nil {
		return Report{}, err
	}
	slices.Sort(w.report.Kept)
	slices.Sort(w.report.Skipped)
	return w.report, nil
}

// writer writes documents into a broker, in RabbitMQ's order.
type writer struct {
	Options
	b      *broker.Broker
	report Report

	ctx         context.Context // the end of it ends the import
	done, total int             // objects
}

func (w *writer) write(d *Document) error {
	w.total = len(d.Users) + len(d.VHosts) + len(d.Permissions) + len(d.TopicPermissions) + len(d.Exchanges) + len(d.GlobalParameters) + len(d.Policies) +
		len(d.Parameters) + len(d.Queues) + len(d.Bindings)
	for _, part := range []func() error{
		func() error { return writeEach(w, d.Users, func(u *User) error { return w.user(u, d.RabbitVersion) }) },
		func() error { return writeEach(w, d.VHosts, w.vhost) },
		func() error { return writeEach(w, d.Permissions, w.permission) },
		func() error { return writeEach(w, d.TopicPermissions, w.topicPermission) },
		func() error { return writeEach(w, d.Exchanges, w.exchange) },
		func() error { return writeEach(w, d.GlobalParameters, w.globalParameter) },
		func() error { return w.b.ChangePolicies(func() error { return w.policies(d) }) },
		func() error { return writeEach(w, d.Queues, w.queue) },
		func() error { return writeEach(w, d.Bindings, w.binding) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return w.ctx.Err()
}

// writeEach writes a list.
func writeEach[T any](w *writer, list []T, write func(*T) error) error {
	for i := range list {
		if w.done++; w.done&255 == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if w.Progress != nil {
				w.Progress(w.done, w.total)
			}
		}
		if err := write(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// in returns the virtual host that an object belongs to.
func (w *writer) in(what, name, vhost string) (*broker.VHost, error) {
	if w.VHost != "" {
		vhost = w.VHost
	}
	vh, ok := w.b.VHost(vhost)
	if !ok && vhost == "" {
		return nil, fmt.Errorf("%s '%s' names no virtual host", what, name)
	}
	if !ok {
		return nil, fmt.Errorf("%s '%s' is in virtual host '%s', which does not exist", what, name, vhost)
	}
	return vh, nil
}

// ErrTwoPasswords means, in RabbitMQ's words, that a user has both a password and a hash.
var ErrTwoPasswords = errors.New("both_password_and_password_hash_are_provided")

// user writes a user. If the document names no hash algorithm, version determines it.
func (w *writer) user(u *User, version string) error {
	if u.Password != "" && len(u.PasswordHash) > 0 {
		return fmt.Errorf("user '%s': %w", u.Name, ErrTwoPasswords)
	}
	made := access.User{Name: u.Name, PasswordHash: u.PasswordHash, Algorithm: u.Algorithm, Tags: u.Tags, Limits: u.Limits}
	if made.Algorithm == "" && !strings.HasPrefix(version, "3.5.") {
		made.Algorithm = access.SHA256
	}
	if u.Password != "" {
		made.SetPassword(u.Password)
	}
	if err := w.b.Accounts.PutUser(made); err != nil {
		return fmt.Errorf("user '%s': %w", u.Name, err)
	}
	return nil
}

func (w *writer) vhost(v *VHost) error {
	if _, _, err := w.b.PutVHost(w.User, v.Name, v.metadata()); err != nil {
		return fmt.Errorf("virtual host '%s': %w", v.Name, err)
	}
	return nil
}

// metadata returns the metadata of a virtual host, from either place in the document.
func (v *VHost) metadata() broker.VHostMetadata {
	tags := v.Tags
	if tags == nil {
		tags = v.Metadata.Tags
	}
	return broker.VHostMetadata{
		Description: cmp.Or(v.Description, v.Metadata.Description), Tags: append([]string{}, tags...),
		DefaultQueueType: cmp.Or(v.DefaultQueueType, v.Metadata.DefaultQueueType), Protected: v.Metadata.Protected,
	}
}

func (w *writer) permission(p *access.Permission) error {
	if err := w.b.Accounts.SetPermission(*p); err != nil {
		return fmt.Errorf("permissions of user '%s' in virtual host '%s': %w", p.User, p.VHost, err)
	}
	return nil
}

func (w *writer) topicPermission(p *access.TopicPermission) error {
	if err := w.b.Accounts.SetTopicPermission(*p); err != nil {
		return fmt.Errorf("topic permissions of user '%s' in virtual host '%s': %w", p.User, p.VHost, err)
	}
	return nil
}

func (w *writer) globalParameter(p *GlobalParameter) error {
	if p.Name == "" {
		return errors.New("a global parameter has no name")
	}
	_, err := w.b.SetGlobalParameter(p.Name, p.Value)
	return err
}

func (w *writer) parameter(p *Parameter) error {
	vh, err := w.in("parameter", p.Name, p.VHost)
	if err != nil {
		return err
	}
	if _, err := vh.SetParameter(p.Component, p.Name, withoutPairs(policy.Whole(p.Value))); err != nil {
		return fmt.Errorf("%w (%s/%s/%s)", err, vh.Name(), p.Component, p.Name)
	}
	return nil
}

// withoutPairs converts an operator policy's definition from a list of pairs, which
// rabbitmqctl makes of it.
func withoutPairs(value any) any {
	fields, _ := value.(map[string]any)
	pairs, ok := fields["definition"].([]any)
	if !ok {
		return value
	}
	definition := map[string]any{}
	for _, item := range pairs {
		pair, _ := item.([]any)
		if len(pair) != 2 {
			return value
		}
		key, isText := pair[0].(string)
		if !isText {
			return value
		}
		definition[key] = pair[1]
	}
	fields["definition"] = definition
	return fields
}

func (w *writer) policies(d *Document) error {
	if err := writeEach(w, d.Policies, w.policy); err != nil {
		return err
	}
	return writeEach(w, d.Parameters, w.parameter) // operator policies are among them
}

func (w *writer) policy(p *Policy) error {
	vh, err := w.in("policy", p.Name, p.VHost)
	if err != nil {
		return err
	}
	if p.Name == "" {
		return fmt.Errorf("policy in virtual host '%s' has undefined name", vh.Name())
	}
	decoded, err := policy.Decode(policy.User, p.Name, p.fields)
	if err == nil {
		_, err = vh.Policies.Set(policy.User, decoded)
	}
	if err != nil {
		return fmt.Errorf("%w (%s/%s)", err, vh.Name(), p.Name)
	}
	return nil
}

func (w *writer) exchange(x *Exchange) error {
	vh, err := w.in("exchange", x.Name, x.VHost)
	if err != nil {
		return err
	}
	if predeclared(x.Name) {
		w.skip("exchange '%s' in vhost '%s'", x.Name, vh.Name())
		return nil
	}
	err = vh.Exchanges.Declare(x.Name, broker.ExchangeDeclare{
		Kind: x.Type, Durable: x.Durable, AutoDelete: x.AutoDelete, Internal: x.Internal, Args: amqp.Table(x.Arguments),
	})
	if err != nil && vh.Exchanges.Check(x.Name) == nil {
		w.report.Kept = append(w.report.Kept, plainError(err).Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("exchange '%s' in vhost '%s': %w", x.Name, vh.Name(), plainError(err))
	}
	return nil
}

func (w *writer) queue(q *Queue) error {
	vh, err := w.in("queue", q.Name, q.VHost)
	if err != nil {
		return err
	}
	if predeclared(q.Name) || policy.IsSubqueue(q.Name) {
		w.skip("queue '%s' in vhost '%s'", q.Name, vh.Name())
		return nil
	}
	_, err = vh.Queues.Declare(nil, q.Name, broker.QueueDeclare{Durable: q.Durable, AutoDelete: q.AutoDelete, Args: amqp.Table(q.Arguments)})
	if _, missing := vh.Queues.Get(q.Name); err != nil && missing == nil {
		w.report.Kept = append(w.report.Kept, plainError(err).Error())
		return nil
	}
	return plainError(err)
}

func (w *writer) binding(x *Binding) error {
	vh, err := w.in("binding of", x.Destination, x.VHost)
	if err != nil {
		return err
	}
	if x.DestinationType != "queue" && x.DestinationType != "exchange" {
		return fmt.Errorf("binding of '%s' to '%s': destination type '%s' is neither queue nor exchange", x.Destination, x.Source, x.DestinationType)
	}
	err = vh.Bind(nil, broker.Binding{
		Source: x.Source, Destination: x.Destination, ToExchange: x.DestinationType == "exchange", RoutingKey: x.RoutingKey, Args: amqp.Table(x.Arguments),
	})
	if e, refused := errors.AsType[*amqp.Exception](err); refused && (e.Code == amqp.NotFound || e.Code == amqp.ResourceLocked || x.Source == "") {
		w.skip("binding of '%s' to '%s' in vhost '%s': %s", x.Destination, x.Source, vh.Name(), plainError(err).Error())
		return nil
	}
	return plainError(err)
}

func (w *writer) skip(format string, args ...any) {
	w.report.Skipped = append(w.report.Skipped, fmt.Sprintf(format, args...))
}

// plainError returns an error in the form used outside the wire protocol.
func plainError(err error) error {
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		_, what, _ := strings.Cut(e.Text, " - ")
		return errors.New(what)
	}
	return err
}

// Marshal returns the document for people: indented, with a line end.
func (d *Document) Marshal() ([]byte, error) {
	b, err := policy.FormatJSON(d, "  ")
	return append(b, '\n'), err
}
