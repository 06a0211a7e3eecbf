//go:build !race

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/amqp"
)

// holding is something that a virtual host may have very much of. Each task is done on a holding of its own, but for those that leave it whole.
type holding struct {
	name       string
	some, most int           // how many are made; and the most that a virtual host may reach, with FAULTS_CEILINGS
	memory     int64         // the broker's limit for the most, in bytes; 0: memoryLimit
	each       time.Duration // time for a task, at most
	gather     func(x *attacker, name string, n int)
	leave      int // so many of the first tasks leave the holding whole: the next one has the same
	tasks      []task
}

// task is what a tenant does with a holding: something that takes long if it is done in one step.
type task struct {
	name string
	do   func(ctx context.Context, x *attacker, name string, n int) error
}

const (
	ceilingsVariable = "FAULTS_CEILINGS"
	tasksFor         = 3 * time.Second // for the tasks on a holding, where each may take less than that
)

// tenantTasks returns an attack for each holding, with one task after another, and a restart in the end. With FAULTS_CEILINGS=1 it returns one for
// each task, on the most that a virtual host may have.
func tenantTasks() (list []attack) {
	ceilings := os.Getenv(ceilingsVariable) != ""
	for _, h := range holdings {
		if !ceilings {
			a := h.attack("much-"+h.name, h.some, h.tasks)
			a.memory = 1 << 30
			list = append(list, a)
			continue
		}
		for i := range h.tasks {
			a := h.attack("most-"+h.name+"-"+h.tasks[i].name, h.most, h.tasks[i:i+1])
			a.memory, a.lasts = h.memory, max(a.lasts, 5*time.Second) // it may take that long
			list = append(list, a)
		}
	}
	return list
}

// errNotBegun: the tasks before took too long.
var errNotBegun = errors.New("a task could not begin in time")

func (h *holding) attack(name string, n int, list []task) attack {
	names := make([]string, len(list)) // of the holdings
	for i := range list {
		if names[i] = h.name + "." + list[i].name; i > 0 && i <= h.leave {
			names[i] = names[i-1]
		}
	}
	return attack{
		name: name, lasts: max(tasksFor, time.Duration(len(list))*h.each),
		setup: func(x *attacker) {
			for _, name := range slices.Compact(slices.Clone(names)) {
				h.gather(x, name, n)
			}
		},
		strike: func(ctx context.Context, x *attacker) error {
			struck := time.Now()
			for i := range list {
				w := &list[i]
				if ctx.Err() != nil {
					return fmt.Errorf("%w: %s", errNotBegun, w.name)
				}
				begun := time.Now()
				err := w.do(ctx, x, names[i], n)
				x.say("%s of %d %s: %v", w.name, n, h.name, time.Since(begun).Round(time.Millisecond))
				if err != nil && ctx.Err() == nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
			}
			// What they leave behind is the broker's to do: the neighbour waits for its next deadlines beside that.
			<-time.After(max(longestMillis*time.Millisecond, strikeFor-time.Since(struck)))
			return nil
		},
		later: restarted,
	}
}

