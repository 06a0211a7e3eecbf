package integration

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker"
)

// TestStories plays testdata/*.txt: hours of time to live in milliseconds, through amqp091-go, server, broker and monitor as they are, on
// connections and a clock of testing/synctest's. One line is one step:
//
//	queue NAME [ttl=MS] [dlx=EXCHANGE] [key=KEY] [expires=MS] [maxlen=N]   dlx=dlx leads to the dead letters the story expects
//	exchange NAME KIND · bind QUEUE EXCHANGE KEY · delete QUEUE
//	publish QUEUE ID [ttl=MS] [delay=MS] [until=MS] · advance DURATION         until: an absolute deadline, from now
//	begin · commit · rollback                                                 a transaction, of publishes without a deadline
//	get QUEUE ID|nothing · ack ID · reject ID · requeue ID · consume QUEUE [prefetch=N] · cancel QUEUE
//	expect dead-letter ID [late<=DURATION] [reason=R] [from=QUEUE] [original-expiration=MS] · expect parked ID [...]
//	expect delivered ID · expect deaths ID QUEUE:REASON:COUNT... · expect ready QUEUE N
//	expect no dead-letter · expect no delivery · expect no queue NAME
//
// Each dead letter is held to its deadline (never before it), and none may be left over at the end. Every story is played
// twice: as time passes, and by a manual clock.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	check(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, startVirtual(t), string(text)) })
		})
		t.Run(name+"/manual clock", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, startVirtualBy(t, broker.Options{Manual: true}), string(text)) })
		})
	}
}

func play(t *testing.T, virtual *virtual, text string) {
	defer virtual.stop()
	s := newStory(t, virtual)
	line := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line++
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if err := s.step(words); err != nil {
			t.Fatalf("line %d: %s: %v", line, lines.Text(), err)
		}
	}
	if err := s.expectNone("dead letter", s.dead); err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// story is the state of one script.
type story struct {
	t *testing.T
	*virtual
	conn       *amqp091.Connection
	ch         *amqp091.Channel
	queueTTL   map[string]int64     // ms, where one is set
	deadline   map[string]time.Time // of each message with a time to live
	held       map[string]amqp091.Delivery
	returned   map[string]time.Time // when it was last requeued
	dead       chan dated           // arrivals in the dead-letter queue
	deliveries chan amqp091.Delivery
}

// dated is a delivery with the instant it arrived.
type dated struct {
	amqp091.Delivery
	at time.Time
}

func newStory(t *testing.T, v *virtual) *story {
	conn := v.dial()
	ch := openChannel(t, conn)
	s := &story{
		t: t, virtual: v, conn: conn, ch: ch,
		queueTTL: map[string]int64{}, deadline: map[string]time.Time{},
		held: map[string]amqp091.Delivery{}, returned: map[string]time.Time{},
		dead: make(chan dated, 100), deliveries: make(chan amqp091.Delivery, 100),
	}
	check(t, ch.ExchangeDeclare("dlx", "fanout", false, false, false, false, nil))
	_, err := ch.QueueDeclare("dead", false, false, true, false, nil)
	check(t, err)
	check(t, ch.QueueBind("dead", "", "dlx", false, nil))
	arriving, err := ch.Consume("dead", "dead", true, true, false, false, nil)
	check(t, err)
	go func() {
		for d := range arriving {
			s.dead <- dated{d, s.now()}
		}
	}()
	return s
}

