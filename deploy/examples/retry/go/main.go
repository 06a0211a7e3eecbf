// A worker. What fails is tried again after 1, 2, 4, 8 and 16 seconds: ../README.md has the picture. AMQP_URL says where RabbitMQ is.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

const mostRetries = 5

// work: yours goes here. In this example a job is a name and how often it fails, as in "mail 2".
func work(job string, retries int) error {
	_, failures, _ := strings.Cut(job, " ")
	n, err := strconv.Atoi(failures)
	if err == nil && retries < n {
		err = errors.New("failed")
	}
	return err
}

func declare(ch *amqp.Channel) error {
	_, err := ch.QueueDeclare("failed", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	if err != nil {
		return err
	}
	_, err = ch.QueueDeclare("jobs", true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"})
	if err != nil {
		return err
	}
	if err := ch.ExchangeDeclare("retry", "fanout", true, false, false, false, nil); err != nil {
		return err
	}
	// Dead letters keep their routing key, so they go back to the queue that it names.
	_, err = ch.QueueDeclare("retry", true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-exchange": "",
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
	if err != nil {
		return err
	}
	return ch.QueueBind("retry", "", "retry", false, nil)
}

func handle(ch *amqp.Channel, message amqp.Delivery) error {
	job := string(message.Body)
	name, _, _ := strings.Cut(job, " ")
	retries, _ := strconv.Atoi(fmt.Sprint(message.Headers["retries"])) // 0 at first; other clients write it as another type of integer
	err := work(job, retries)
	switch {
	case err == nil:
		fmt.Printf("%s: done after %d retries\n", name, retries)
	case retries == mostRetries:
		fmt.Printf("%s: %v for good\n", name, err)
		return message.Reject(false)
	default:
		seconds := 1 << retries
		if err := retry(ch, message, retries+1, seconds); err != nil {
			return err
		}
		fmt.Printf("%s: %v, again in %d s\n", name, err, seconds)
	}
	return message.Ack(false) // last: after a crash in between a job is there twice, never lost
}

func retry(ch *amqp.Channel, message amqp.Delivery, retries, seconds int) error {
	headers := amqp.Table{"retries": int32(retries)}
	for name, value := range message.Headers {
		if name != "retries" {
			headers[name] = value
		}
	}
	confirm, err := ch.PublishWithDeferredConfirm("retry", message.RoutingKey, false, false, amqp.Publishing{
		Headers: headers, Expiration: strconv.Itoa(1000 * seconds), DeliveryMode: amqp.Persistent, Body: message.Body,
		ContentType: message.ContentType, MessageId: message.MessageId, CorrelationId: message.CorrelationId, Type: message.Type})
	if err != nil {
		return err
	}
	if !confirm.Wait() {
		return errors.New("the queue retry did not take the job")
	}
	return nil
}

func run() error {
	conn, err := amqp.Dial(cmp.Or(os.Getenv("AMQP_URL"), "amqp://guest:guest@127.0.0.1:5672/%2F"))
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := errors.Join(ch.Confirm(false), declare(ch), ch.Qos(10, 0, false)); err != nil {
		return err
	}
	messages, err := ch.Consume("jobs", "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	fmt.Println("waiting for jobs")
	for message := range messages {
		if err := handle(ch, message); err != nil {
			return err
		}
	}
	return errors.New("the connection was lost")
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
