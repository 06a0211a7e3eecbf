package integration

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/amqp"
)

// wireVectors: what is not an error, names, limits over a channel, and the end of a connection.
var wireVectors = []vector{
	{name: "unbind nothing", ask: func(s *session) string { return s.unbinding(s.name, s.name) }, want: "nothing"},
	{name: "unbind from no exchange", ask: func(s *session) string { return s.unbinding(s.name, "nothing-here") }, want: "nothing"},
	{name: "unbind no queue", ask: func(s *session) string { return s.unbinding("nothing-here", s.name) }, want: "nothing"},
	{name: "unbind neither", ask: func(s *session) string { return s.unbinding("nothing-here", "nor-here") }, want: "nothing"},
	{name: "unbind from the default exchange", ask: func(s *session) string { return s.unbinding("nothing-here", "") },
		want: "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange"},
	{name: "unbind exchanges", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			check(s.t, ch.ExchangeUnbind("amq.fanout", "k", "amq.direct", false, nil))
			check(s.t, ch.ExchangeUnbind("nothing-here", "k", "amq.direct", false, nil))
			return ch.ExchangeUnbind("amq.fanout", "k", "nothing-here", false, nil)
		})
	}, want: "nothing"},
	{name: "unbind another's queue", ask: func(s *session) string {
		other := openChannel(s.t, dial(s.t, s.url))
		_, err := other.QueueDeclare(s.name, false, false, true, false, nil)
		check(s.t, err)
		check(s.t, other.QueueBind(s.name, "bound", "amq.direct", false, nil))
		check(s.t, s.channel().QueueUnbind(s.name, "unbound", "amq.direct", nil))
		refused := s.closing(func(ch *amqp091.Channel) error { return ch.QueueUnbind(s.name, "bound", "amq.direct", nil) })
		check(s.t, s.channel().PublishWithContext(s.t.Context(), "amq.direct", "bound", false, false, amqp091.Publishing{Body: []byte("still bound")}))
		return refused[:len("channel 405 RESOURCE_LOCKED")] + ", " + string(s.get(other, s.name).Body)
	}, want: "channel 405 RESOURCE_LOCKED, still bound"},
	{name: "long login", ask: func(s *session) string {
		var all []string
		for _, size := range []int{3000, 5000, 9000} {
			conn, err := amqp091.DialConfig(s.url, amqp091.Config{Properties: amqp091.Table{"long": strings.Repeat("x", size)}})
			if err == nil {
				_ = conn.Close()
			}
			all = append(all, fmt.Sprint(err == nil))
		}
		return strings.Join(all, " ")
	}, want: "true true false", rabbitmq: "true false false", why: "before the login, RabbitMQ 4.1 takes frames of 8,192 octets, 3.10 of 4,096"},
	{name: "line ends in names", ask: (*session).lineEnds, want: "declared line-ends-in-names, bound, passive, unbound, deleted"},
	{name: "line ends where a queue is used", ask: func(s *session) string {
		s.queue(s.channel(), s.name, nil)
		var all []string
		for _, do := range []func(ch *amqp091.Channel) error{
			func(ch *amqp091.Channel) error { _, err := ch.QueuePurge(s.name+"\n", false); return err },
			func(ch *amqp091.Channel) error { _, _, err := ch.Get(s.name+"\n", true); return err },
			func(ch *amqp091.Channel) error {
				_, err := ch.Consume(s.name+"\n", "", true, false, false, false, nil)
				return err
			},
			func(ch *amqp091.Channel) error {
				return ch.PublishWithContext(s.t.Context(), "amq.direct\n", "k", false, false, amqp091.Publishing{})
			},
		} {
			all = append(all, strings.Join(strings.Fields(s.closing(do))[:3], " "))
		}
		return strings.Join(all, ", ")
	}, want: "channel 404 NOT_FOUND, channel 404 NOT_FOUND, channel 404 NOT_FOUND, channel 404 NOT_FOUND"},
	{name: "2000 consumers", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			s.queue(ch, s.name, nil)
			for range 2000 {
				if _, err := ch.Consume(s.name, "", true, false, false, true, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}, want: "nothing"},
	{name: "shared limit takes turns", ask: (*session).sharingTurns, want: "each was served"},
	{name: "shared limit without acks", ask: (*session).sharingWithoutAcks, want: "at first [], then [free], then all"},
	{name: "qos ends the shared limit", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		s.publishNumbers(3)
		check(s.t, ch.Qos(1, 0, true))
		check(s.t, ch.Qos(0, 0, false))
		deliveries, err := ch.Consume(s.name, "", false, false, false, false, nil)
		check(s.t, err)
		return s.bodies(consumer{ch, deliveries}, 3)
	}, want: "0 1 2"},
	{name: "several closes", ask: (*session).closingOften, want: "3 answers, open until the client hangs up"},
	{name: "capabilities", ask: func(s *session) string { return typed(s.conn.Properties["capabilities"]) },
		want: "F{authentication_failure_close=bool:true basic.nack=bool:true connection.blocked=bool:true consumer_cancel_notify=bool:true " +
			"consumer_priorities=bool:true direct_reply_to=bool:true exchange_exchange_bindings=bool:true per_consumer_qos=bool:true publisher_confirms=bool:true}"},
	{name: "heartbeats", ask: (*session).heartbeats, want: "no gap above 1.5s"},
}

// unbinding undoes a binding that was never made, of a queue and an exchange that may not be there.
func (s *session) unbinding(queue, exchange string) string {
	s.t.Helper()
	ch := s.channel()
	s.queue(ch, s.name, nil)
	check(s.t, ch.ExchangeDeclare(s.name, "direct", false, true, false, false, nil))
	return s.closing(func(ch *amqp091.Channel) error { return ch.QueueUnbind(queue, "k", exchange, nil) })
}

