package commands

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.yaml.in/yaml/v3"

	"curfew/broker/deadline"
	"curfew/cmd/internal/cli"
)

// vhost is the virtual host that is filled. The description tells it from one of that name that somebody else has made.
const (
	vhost       = "demo"
	description = "examples of curfew demo; deleted when it ends"
)

// ErrNotOurs says that the virtual host has other things in it.
var ErrNotOurs = errors.New("it has a virtual host demo that is not of this command")

// Filler fills the virtual host demo of a running Curfew with queues, deadlines, dead letters and consumers, by a script.
type Filler struct {
	*cli.Client
	At   cli.Endpoint
	AMQP string // URL; "" is on the host of At, where its API says that AMQP is
	Out  io.Writer
}

//go:embed demo.yaml
var scriptText []byte

type script struct {
	Policies map[string]map[string]any
	Queues   []role
}

// role is one of the queues that are filled: what is published to it, and who consumes it.
type role struct {
	Name, Shows string
	Arguments   map[string]any
	First       int
	Every       time.Duration
	TTL         []time.Duration
	Body        string // with the number of the message
	Consume     struct {
		Take     string
		Pause    time.Duration
		Prefetch int
	}
}

// Clean deletes the virtual host, if it is the demo's. Records in the audit and alerts stay. found is false if there is none.
func (f *Filler) Clean(ctx context.Context) (found bool, err error) {
	var is struct{ Description string }
	err = f.Call(ctx, http.MethodGet, cli.Path("vhosts", vhost), nil, &is)
	if failed, ok := errors.AsType[*cli.Error](err); ok && failed.Status == http.StatusNotFound {
		return false, nil
	}
	if err == nil && is.Description != description {
		err = ErrNotOurs
	}
	if err != nil {
		return true, err
	}
	return true, f.Call(ctx, http.MethodDelete, cli.Path("vhosts", vhost), nil, nil)
}

// Fill makes the virtual host, again if an earlier demo left it, and keeps it busy until ctx ends. The caller cleans up.
func (f *Filler) Fill(ctx context.Context) error {
	var s script
	if err := yaml.Unmarshal(scriptText, &s); err != nil {
		return err
	}
	address, err := f.address(ctx)
	if err != nil {
		return err
	}
	if _, err := f.Clean(ctx); err != nil {
		return err
	}
	if err := f.declare(ctx, &s); err != nil {
		return err
	}
	fmt.Fprintf(f.Out, "\nLook at the dashboard, %s/, or at\n  curfew status --watch\n", f.At.URL)
	for _, command := range []string{"queue list", "dlq groups dead-letters", "consumers"} {
		fmt.Fprintf(f.Out, "  curfew %s --vhost %s\n", command, vhost)
	}
	fmt.Fprintln(f.Out)
	return run(ctx, address, s.Queues)
}

// declare imports the virtual host with what the script has in it. The user gets all permissions there.
func (f *Filler) declare(ctx context.Context, s *script) error {
	var policies, queues []any
	for name, policy := range s.Policies {
		policy["name"], policy["vhost"] = name, vhost
		policies = append(policies, policy)
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		fmt.Fprintf(f.Out, "  %-12s  %s\n", q.Name, q.Shows)
		queues = append(queues, map[string]any{"name": q.Name, "vhost": vhost, "durable": true, "arguments": q.Arguments})
	}
	return f.Call(ctx, http.MethodPost, cli.Path("definitions"), map[string]any{
		"vhosts": []any{map[string]any{"name": vhost, "description": description}}, "policies": policies, "queues": queues,
	}, nil)
}

// run publishes and consumes until ctx ends, or one of the clients fails.
func run(ctx context.Context, address *url.URL, all []role) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	start := func(name string, work func(context.Context, *amqp091.Channel) error) {
		running.Go(func() {
			if err := connect(ctx, address, name, work); err != nil && ctx.Err() == nil {
				stop(fmt.Errorf("demo: %s: %w", name, err))
			}
		})
	}
	start("publisher", func(ctx context.Context, ch *amqp091.Channel) error { return publish(ctx, ch, all) })
	for i := range all {
		if r := &all[i]; r.Consume.Take != "" {
			start(r.Name+" worker", r.consume)
		}
	}
	<-ctx.Done()
	running.Wait()
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return cause
	}
	return nil
}