// step does one line. Whatever it caused has happened when it returns, as far as it happens without time passing.
func (s *story) step(words []string) error {
	verb, args := words[0], words[1:]
	options := map[string]string{}
	for len(args) > 0 && strings.Contains(args[len(args)-1], "=") {
		name, value, _ := strings.Cut(args[len(args)-1], "=")
		options[name], args = value, args[:len(args)-1]
	}
	defer synctest.Wait()
	switch verb {
	case "queue":
		return s.declareQueue(args[0], options)
	case "exchange":
		return s.ch.ExchangeDeclare(args[0], args[1], false, false, false, false, nil)
	case "bind":
		return s.ch.QueueBind(args[0], args[2], args[1], false, nil)
	case "delete":
		_, err := s.ch.QueueDelete(args[0], false, false, false)
		return err
	case "publish":
		return s.publish(args[0], args[1], options)
	case "begin":
		return s.ch.Tx()
	case "commit":
		return s.ch.TxCommit()
	case "rollback":
		return s.ch.TxRollback()
	case "advance":
		return s.advance(args[0])
	case "get":
		return s.get(args[0], args[1])
	case "consume":
		return s.consume(args[0], options["prefetch"])
	case "cancel":
		return s.ch.Cancel(args[0], false)
	case "ack":
		return s.settle(args[0], func(d amqp091.Delivery) error { return d.Ack(false) })
	case "reject":
		return s.settle(args[0], func(d amqp091.Delivery) error { return d.Reject(false) })
	case "requeue":
		s.returned[args[0]] = s.now()
		return s.settle(args[0], func(d amqp091.Delivery) error { return d.Nack(false, true) })
	case "expect":
		return s.expect(args, options)
	}
	return fmt.Errorf("unknown step %q", verb)
}

func (s *story) declareQueue(name string, options map[string]string) error {
	arguments := map[string]string{"ttl": "x-message-ttl", "expires": "x-expires", "maxlen": "x-max-length",
		"dlx": "x-dead-letter-exchange", "key": "x-dead-letter-routing-key"}
	args := amqp091.Table{}
	for option, value := range options {
		args[arguments[option]] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			args[arguments[option]] = n
		}
	}
	delete(s.queueTTL, name)
	if ttl, set := args["x-message-ttl"].(int64); set {
		s.queueTTL[name] = ttl
	}
	_, err := s.ch.QueueDeclare(name, false, false, false, false, args)
	return err
}

func (s *story) publish(queue, id string, options map[string]string) error {
	const never = time.Duration(1<<63 - 1)
	millis := func(option string, absent time.Duration) time.Duration {
		if n, err := strconv.ParseInt(options[option], 10, 64); err == nil {
			return time.Duration(n) * time.Millisecond
		}
		return absent
	}
	delay, live, until := millis("delay", 0), millis("ttl", never), millis("until", never)
	if ttl, limited := s.queueTTL[queue]; limited {
		live = min(live, time.Duration(ttl)*time.Millisecond)
	}
	if live != never {
		until = min(until, delay+live)
	}
	if until != never {
		s.deadline[id] = s.now().Add(until)
	}
	message := amqp091.Publishing{Body: []byte(id), Expiration: options["ttl"], Headers: amqp091.Table{}}
	if delay != 0 {
		message.Headers["x-delay"] = delay.Milliseconds()
	}
	if at := millis("until", never); at != never {
		message.Headers["x-expires-at"] = s.now().Add(at).UnixMilli()
	}
	return s.ch.PublishWithContext(s.t.Context(), "", queue, true, false, message)
}

func (s *story) advance(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	return s.virtual.advance(d)
}

func (s *story) get(queue, want string) error {
	d, ok, err := s.ch.Get(queue, false)
	if err != nil {
		return err
	}
	if !ok {
		return same("head", "nothing", want)
	}
	s.held[string(d.Body)] = d
	return same("head", string(d.Body), want)
}

func (s *story) consume(queue, prefetch string) error {
	if n, err := strconv.Atoi(prefetch); err == nil {
		if err := s.ch.Qos(n, 0, false); err != nil {
			return err
		}
	}
	arriving, err := s.ch.Consume(queue, queue, false, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for d := range arriving {
			s.deliveries <- d
		}
	}()
	return nil
}

func (s *story) settle(id string, do func(amqp091.Delivery) error) error {
	d, held := s.held[id]
	if !held {
		return fmt.Errorf("%s is not held", id)
	}
	delete(s.held, id)
	return do(d)
}