// lineEnds gives names with line ends to the methods that make and undo things, which take them out.
func (s *session) lineEnds() string {
	s.t.Helper()
	ch := s.channel()
	q, err := ch.QueueDeclare(s.name+"\r\n", false, false, true, false, nil)
	check(s.t, err)
	check(s.t, ch.ExchangeDeclare("\n"+s.name, "fanout", false, true, false, false, nil))
	check(s.t, ch.QueueBind(s.name+"\n", "", s.name+"\r", false, nil))
	check(s.t, ch.ExchangeBind("amq\n.fanout", "", "\n"+s.name, false, nil))
	check(s.t, ch.PublishWithContext(s.t.Context(), s.name, "", false, false, amqp091.Publishing{}))
	s.get(ch, s.name)
	_, err = ch.QueueDeclarePassive("\n"+s.name, false, false, true, false, nil)
	check(s.t, err)
	check(s.t, ch.ExchangeDeclarePassive(s.name+"\n", "fanout", false, true, false, false, nil))
	check(s.t, ch.ExchangeUnbind("amq\n.fanout", "", "\n"+s.name, false, nil))
	check(s.t, ch.QueueUnbind(s.name+"\n", "", s.name+"\r", nil)) // the exchange goes with its last binding
	_, err = ch.QueueDelete(s.name+"\n", false, false, false)
	check(s.t, err)
	check(s.t, ch.ExchangeDelete(s.name+"\n", false, false))
	gone := s.closing(func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclarePassive(s.name, false, false, true, false, nil)
		return err
	})
	if !strings.HasPrefix(gone, "channel 404") {
		return gone
	}
	return "declared " + q.Name + ", bound, passive, unbound, deleted"
}

// sharing consumes from a queue of each name on one channel that may hold one message unacked in all.
func (s *session) sharing(ch *amqp091.Channel, names ...string) (all []<-chan amqp091.Delivery) {
	s.t.Helper()
	check(s.t, ch.Qos(1, 0, true))
	for _, name := range names {
		s.queue(ch, s.name+name, nil)
		deliveries, err := ch.Consume(s.name+name, "", name == "free", false, false, false, nil)
		check(s.t, err)
		all = append(all, deliveries)
	}
	return all
}

// sharingTurns has three consumers share a limit of one message, of which the one that acks has always another.
func (s *session) sharingTurns() string {
	ch := s.channel()
	all := s.sharing(ch, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		for range 100 {
			s.publish(ch, s.name+name, amqp091.Publishing{})
		}
	}
	served := make([]bool, len(all))
	for range 90 {
		var d amqp091.Delivery
		select {
		case d = <-all[0]:
			served[0] = true
		case d = <-all[1]:
			served[1] = true
		case d = <-all[2]:
			served[2] = true
		case <-time.After(answerLimit):
			return "nobody is served"
		}
		check(s.t, d.Ack(false))
	}
	if served[0] && served[1] && served[2] {
		return "each was served"
	}
	return fmt.Sprint(served)
}

// sharingWithoutAcks has a consumer without acks share a limit with one that holds what it allows.
func (s *session) sharingWithoutAcks() string {
	ch := s.channel()
	all := s.sharing(ch, "held", "free")
	s.publish(ch, s.name+"held", amqp091.Publishing{})
	held := s.next(all[0])
	for range 3 {
		s.publish(ch, s.name+"free", amqp091.Publishing{Body: []byte("free")})
	}
	var first []string
	select {
	case d := <-all[1]:
		first = append(first, string(d.Body))
	case <-time.After(500 * time.Millisecond):
	}
	check(s.t, held.Ack(false))
	then := []string{s.body(all[1])}
	s.body(all[1])
	s.body(all[1])
	return fmt.Sprintf("at first %v, then %v, then all", first, then)
}

// closingOften closes a connection as several goroutines of a client may: each on its own.
func (s *session) closingOften() string {
	r := dialRaw(s.t, s.url).login()
	var sending sync.WaitGroup
	for range 3 {
		sending.Go(func() {
			r.send(0, &amqp.ConnectionClose{Closing: amqp.Closing{ReplyCode: 200, ReplyText: "bye"}})
		})
	}
	sending.Wait()
	for range 3 {
		r.expectMethod("connection.close-ok")
	}
	check(s.t, r.conn.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	if _, err := io.ReadAll(r.conn); !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("3 answers, then %v", err)
	}
	return "3 answers, open until the client hangs up"
}

// heartbeats listens to a connection that says nothing, at one heartbeat in two seconds. A busy machine may need several tries.
func (s *session) heartbeats() string {
	gap := time.Duration(0)
	for began := time.Now(); time.Since(began) < answerLimit; {
		if gap = s.heartbeatGap(); gap <= 1500*time.Millisecond {
			return "no gap above 1.5s"
		}
	}
	return fmt.Sprintf("a gap of %v", gap)
}

// heartbeatGap is the longest of three.
func (s *session) heartbeatGap() (longest time.Duration) {
	r := dialRaw(s.t, s.url).greet()
	defer r.conn.Close()
	r.startOk("guest", nil)
	r.expectMethod("connection.tune")
	r.send(0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{ChannelMax: 10, FrameMax: frameMax, Heartbeat: 2}}, &amqp.ConnectionOpen{VirtualHost: "/"})
	r.expectMethod("connection.open-ok")
	for range 3 {
		last := time.Now()
		_, err := r.frame()
		check(s.t, err)
		r.write(amqp.AppendHeartbeat(nil)...)
		longest = max(longest, time.Since(last))
	}
	return longest
}