var holdings = []holding{
	{name: "messages", some: 300_000, most: 10_000_000, memory: 4 << 30, each: 500 * time.Millisecond, gather: fillQueue, leave: 5, tasks: []task{
		{"list-deadlines", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.ask(ctx, http.MethodGet, "/curfew/deadlines/"+hostile+"/"+name+"?count=1000", "")
		}},
		{"group-dead-letters", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.ask(ctx, http.MethodPost, "/curfew/deadletters/"+hostile+"/"+name+"/groups", "{}")
		}},
		{"nack-all", func(ctx context.Context, x *attacker, name string, n int) error {
			return x.takeAll(ctx, name, func(conn net.Conn) { writeMethods(conn, &amqp.BasicNack{Multiple: true, Requeue: true}) }, n)
		}},
		{"recover-all", func(ctx context.Context, x *attacker, name string, n int) error {
			return x.takeAll(ctx, name, func(conn net.Conn) {
				writeMethods(conn, &amqp.BasicCancel{ConsumerTag: "all"}, &amqp.BasicRecover{Requeue: true})
			}, n)
		}},
		{"cut-off", func(ctx context.Context, x *attacker, name string, n int) error {
			return x.takeAll(ctx, name, func(conn net.Conn) { conn.Close() }, n)
		}},
		{"ack-all", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.takeAll(ctx, name, func(conn net.Conn) { writeMethods(conn, &amqp.BasicAck{Multiple: true}) }, 0)
		}},
		{"reject-all", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.takeAll(ctx, name, func(conn net.Conn) { writeMethods(conn, &amqp.BasicNack{Multiple: true}) }, 0)
		}},
		{"purge", func(_ context.Context, x *attacker, name string, n int) error {
			return x.with(func(ch *amqp091.Channel) error {
				purged, err := ch.QueuePurge(name, false)
				return errors.Join(err, wants("messages purged", n, purged), emptied(ch, name))
			})
		}},
		{"delete", func(_ context.Context, x *attacker, name string, n int) error {
			return x.with(func(ch *amqp091.Channel) error {
				deleted, err := ch.QueueDelete(name, false, false, false)
				return errors.Join(err, wants("messages deleted", n, deleted))
			})
		}},
		{"limit", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.setPolicy(ctx, name, `{"max-length":10}`)
		}},
		{"limit-and-dead-letter", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.setPolicy(ctx, name, `{"max-length":10,"dead-letter-exchange":"","dead-letter-routing-key":"`+target+`"}`)
		}},
		{"expire-now", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.ask(ctx, http.MethodPut, "/curfew/policies/"+hostile+"/"+name, policyBody(name, `{"message-ttl":1}`))
		}},
		{"expire-the-queue", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.setPolicy(ctx, name, `{"expires":1}`)
		}},
		dropTheVirtualHost,
	}},
	{name: "deadlines", some: 300_000, most: 5_000_000, memory: 4 << 30, each: 4 * time.Second, gather: fillDue, tasks: []task{
		{"drop", gone}, {"dead-letter", gone}, // they are due at once while it lasts
	}},
	{name: "exchanges", some: 2000, most: 9900, each: time.Second, gather: fanOut, leave: 3, tasks: []task{
		{"publish", func(ctx context.Context, x *attacker, name string, _ int) error {
			return atOnce(60, func(int) error { return x.publishTo(ctx, name, 10) })
		}},
		{"dead-letters", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.deadLetters(ctx, name, 600)
		}},
		{"list", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.ask(ctx, http.MethodGet, "/exchanges/"+hostile+"/"+name+"/bindings/source", "")
		}},
		{"delete", func(_ context.Context, x *attacker, name string, _ int) error {
			return x.with(func(ch *amqp091.Channel) error { return ch.ExchangeDelete(name, false, false) })
		}},
	}},
	bindings("headers-bindings", "headers"),
	bindings("topic-bindings", "topic"),
	bindings("direct-bindings", "direct"),
	{name: "queues", some: 2000, most: 50_000, memory: 1 << 30, each: time.Second, gather: manyQueues, tasks: []task{
		{"policies", func(ctx context.Context, x *attacker, name string, n int) error {
			for i := range min(n/50, 1000) {
				if err := x.ask(ctx, http.MethodPut, fmt.Sprintf("/policies/%s/%s%d", hostile, name, i), fmt.Sprintf(
					`{"pattern":"^(?!x%d).*[0-9]z%d$","apply-to":"queues","definition":{"max-length":5},"priority":%d}`, i, i, i)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"one-policy-for-all", func(ctx context.Context, x *attacker, name string, _ int) error {
			return x.ask(ctx, http.MethodPut, "/policies/"+hostile+"/"+name, `{"pattern":".","apply-to":"queues","definition":{"max-length":5}}`)
		}},
		dropTheVirtualHost,
	}},
	{name: "exclusive-queues", some: 5000, most: 50_000, memory: 1 << 30, each: time.Second, gather: func(*attacker, string, int) {}, tasks: []task{
		{"cut-off", func(ctx context.Context, x *attacker, name string, n int) error {
			conn, err := x.raw(ctx, 1)
			if err != nil {
				return err
			}
			var list []amqp.Method
			for i := range n {
				list = append(list, &amqp.QueueDeclare{Queue: name + numbered(i), Exclusive: true, NoWait: true}, &amqp.QueueBind{Queue: name + numbered(i), Exchange: "amq.fanout", NoWait: true})
			}
			if !writeUntil(ctx, conn, methods(list...)) {
				return errors.New("they could not be declared")
			}
			if err := x.waitGone(ctx, name+numbered(n-1), false); err != nil {
				return err
			}
			conn.Close()
			return x.waitGone(ctx, name+numbered(n-1), true)
		}},
	}},
	{name: "consumers", some: 5000, most: 50_000, memory: 1 << 30, each: time.Second, gather: func(x *attacker, name string, _ int) { x.queue(name, nil) }, tasks: []task{
		{"cut-off", func(ctx context.Context, x *attacker, name string, n int) error {
			conn, err := x.raw(ctx, 1)
			if err != nil {
				return err
			}
			var list []amqp.Method
			for i := range n {
				list = append(list, &amqp.BasicConsume{Queue: name, ConsumerTag: numbered(i), NoWait: true, Arguments: amqp.Table{"x-priority": int32(i % 1000)}})
			}
			if !writeUntil(ctx, conn, methods(list...)) {
				return errors.New("they could not be started")
			}
			if err := x.publish(ctx, name, 1000, amqp091.Publishing{}); err != nil {
				return err
			}
			conn.Close()
			return x.waitReady(ctx, name, 1000)
		}},
	}},
	{name: "delayed-messages", some: 100_000, most: 2_000_000, memory: 4 << 30, each: time.Second, gather: delay, tasks: []task{
		{"due-at-once", func(ctx context.Context, x *attacker, name string, n int) error { return x.waitReady(ctx, name, n) }},
		{"delete-the-exchange", func(_ context.Context, x *attacker, name string, _ int) error {
			return x.with(func(ch *amqp091.Channel) error { return ch.ExchangeDelete(name, false, false) })
		}},
	}},
	{name: "locks", some: 100_000, most: 2_000_000, memory: 4 << 30, each: time.Second, gather: func(x *attacker, name string, n int) {
		fillWith(x, name, n, amqp091.Table{"x-lock-duration": int32(1000)}, "3600000")
	}, tasks: []task{
		{"lapse", func(ctx context.Context, x *attacker, name string, n int) error {
			return x.takeAll(ctx, name, func(net.Conn) {}, n)
		}},
	}},
	{name: "transactions", some: 50_000, most: 65_000, memory: 1 << 30, each: time.Second, gather: func(x *attacker, name string, _ int) { x.queue(name, nil) }, tasks: []task{
		{"commit", func(ctx context.Context, x *attacker, name string, n int) error {
			return x.with(func(ch *amqp091.Channel) error {
				if err := ch.Tx(); err != nil {
					return err
				}
				for range n {
					if err := ch.PublishWithContext(ctx, "", name, false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent}); err != nil {
						return err
					}
				}
				return ch.TxCommit()
			})
		}},
	}},
	{name: "connections", some: 200, most: 900, each: 2 * time.Second, gather: func(x *attacker, name string, _ int) { x.queue(name, nil) }, tasks: []task{
		{"all-at-once", func(ctx context.Context, x *attacker, name string, n int) error {
			all, leave := context.WithCancel(ctx)
			defer leave() // all of them are cut at once
			return atOnce(n, func(int) error {
				conn, err := x.raw(all, 3)
				if err == nil && !writeUntil(all, conn, amqp.AppendMethod(nil, 1, &amqp.BasicConsume{Queue: name})) {
					err = errors.New("no consumer")
				}
				return err
			})
		}},
	}},
}

// bindings are those of one queue to one exchange of a type.
func bindings(name, kind string) holding {
	return holding{name: name, some: 20_000, most: 200_000, memory: 1 << 30, each: time.Second,
		gather: func(x *attacker, name string, n int) { bind(x, name, kind, n) },
		leave:  3,
		tasks: []task{
			{"publish", func(ctx context.Context, x *attacker, name string, _ int) error {
				return atOnce(60, func(int) error { return x.publishTo(ctx, name, 10) })
			}},
			{"dead-letters", func(ctx context.Context, x *attacker, name string, _ int) error { return x.deadLetters(ctx, name, 600) }},
			{"list", func(ctx context.Context, x *attacker, name string, _ int) error {
				return x.ask(ctx, http.MethodGet, "/queues/"+hostile+"/"+name+"/bindings", "")
			}},
			{"delete-the-queue", func(_ context.Context, x *attacker, name string, _ int) error {
				return x.with(func(ch *amqp091.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
			}},
			{"delete-the-exchange", func(_ context.Context, x *attacker, name string, _ int) error {
				return x.with(func(ch *amqp091.Channel) error { return ch.ExchangeDelete(name, false, false) })
			}},
			dropTheVirtualHost,
		}}
}

// gone waits until all messages of a queue have expired.
func gone(ctx context.Context, x *attacker, name string, _ int) error {
	return x.waitReady(ctx, name, 0)
}

// dropTheVirtualHost is the last task of a holding.
var dropTheVirtualHost = task{"drop-the-virtual-host", func(ctx context.Context, x *attacker, _ string, _ int) error {
	status, text, err := x.request(ctx, "guest", http.MethodDelete, "/vhosts/"+hostile, nil)
	return errors.Join(err, wants("status of "+text, http.StatusNoContent, status))
}}

// with does something with a channel of its own.
func (x *attacker) with(do func(*amqp091.Channel) error) error {
	ch, err := x.channel()
	if err != nil {
		return err
	}
	return do(ch)
}

// ask makes a request as the tenant, which has to succeed.
func (x *attacker) ask(ctx context.Context, method, path, body string) error {
	status, answer, err := x.request(ctx, hostile, method, path, strings.NewReader(body))
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, answer)
	}
	return err
}

func wants(what string, want, got int) error {
	if want == got {
		return nil
	}
	return fmt.Errorf("%s: %d, not %d", what, got, want)
}

// emptied reports an error unless the queue is empty now.
func emptied(ch *amqp091.Channel, queue string) error {
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	return errors.Join(err, wants("messages left", 0, q.Messages))
}

func policyBody(queue, definition string) string {
	return fmt.Sprintf(`{"pattern":"^%s$","apply-to":"queues","priority":9,"definition":%s}`, strings.ReplaceAll(queue, ".", `\\.`), definition)
}

func (x *attacker) setPolicy(ctx context.Context, queue, definition string) error {
	return x.ask(ctx, http.MethodPut, "/policies/"+hostile+"/"+queue, policyBody(queue, definition))
}

// methods encodes methods of channel 1.
func methods(list ...amqp.Method) (b []byte) {
	for _, m := range list {
		b = amqp.AppendMethod(b, 1, m)
	}
	return b
}

func writeMethods(conn net.Conn, list ...amqp.Method) { _, _ = conn.Write(methods(list...)) } // what fails shows in the queue

// takeAll has one consumer without a limit take what is in a queue, settles it, and waits until the queue has n messages again.
func (x *attacker) takeAll(ctx context.Context, queue string, settle func(net.Conn), n int) error {
	conn, err := x.raw(ctx, 1)
	if err != nil {
		return err
	}
	if !writeUntil(ctx, conn, methods(&amqp.BasicConsume{Queue: queue, ConsumerTag: "all"})) {
		return errors.New("no consumer")
	}
	if err := x.waitReady(ctx, queue, 0); err != nil {
		return err
	}
	if n > 0 { // or the consumer would take them again
		_ = writeUntil(ctx, conn, methods(&amqp.BasicCancel{ConsumerTag: "all"}))
	}
	settle(conn)
	return x.waitReady(ctx, queue, n)
}

// waitReady waits until a queue has n messages that are ready.
func (x *attacker) waitReady(ctx context.Context, queue string, n int) error {
	return x.with(func(ch *amqp091.Channel) error {
		for {
			q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
			if err != nil || q.Messages == n {
				return err
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%q has %d ready messages, not %d: %w", queue, q.Messages, n, ctx.Err())
			}
		}
	})
}

// waitGone waits until a queue is gone, or until it is there.
func (x *attacker) waitGone(ctx context.Context, queue string, gone bool) error {
	for {
		status, answer, err := x.request(ctx, hostile, http.MethodGet, "/queues/"+hostile+"/"+queue+"?columns=name", nil)
		if err != nil || (status == http.StatusNotFound) == gone {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%q: %d %s: %w", queue, status, answer, ctx.Err())
		}
	}
}

// delay has n messages wait in an exchange until the attack has begun.
func delay(x *attacker, name string, n int) {
	x.t.Helper()
	const batch = 1000
	x.queue(name, nil)
	check(x.t, x.with(func(ch *amqp091.Channel) error {
		err := ch.ExchangeDeclare(name, "x-delayed-message", true, false, false, false, amqp091.Table{"x-delayed-type": "fanout"})
		return errors.Join(err, ch.QueueBind(name, "", name, false, nil))
	}))
	conn, err := x.raw(x.ctx, 1)
	check(x.t, err)
	defer conn.Close()
	due := int32(x.soon(1900 + n/100))
	if strings.HasSuffix(name, "delete-the-exchange") {
		due = 3_600_000
	}
	one := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{Exchange: name})
	p := amqp.Properties{Headers: amqp.Table{"x-delay": due}, DeliveryMode: 2}
	one = amqp.AppendContent(one, 1, p.Append(nil), noise[:12], rawFrame)
	for many := bytes.Repeat(one, batch); n > 0; n -= batch {
		_, err := conn.Write(many)
		check(x.t, err)
	}
	check(x.t, x.with(func(ch *amqp091.Channel) error { // what was written before is handled by then, or nearly
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	}))
}