// connect does work on a connection of its own, which ends with ctx.
func connect(ctx context.Context, address *url.URL, name string, work func(context.Context, *amqp091.Channel) error) error {
	config := amqp091.Config{Properties: amqp091.NewConnectionProperties()}
	config.Properties.SetClientConnectionName("demo: " + name)
	conn, err := amqp091.DialConfig(address.String(), config)
	if err != nil {
		return fmt.Errorf("connect by AMQP to %s: %w; --amqp names another address", address.Redacted(), err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })() // a publish that waits because memory is low ends
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return work(ctx, ch)
}

// consume settles messages as the script says until ctx ends.
func (r *role) consume(ctx context.Context, ch *amqp091.Channel) error {
	if err := ch.Qos(r.Consume.Prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.ConsumeWithContext(ctx, r.Name, r.Name+"-worker", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for d := range deliveries {
		if !deadline.Sleep(ctx, r.Consume.Pause) {
			return nil
		}
		switch {
		case r.Consume.Take == "hold":
		case r.Consume.Take == "requeue":
			err = d.Nack(false, true)
		case r.Consume.Take == "reject" && d.DeliveryTag%3 == 0:
			err = d.Reject(false)
		default:
			err = d.Ack(false)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("its consumer was closed")
}

// step is how often publish checks which messages to send.
const step = 500 * time.Millisecond

// publish sends the first messages of each queue and then the regular ones, until ctx ends.
func publish(ctx context.Context, ch *amqp091.Channel, all []role) error {
	sent := make([]int, len(all))
	for began := time.Now(); ; {
		for i := range all {
			r := &all[i]
			want := r.First
			if r.Every > 0 {
				want += int(time.Since(began) / r.Every)
			}
			for ; sent[i] < want; sent[i]++ {
				if err := ch.PublishWithContext(ctx, "", r.Name, false, false, r.message(sent[i])); err != nil {
					return err
				}
			}
		}
		if !deadline.Sleep(ctx, step) {
			return nil
		}
	}
}

// message is the n-th message of the queue. The times to live of thirty messages are spread evenly.
func (r *role) message(n int) amqp091.Publishing {
	m := amqp091.Publishing{
		MessageId: r.Name + "-" + strconv.Itoa(n), Type: strings.TrimSuffix(r.Name, "s") + ".created", AppId: "curfew demo",
		ContentType: "application/json", Timestamp: time.Now(),
		Headers: amqp091.Table{"tenant": []string{"globex", "initech", "umbrella"}[n%3]}, Body: fmt.Appendf(nil, r.Body, n),
	}
	if len(r.TTL) == 2 {
		least, most := r.TTL[0], r.TTL[1]
		m.Expiration = strconv.FormatInt((least + (most-least)*time.Duration(n*7%30)/30).Milliseconds(), 10)
	}
	return m
}

// address is where AMQP clients connect.
func (f *Filler) address(ctx context.Context) (*url.URL, error) {
	if f.AMQP != "" {
		u, err := url.Parse(f.AMQP)
		if err != nil || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Host == "" {
			return nil, errors.New("--amqp: want an address such as amqp://guest:guest@127.0.0.1:5672")
		}
		u.Path = "/" + vhost
		return u, nil
	}
	api, err := url.Parse(f.At.URL)
	if err != nil {
		return nil, err
	}
	var overview struct {
		Listeners []struct {
			Protocol string `json:"protocol"`
			Port     int    `json:"port"`
		} `json:"listeners"`
	}
	if err := f.Call(ctx, http.MethodGet, cli.Path("overview"), nil, &overview); err != nil {
		return nil, err
	}
	schemes := map[string]string{"amqp": "amqp", "amqp/ssl": "amqps"}
	for _, l := range overview.Listeners {
		if scheme := schemes[l.Protocol]; scheme != "" {
			return &url.URL{Scheme: scheme, Host: net.JoinHostPort(api.Hostname(), strconv.Itoa(l.Port)), Path: "/" + vhost, User: url.UserPassword(f.At.User, f.At.Password)}, nil
		}
	}
	return nil, errors.New("demo: this Curfew does not show its AMQP address to a user without the tag monitoring: add --amqp")
}

// Remote reports whether the running Curfew is on another machine, where its alerts may wake somebody.
func (f *Filler) Remote() bool {
	u, err := url.Parse(f.At.URL)
	if err != nil {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
