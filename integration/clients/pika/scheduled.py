"""Schedules messages with python3-pika, changes them, and prints each answer and what is delivered.

scheduled.py AMQP_URL
"""
import sys

import pika

connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
channel = connection.channel()
queue = channel.queue_declare("", exclusive=True).method.queue
answers, delivered = [], []
channel.basic_consume("amq.rabbitmq.reply-to", lambda ch, method, properties, body: answers.append(body.decode()), auto_ack=True)


def publish(body, message_id=None, **headers):
    properties = pika.BasicProperties(message_id=message_id, reply_to="amq.rabbitmq.reply-to",
                                      headers={name.replace("_", "-"): value for name, value in headers.items()})
    channel.basic_publish("", queue, body.encode(), properties)


def ask(body, message_id=None, **headers):
    publish(body, message_id, **headers)
    while not answers:
        connection.process_data_events(time_limit=1)
    print(answers.pop())


publish("never", "order-1", x_delay=60_000)
publish("first", "order-2", x_delay=60_000)
publish("put forward", "order-3", x_delay=60_000)
ask("", x_cancel="order-1")
ask("", x_cancel="order-1")
ask("second", "order-2", x_delay=200, x_replace="order-2")
ask("", x_delay=400, x_reschedule="order-3")
ask("", x_cancel="order-4")
channel.basic_consume(queue, lambda ch, method, properties, body: delivered.append(body.decode()), auto_ack=True)
while len(delivered) < 2:
    connection.process_data_events(time_limit=1)
connection.process_data_events(time_limit=0.5)
print("delivered:", ", ".join(delivered))
connection.close()