// fillQueue makes a queue with n persistent messages, each with a deadline that is far away.
func fillQueue(x *attacker, name string, n int) { fillWith(x, name, n, nil, "3600000") }

// fillDue makes a queue with n messages that are due when the attack has begun.
func fillDue(x *attacker, name string, n int) {
	args := amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
	if strings.HasSuffix(name, "drop") {
		args = nil
	}
	fillWith(x, name, n, args, strconv.Itoa(x.soon(1900+n/200)))
}

func fillWith(x *attacker, name string, n int, args amqp091.Table, expiration string) {
	x.t.Helper()
	const batch = 1000
	x.queue(target, nil)
	x.queue(name, args)
	conn, err := x.raw(x.ctx, 1)
	check(x.t, err)
	defer conn.Close()
	one := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: name})
	p := amqp.Properties{Expiration: expiration, DeliveryMode: 2}
	one = amqp.AppendContent(one, 1, p.Append(nil), noise[:12], rawFrame)
	many := bytes.Repeat(one, batch)
	for range n / batch {
		_, err := conn.Write(many)
		check(x.t, err)
	}
	ctx, cancel := context.WithTimeout(x.ctx, startLimit)
	defer cancel()
	check(x.t, x.waitReady(ctx, name, n))
}

// write has the broker handle methods, none of which it answers.
func (x *attacker) write(list ...amqp.Method) {
	x.t.Helper()
	const last = "handled" // a queue that is there, then, until the connection ends
	conn, err := x.raw(x.ctx, 1)
	check(x.t, err)
	_, err = conn.Write(methods(append(list, &amqp.QueueDeclare{Queue: last, Exclusive: true, NoWait: true})...))
	check(x.t, err)
	ctx, cancel := context.WithTimeout(x.ctx, startLimit)
	defer cancel()
	check(x.t, x.waitGone(ctx, last, false))
	conn.Close()
	check(x.t, x.waitGone(ctx, last, true))
}

