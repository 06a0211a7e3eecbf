package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/cmd/internal/client"
)

// prefix begins the names of all that a Filler makes.
const prefix = "demo."

// vhost is the virtual host that is filled.
const vhost = "/"

// idle is how long the queues of a demo that was killed stay.
const idle = time.Hour

// Filler fills a running Curfew with queues, deadlines, dead letters and consumers, and removes them again.
type Filler struct {
	*client.Client
	At   client.Endpoint
	AMQP string // URL; "" is on the host of At, where its API says that AMQP is
	Out  io.Writer
}

// InUse is why people may depend on the running Curfew; "" if nothing suggests that they do.
func (f *Filler) InUse(ctx context.Context) (string, error) {
	queues, err := f.names(ctx, "queues")
	if err != nil {
		return "", err
	}
	others := slices.DeleteFunc(queues, func(name string) bool { return strings.HasPrefix(name, prefix) || name == "curfew.undeliverable" })
	if len(others) > 0 {
		return fmt.Sprintf("it has other queues: %d, such as %q", len(others), others[0]), nil
	}
	u, err := url.Parse(f.At.URL)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "it is on another machine", nil
	}
	return "", nil
}

// names lists the names of queues or exchanges.
func (f *Filler) names(ctx context.Context, what string) (names []string, err error) {
	var list []struct{ Name string }
	err = f.Call(ctx, http.MethodGet, client.Path(what, vhost)+"?columns=name", nil, &list)
	for _, one := range list {
		names = append(names, one.Name)
	}
	return names, err
}

// Clean deletes all that a Filler made, and returns how many queues it deleted. Records in the audit and alerts stay.
func (f *Filler) Clean(ctx context.Context) (deleted int, err error) {
	queues, err := f.names(ctx, "queues")
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, name := range queues {
		if strings.HasPrefix(name, prefix) {
			errs = append(errs, f.gone(ctx, client.Path("queues", vhost, name)))
			deleted++
		}
	}
	errs = append(errs, f.gone(ctx, client.Path("policies", vhost, policy)))
	return deleted, errors.Join(errs...)
}

