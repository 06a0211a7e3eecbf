"""One side of a deadline run, with python3-pika.

deadlines.py declare URL QUEUE DLX DLQ   the queue, its dead-letter exchange and a queue bound to that
deadlines.py publish URL QUEUE           "ID TTL_MS" lines on stdin; prints "sent ID TTL_MS BEFORE_US AFTER_US" (after: confirmed)
deadlines.py collect URL DLQ COUNT       prints "ready", then "got ID ARRIVED_US" per message, and ends after COUNT
deadlines.py get     URL QUEUE           prints "head ID" or "empty" and puts the message back
"""
import sys
import time

import pika


def now_us():
    return time.time_ns() // 1000


def say(*words):
    print(*words, flush=True)


def declare(channel, queue, dlx, dlq):
    channel.exchange_declare(dlx, exchange_type="direct", durable=True)
    channel.queue_declare(dlq, durable=True)
    channel.queue_bind(dlq, dlx, routing_key=queue)
    channel.queue_declare(queue, durable=True, arguments={"x-dead-letter-exchange": dlx})


def publish(channel, queue):
    channel.confirm_delivery()
    for line in sys.stdin:
        number, ttl = line.split()
        properties = pika.BasicProperties(expiration=ttl, delivery_mode=2, message_id=number)
        before = now_us()
        channel.basic_publish("", queue, number.encode(), properties, mandatory=True)
        say("sent", number, ttl, before, now_us())


def collect(channel, queue, count):
    channel.basic_qos(prefetch_count=500)
    left = int(count)

    def arrived(ch, method, _properties, body):
        nonlocal left
        at = now_us()
        ch.basic_ack(method.delivery_tag)
        say("got", body.decode(), at)
        left -= 1
        if left == 0:
            ch.stop_consuming()

    channel.basic_consume(queue, arrived)
    say("ready")
    channel.start_consuming()


def get(channel, queue):
    method, _properties, body = channel.basic_get(queue)
    if method is None:
        say("empty")
        return
    say("head", body.decode())
    channel.basic_nack(method.delivery_tag, requeue=True)


def main():
    role, url, *rest = sys.argv[1:]
    roles = {"declare": declare, "publish": publish, "collect": collect, "get": get}
    connection = pika.BlockingConnection(pika.URLParameters(url))
    roles[role](connection.channel(), *rest)
    connection.close()


if __name__ == "__main__":
    main()
