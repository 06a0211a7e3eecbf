"""Publishes and gets one message over TLS with python3-pika.

secure.py HOST PORT CA                   as guest, with a password
secure.py HOST PORT CA CERT KEY          as the user whose name the certificate has (SASL EXTERNAL)

Prints what it got.
"""
import ssl
import sys

import pika

host, port, ca = sys.argv[1:4]
context = ssl.create_default_context(cafile=ca)
credentials = pika.PlainCredentials("guest", "guest")
if len(sys.argv) > 4:
    context.load_cert_chain(*sys.argv[4:6])
    credentials = pika.credentials.ExternalCredentials()
connection = pika.BlockingConnection(pika.ConnectionParameters(
    host, int(port), credentials=credentials, ssl_options=pika.SSLOptions(context, "localhost")))
channel = connection.channel()
queue = channel.queue_declare("", exclusive=True).method.queue
channel.confirm_delivery()
channel.basic_publish("", queue, b"over TLS")
print(channel.basic_get(queue, auto_ack=True)[2].decode())
connection.close()
