//go:build !race

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/amqp"
	"curfew/integration/testenv"
)

// The attacker is a user with all rights in a virtual host of its own and in no other. The stranger may ask the HTTP API, and has no
// rights anywhere.
const (
	hostile  = "hostile"
	stranger = "stranger"
)

// attacker stands for the clients that attack: those of one broker, which has its own process while it does. There t and p are nil: what it has to say
// goes to the standard output.
type attacker struct {
	t        *testing.T
	p        *process
	relaunch func() *process // with the same data folder

	address, api, metrics string // of the broker; two are URLs
	http                  *http.Client
	ctx                   context.Context // of its connections
	leave                 context.CancelFunc
	calm                  time.Duration // before the attack, which setup knows
}

// soon is the time to live, in milliseconds, of what is to be due when the attack has begun, if the calm is all that it waits for.
func (x *attacker) soon(ms int) int { return ms + int(x.calm.Milliseconds()) }

func newAttacker(address, api, metrics string) *attacker {
	x := &attacker{address: address, api: api, metrics: metrics, http: &http.Client{Transport: &http.Transport{}}}
	x.ctx, x.leave = context.WithCancel(context.Background())
	return x
}

// attackerOf makes the virtual hosts and users, too.
func attackerOf(t *testing.T, p *process) *attacker {
	t.Helper()
	x := newAttacker(p.address(), p.word("API"), p.word("Metrics"))
	x.t, x.p = t, p
	all := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	x.admin("/vhosts/"+neighbourVHost, map[string]string{})
	x.admin("/permissions/"+neighbourVHost+"/guest", all)
	x.admin("/vhosts/"+hostile, map[string]string{})
	x.admin("/users/"+hostile, map[string]string{"password": hostile, "tags": "policymaker"})
	x.admin("/permissions/"+hostile+"/"+hostile, all)
	x.admin("/users/"+stranger, map[string]string{"password": stranger, "tags": "management"})
	return x
}

const strikeVariable = "FAULTS_STRIKE"

// prepare starts a process for the attack: this one has to measure, and must not be busy with anything else. The attack's gives way a
// little to the others. It begins when strike is called, which waits for its end.
func (x *attacker) prepare(a *attack) (strike func() error) {
	x.t.Helper()
	if a.strike == nil {
		return func() error { <-time.After(a.length()); return nil }
	}
	path, err := os.Executable()
	check(x.t, err)
	var out testenv.Log
	cmd := exec.Command("nice", "-n", "5", path)
	cmd.Env = append(os.Environ(), strikeVariable+"="+strings.Join([]string{a.name, x.address, x.api, x.metrics}, " "))
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // an aborted test leaves nothing behind
	stdin, err := cmd.StdinPipe()
	check(x.t, err)
	check(x.t, cmd.Start())
	result := make(chan error, 1)
	go func() { result <- cmd.Wait() }()
	return func() (err error) {
		stdin.Close()
		select {
		case err = <-result:
		case <-time.After(a.length() + drainFor):
			_ = cmd.Process.Kill() // it may have ended
			err = <-result
		}
		for line := range strings.Lines(out.String()) {
			x.t.Log("attacker: " + strings.TrimSpace(line))
		}
		return err
	}
}

// strike is the attack's process. It begins when its standard input ends, and returns its exit code.
func strike(order string) int {
	words := strings.Fields(order)
	all := everyAttack()
	i := slices.IndexFunc(all, func(a attack) bool { return a.name == words[0] })
	x := newAttacker(words[1], words[2], words[3])
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(x.ctx, all[i].length())
	defer cancel()
	err := all[i].strike(ctx, x)
	if err != nil && (ctx.Err() == nil || errors.Is(err, errNotBegun)) {
		x.say("%v", err)
		return 1
	}
	if all[i].lasts == 0 {
		<-ctx.Done() // what it has open stays so
	}
	return 0
}

func (x *attacker) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// admin has an administrator put something.
func (x *attacker) admin(path string, body map[string]string) {
	x.t.Helper()
	text, err := json.Marshal(body)
	check(x.t, err)
	status, answer, err := x.request(x.ctx, "guest", http.MethodPut, path, bytes.NewReader(text))
	check(x.t, err)
	if status >= 300 {
		x.t.Fatalf("PUT %s: %d %s", path, status, answer)
	}
}