// fanOut binds a fanout exchange to n others.
func fanOut(x *attacker, name string, n int) {
	x.t.Helper()
	list := []amqp.Method{&amqp.ExchangeDeclare{Exchange: name, Type: "fanout", Durable: true, NoWait: true}}
	for i := range n { // they are those of all tasks: the number of exchanges is limited
		list = append(list, &amqp.ExchangeDeclare{Exchange: numbered(i), Type: "fanout", Durable: true, NoWait: true},
			&amqp.ExchangeBind{ExchangeBinding: amqp.ExchangeBinding{Destination: numbered(i), Source: name, NoWait: true}})
	}
	x.write(list...)
}

// bind binds a queue to an exchange n times. No binding of type headers or direct matches what is published; those of type topic all do.
func bind(x *attacker, name, kind string, n int) {
	x.t.Helper()
	x.queue(name, nil)
	list := []amqp.Method{&amqp.ExchangeDeclare{Exchange: name, Type: kind, Durable: true, NoWait: true}}
	for i := range n {
		one := amqp.QueueBind{Queue: name, Exchange: name, RoutingKey: fmt.Sprintf("key%d", i), NoWait: true}
		switch kind {
		case "headers":
			one.Arguments = amqp.Table{"a": int32(i), "b": int32(i)}
		case "topic":
			one.RoutingKey = fmt.Sprintf("#.%d.#", i)
		}
		list = append(list, &one)
	}
	x.write(list...)
}