// gone deletes something that may already be gone.
func (f *Filler) gone(ctx context.Context, path string) error {
	err := f.Call(ctx, http.MethodDelete, path, nil, nil)
	if failed, ok := errors.AsType[*client.Error](err); ok && failed.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// policy is the name of the policy by which the messages of one queue expire.
const policy = prefix + "sessions"

// role is one of the queues that are filled: what is published to it, and who consumes it.
type role struct {
	name, shows string
	arguments   amqp091.Table
	first       int           // messages at the start
	every       time.Duration // between two messages after that
	ttl         func(n int) time.Duration
	body        string // with the number of the message
	consume     *consume
}

// consume is how a queue is consumed: prefetch messages at a time, and take settles each.
type consume struct {
	prefetch int
	take     func(ctx context.Context, d *amqp091.Delivery) error
}

func after(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// between spreads deadlines evenly from least to most.
func between(least, most time.Duration, steps int) func(int) time.Duration {
	return func(n int) time.Duration {
		return least + (most-least)*time.Duration(n*7%steps)/time.Duration(steps)
	}
}

// slowly acks after some time.
func slowly(each time.Duration) func(context.Context, *amqp091.Delivery) error {
	return func(ctx context.Context, d *amqp091.Delivery) error {
		select {
		case <-time.After(each):
		case <-ctx.Done():
		}
		return d.Ack(false)
	}
}

func roles() []role {
	dead := amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": prefix + "dead-letters"}
	with := func(more amqp091.Table) amqp091.Table {
		all := amqp091.Table{"x-expires": idle.Milliseconds(), "x-max-length": 2000}
		for _, table := range []amqp091.Table{dead, more} {
			for name, value := range table {
				all[name] = value
			}
		}
		return all
	}
	return []role{
		{name: "dead-letters", shows: "dead letters with four causes", arguments: amqp091.Table{"x-expires": idle.Milliseconds(), "x-max-length": 5000}},
		{name: "emails", shows: "deadlines that will be met", arguments: with(nil), first: 120, every: time.Second, ttl: between(8*time.Minute, 14*time.Minute, 20),
			body: `{"mail": %d, "to": "customer@example.org", "template": "welcome"}`, consume: &consume{1, slowly(time.Second)}},
		{name: "orders", shows: "deadlines at risk: its consumer is too slow", arguments: with(nil), first: 90, every: 500 * time.Millisecond, ttl: between(2*time.Second, 5*time.Minute, 30),
			body: `{"order": %d, "customer": {"id": 7, "name": "Björn"}, "items": [{"sku": "A-1", "count": 2}]}`, consume: &consume{1, slowly(2 * time.Second)}},
		{name: "reports", shows: "a consumer that holds messages past their deadlines", arguments: with(nil), first: 8, every: 10 * time.Second, ttl: after(15 * time.Second),
			body: `{"report": %d, "format": "pdf"}`, consume: &consume{5, func(context.Context, *amqp091.Delivery) error { return nil }}},
		{name: "uploads", shows: "a full queue (maxlen)", arguments: with(amqp091.Table{"x-max-length": 20}), first: 26, every: 5 * time.Second, ttl: after(5 * time.Minute),
			body: `{"upload": %d, "bytes": 1048576}`},
		{name: "payments", shows: "a consumer that rejects", arguments: with(nil), first: 6, every: 3 * time.Second, ttl: after(time.Minute),
			body: `{"payment": %d, "amount": "12.50", "currency": "EUR"}`, consume: &consume{1, func(_ context.Context, d *amqp091.Delivery) error {
				if d.DeliveryTag%3 == 0 {
					return d.Reject(false)
				}
				return d.Ack(false)
			}}},
		{name: "webhooks", shows: "a consumer that requeues every message (delivery_limit)", arguments: with(amqp091.Table{"x-queue-type": "quorum", "x-delivery-limit": 2}), first: 3,
			every: 10 * time.Second, ttl: after(time.Minute), body: `{"webhook": %d, "url": "https://example.org/hook"}`, consume: &consume{1, func(_ context.Context, d *amqp091.Delivery) error { return d.Nack(false, true) }}},
		{name: "sessions", shows: "a time to live from a policy; expired messages are dropped", arguments: amqp091.Table{"x-expires": idle.Milliseconds(), "x-max-length": 500}, first: 20, every: 2 * time.Second,
			body: `{"session": %d}`},
	}
}

// Fill makes the queues and keeps them busy until ctx ends. The caller cleans up.
func (f *Filler) Fill(ctx context.Context) error {
	address, err := f.address(ctx)
	if err != nil {
		return err
	}
	sender, err := dial(address, "publisher")
	if err != nil {
		return fmt.Errorf("demo: connect by AMQP to %s: %w; --amqp names another address", address.Redacted(), err)
	}
	defer sender.Close()
	ch, err := sender.Channel()
	if err != nil {
		return err
	}
	rule := map[string]any{"pattern": `^demo\.sessions$`, "apply-to": "queues", "definition": map[string]any{"message-ttl": 45_000}}
	if err := f.Call(ctx, http.MethodPut, client.Path("policies", vhost, policy), rule, nil); err != nil {
		return err
	}
	all := roles()
	failed := make(chan error, len(all))
	running := 0
	ctx, stop := context.WithCancel(ctx)
	for i := range all {
		if err = f.start(ctx, ch, address, &all[i], failed, &running); err != nil {
			break
		}
	}
	if err == nil {
		fmt.Fprintf(f.Out, "\nLook at the dashboard, %s/, or at\n  curfew status --watch\n  curfew queue list\n  curfew dlq groups %sdead-letters\n  curfew consumers\n\n", f.At.URL, prefix)
		err = f.send(ctx, ch, all, failed)
	}
	stop()
	sender.Close() // a publish that waits because memory is low ends
	for range running {
		err = errors.Join(err, <-failed)
	}
	return err
}

// start declares a queue and starts its consumer.
func (f *Filler) start(ctx context.Context, ch *amqp091.Channel, address *url.URL, r *role, failed chan<- error, running *int) error {
	quorum := r.arguments["x-queue-type"] == "quorum"
	if _, err := ch.QueueDeclare(prefix+r.name, quorum, false, false, false, r.arguments); err != nil {
		return fmt.Errorf("demo: declare %s%s: %w", prefix, r.name, err)
	}
	fmt.Fprintf(f.Out, "  %-18s  %s\n", prefix+r.name, r.shows)
	if r.consume == nil {
		return nil
	}
	conn, err := dial(address, r.name+" worker")
	if err != nil {
		return err
	}
	*running++
	go func() {
		defer conn.Close()
		failed <- consumeUntil(ctx, conn, r)
	}()
	return nil
}

// consumeUntil consumes a queue until ctx ends, or the connection.
func consumeUntil(ctx context.Context, conn *amqp091.Connection, r *role) error {
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Qos(r.consume.prefetch, 0, false)
	}
	if err != nil {
		return err
	}
	deliveries, err := ch.ConsumeWithContext(ctx, prefix+r.name, r.name+"-worker", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, open := <-deliveries:
			if !open {
				return closed(ctx, r)
			}
			if err := r.consume.take(ctx, &d); err != nil {
				return err
			}
		}
	}
}