// request asks the HTTP API as a user whose password is the name, and returns what it has to say to errors, else nothing.
func (x *attacker) request(ctx context.Context, user, method, path string, body io.Reader) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, x.api+path, body)
	if err != nil {
		return 0, "", err
	}
	req.SetBasicAuth(user, user)
	return x.do(req)
}

func (x *attacker) do(req *http.Request) (status int, answer string, err error) {
	resp, err := x.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return resp.StatusCode, string(bytes.TrimSpace(text)), nil
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, "", err
}

// urlOf is where a user, whose password is the name, finds a virtual host.
func urlOf(address, user, vhost string) string {
	return fmt.Sprintf("amqp://%s:%s@%s/%s", user, user, address, vhost)
}

// channel is one of a connection of its own, which is closed when the attacker leaves.
func (x *attacker) channel() (*amqp091.Channel, error) {
	conn, err := amqp091.Dial(urlOf(x.address, hostile, hostile))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(x.ctx, func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }) // it may be gone
	return conn.Channel()
}

// declare makes queues that are not durable, waiting for the last one only, and binds each to an exchange, unless that is "".
func (x *attacker) declare(count int, name func(int) string, exchange string, args amqp091.Table) {
	x.t.Helper()
	var list []amqp.Method
	if exchange != "" {
		list = append(list, &amqp.ExchangeDeclare{Exchange: exchange, Type: "fanout", NoWait: true})
	}
	for i := range count {
		list = append(list, &amqp.QueueDeclare{Queue: name(i), Arguments: amqp.Table(args), NoWait: true})
		if exchange != "" {
			list = append(list, &amqp.QueueBind{Queue: name(i), Exchange: exchange, NoWait: true})
		}
	}
	x.write(list...)
}

func numbered(i int) string { return fmt.Sprintf("q%d", i) }

// queue declares one that is durable.
func (x *attacker) queue(name string, args amqp091.Table) {
	x.t.Helper()
	ch, err := x.channel()
	check(x.t, err)
	_, err = ch.QueueDeclare(name, true, false, false, false, args)
	check(x.t, err)
}

// publish sends messages to a queue, through the default exchange, and waits for the confirm of the last.
func (x *attacker) publish(ctx context.Context, queue string, count int, m amqp091.Publishing) error {
	ch, err := x.channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var last *amqp091.DeferredConfirmation
	for range count {
		if last, err = ch.PublishWithDeferredConfirm("", queue, false, false, m); err != nil {
			return err
		}
	}
	_, err = last.WaitContext(ctx)
	return err
}

// raw is a connection, logged in and with the given number of channels open, to write anything to. What the broker says is thrown away.
func (x *attacker) raw(ctx context.Context, channels uint16) (net.Conn, error) {
	conn, err := net.Dial("tcp", x.address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	b := amqp.AppendMethod([]byte(amqp.ProtocolHeader), 0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00" + hostile + "\x00" + hostile), Locale: "en_US"})
	b = amqp.AppendMethod(b, 0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{ChannelMax: 2047, FrameMax: rawFrame}})
	b = amqp.AppendMethod(b, 0, &amqp.ConnectionOpen{VirtualHost: hostile})
	for channel := range channels {
		b = amqp.AppendMethod(b, channel+1, &amqp.ChannelOpen{})
	}
	_, err = conn.Write(b)
	go io.Copy(io.Discard, conn)
	return conn, err
}

const rawFrame = 128 << 10

// atOnce does something several times at once. An error means that none of them could.
func atOnce(times int, do func(i int) error) error {
	errs := make([]error, times)
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	if i := slices.Index(errs, nil); i >= 0 {
		return nil
	}
	return errs[0]
}

// again repeats something until ctx ends: an attacker that is thrown out comes back. An error means that it never could.
func again(ctx context.Context, do func() error) (err error) {
	could := false
	for ctx.Err() == nil {
		err = do()
		could = could || err == nil
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if could {
		return nil
	}
	return err
}

// hugeTable is as large as fits into a frame beside what else stands there, and within what the broker takes of entries.
func hugeTable() amqp.Table {
	table := amqp.Table{}
	for i := range 1000 {
		table[fmt.Sprintf("k%04d", i)] = strings.Repeat("x", 110)
	}
	return table
}