func manyQueues(x *attacker, _ string, n int) {
	x.t.Helper()
	var list []amqp.Method
	for i := range n {
		list = append(list, &amqp.QueueDeclare{Queue: fmt.Sprintf("queue-with-a-long-name-%d", i), Durable: true, NoWait: true})
	}
	x.write(list...)
}

// publishTo publishes messages to an exchange and waits until the broker has handled them.
func (x *attacker) publishTo(ctx context.Context, exchange string, n int) error {
	return x.with(func(ch *amqp091.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		var last *amqp091.DeferredConfirmation
		for i := range n {
			var err error
			if last, err = ch.PublishWithDeferredConfirm(exchange, fmt.Sprintf("no.%d", i), false, false,
				amqp091.Publishing{Headers: amqp091.Table{"a": int32(-1), "b": int32(-1)}}); err != nil {
				return err
			}
		}
		_, err := last.WaitContext(ctx)
		return err
	})
}

// deadLetters has n messages expire at once into an exchange.
func (x *attacker) deadLetters(ctx context.Context, exchange string, n int) error {
	queue := exchange + ".fuse"
	if err := x.with(func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp091.Table{"x-dead-letter-exchange": exchange})
		return err
	}); err != nil {
		return err
	}
	return x.publish(ctx, queue, n, amqp091.Publishing{Expiration: "100", Headers: amqp091.Table{"a": int32(-1), "b": int32(-1)}})
}