// closed is the error of a consumer that gets no more deliveries: none if it was meant to end.
func closed(ctx context.Context, r *role) error {
	if ctx.Err() == nil {
		return fmt.Errorf("demo: the consumer of %s%s was closed", prefix, r.name)
	}
	return nil
}

// step is how often send checks which messages to send.
const step = 500 * time.Millisecond

// send publishes the first messages and then the regular ones, until ctx ends or a consumer fails.
func (f *Filler) send(ctx context.Context, ch *amqp091.Channel, all []role, failed chan error) error {
	sent := make([]int, len(all))
	began := time.Now()
	ticks := time.NewTicker(step)
	defer ticks.Stop()
	for {
		for i := range all {
			r := &all[i]
			want := r.first
			if r.every > 0 {
				want += int(time.Since(began) / r.every)
			}
			for ; sent[i] < want; sent[i]++ {
				if err := publish(ctx, ch, r, sent[i]); err != nil && ctx.Err() == nil {
					return fmt.Errorf("demo: publish: %w", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		case err := <-failed:
			failed <- nil // the result is read once more
			return err
		}
	}
}

func publish(ctx context.Context, ch *amqp091.Channel, r *role, n int) error {
	m := amqp091.Publishing{
		MessageId: r.name + "-" + strconv.Itoa(n), Type: strings.TrimSuffix(r.name, "s") + ".created", AppId: "curfew demo", ContentType: "application/json", Timestamp: time.Now(),
		Headers: amqp091.Table{"tenant": []string{"globex", "initech", "umbrella"}[n%3]}, Body: fmt.Appendf(nil, r.body, n),
	}
	if r.ttl != nil {
		m.Expiration = strconv.FormatInt(r.ttl(n).Milliseconds(), 10)
	}
	return ch.PublishWithContext(ctx, "", prefix+r.name, false, false, m)
}

func dial(address *url.URL, name string) (*amqp091.Connection, error) {
	config := amqp091.Config{Properties: amqp091.NewConnectionProperties()}
	config.Properties.SetClientConnectionName("demo: " + name)
	return amqp091.DialConfig(address.String(), config)
}

// address is where AMQP clients connect.
func (f *Filler) address(ctx context.Context) (*url.URL, error) {
	if f.AMQP != "" {
		return url.Parse(f.AMQP)
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
	if err := f.Call(ctx, http.MethodGet, client.Path("overview"), nil, &overview); err != nil {
		return nil, err
	}
	schemes := map[string]string{"amqp": "amqp", "amqp/ssl": "amqps"}
	for _, l := range overview.Listeners {
		if scheme := schemes[l.Protocol]; scheme != "" {
			return &url.URL{Scheme: scheme, Host: net.JoinHostPort(api.Hostname(), strconv.Itoa(l.Port)), Path: "/", User: url.UserPassword(f.At.User, f.At.Password)}, nil
		}
	}
	return nil, errors.New("demo: this Curfew does not show its AMQP address to a user without the tag monitoring: add --amqp")
}
