"""An application written for the delayed-message plugin, with python3-pika.

delayed.py declare URL   of each type an exchange delayed.TYPE, and a queue jobs.TYPE bound for key eu.new and header region=eu
delayed.py publish URL   "TYPE ID KEY REGION DELAY_MS" lines on stdin, DELAY_MS may be none; prints "sent TYPE ID BEFORE_US" (confirmed)
delayed.py refused URL   declares an exchange without x-delayed-type and one with an unknown type; prints each answer
"""
import sys
import time

import pika


def say(*words):
    print(*words, flush=True)


def declare(connection):
    channel = connection.channel()
    for kind in ("direct", "topic", "fanout", "headers"):
        channel.exchange_declare("delayed." + kind, "x-delayed-message", durable=True, arguments={"x-delayed-type": kind})
        channel.queue_declare("jobs." + kind, durable=True)
        key = "eu.*" if kind == "topic" else "eu.new"
        arguments = {"x-match": "all", "region": "eu"} if kind == "headers" else None
        channel.queue_bind("jobs." + kind, "delayed." + kind, key, arguments=arguments)


def publish(connection):
    channel = connection.channel()
    channel.confirm_delivery()
    for line in sys.stdin:
        kind, number, key, region, delay = line.split()
        headers = {"region": region}
        if delay != "none":
            headers["x-delay"] = int(delay)
        before = time.time_ns() // 1000
        channel.basic_publish("delayed." + kind, key, b"job", pika.BasicProperties(message_id=number, headers=headers, delivery_mode=2))
        say("sent", kind, number, before)


def refused(connection):
    for arguments in ({}, {"x-delayed-type": "unheard-of"}):
        try:
            connection.channel().exchange_declare("refused", "x-delayed-message", durable=True, arguments=arguments)
            say("declared")
        except pika.exceptions.ChannelClosedByBroker as closed:
            say(closed.reply_code, closed.reply_text)


connection = pika.BlockingConnection(pika.URLParameters(sys.argv[2]))
{"declare": declare, "publish": publish, "refused": refused}[sys.argv[1]](connection)
connection.close()