// restartMost is how long a start may take beside what a virtual host has.
const restartMost = 20 * time.Second

// restarted kills the broker while deadlines of the neighbour wait, and holds the next start to serve them: each once, not early, and
// late only by as much as nobody could be there.
func restarted(x *attacker) error {
	const count = 500
	url := urlOf(x.address, "guest", neighbourVHost)
	conn, err := amqp091.Dial(url)
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	due := make([]time.Time, count)
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var last *amqp091.DeferredConfirmation
	for i := range due {
		ttl := time.Duration(5+i%30) * 100 * time.Millisecond
		due[i] = time.Now().Add(ttl)
		if last, err = ch.PublishWithDeferredConfirm("", waiting, false, false, amqp091.Publishing{
			MessageId: strconv.Itoa(i), DeliveryMode: amqp091.Persistent, Expiration: strconv.FormatInt(ttl.Milliseconds(), 10),
		}); err != nil {
			return err
		}
	}
	if _, err := last.WaitContext(x.ctx); err != nil {
		return err
	}
	x.p.kill()
	begun := time.Now()
	p := x.relaunch()
	defer p.kill()
	p.ready()
	ready := time.Now()
	x.t.Logf("restarted in %v", ready.Sub(begun).Round(time.Millisecond))
	if took := ready.Sub(begun); took > restartMost {
		return fmt.Errorf("the start took %v, more than %v", took, restartMost)
	}
	return arrivals(x, p, due, ready)
}

// arrivals waits for the neighbour's dead letters after a restart.
func arrivals(x *attacker, p *process, due []time.Time, ready time.Time) error {
	conn, err := amqp091.Dial(urlOf(p.address(), "guest", neighbourVHost))
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	deliveries, err := ch.Consume(dead, "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	var late ordered
	seen := make([]bool, len(due))
	over := time.After(drainFor + 5*time.Second)
	for range due {
		select {
		case d := <-deliveries:
			i, err := strconv.Atoi(d.MessageId)
			if err != nil || i >= len(due) || seen[i] {
				return fmt.Errorf("after the restart %q came twice, or nobody has sent it", d.MessageId)
			}
			seen[i] = true
			now := time.Now()
			if now.Before(due[i]) {
				return fmt.Errorf("after the restart message %d came %v before its deadline", i, due[i].Sub(now))
			}
			if due[i].After(ready) {
				late = append(late, now.Sub(due[i]))
			}
		case <-over:
			return fmt.Errorf("after the restart only %d of %d messages came", count(seen), len(due))
		}
	}
	slices.Sort(late)
	x.t.Logf("after the restart: %d deadlines, p99 %v", len(late), late.p99())
	return nil
}

func count(seen []bool) (n int) {
	for _, is := range seen {
		if is {
			n++
		}
	}
	return n
}
