"""One side of a deadline run, over AMQP 1.0, with python3-qpid-proton. The queues are declared over the connection.

deadlines.py declare URL QUEUE DLX DLQ   the queue, its dead-letter exchange and a queue bound to that
deadlines.py publish URL QUEUE           "ID TTL_MS" lines on stdin; prints "sent ID TTL_MS BEFORE_US AFTER_US" (after: accepted)
deadlines.py collect URL DLQ COUNT       prints "ready", then "got ID ARRIVED_US" per message, and ends after COUNT
deadlines.py get     URL QUEUE           prints "head ID" or "empty" and puts the message back
deadlines.py outcomes URL QUEUE DLQ      prints what becomes of messages, of links and of a wrong password
"""
import sys
import time
from urllib.parse import quote

from proton import ConnectionException, Delivery, Message, Timeout, symbol
from proton.utils import BlockingConnection, LinkDetached, SendException

LIMIT = 60  # seconds


def now_us():
    return time.time_ns() // 1000


def say(*words):
    print(*words, flush=True)


def connect(url):
    return BlockingConnection(url, timeout=LIMIT, allowed_mechs="PLAIN")


def address(queue):
    return "/queues/" + quote(queue, safe="")


def manager(connection):
    """Returns a function that asks /management."""
    sender = connection.create_sender("/management", name="management-link-pair")
    receiver = connection.create_receiver("/management", name="management-link-pair")

    def ask(method, path, body):
        sender.send(Message(id=path, subject=method, address=path, reply_to="$me", body=body))
        answer = receiver.receive()  # it is settled
        if answer.correlation_id != path or not answer.subject.startswith("2"):
            raise RuntimeError(f"{method} {path}: {answer.subject} {answer.body}")

    return ask


def declare(connection, queue, dlx, dlq):
    ask = manager(connection)
    ask("PUT", "/exchanges/" + quote(dlx, safe=""), {"type": "direct"})
    ask("PUT", address(dlq), {})
    ask("POST", "/bindings", {"source": dlx, "destination_queue": dlq, "binding_key": queue})
    ask("PUT", address(queue), {"arguments": {"x-dead-letter-exchange": dlx}})


def message(number, ttl_ms=None):
    made = Message(id=number, durable=True, inferred=True, body=number.encode())
    if ttl_ms is not None:
        made.ttl = (ttl_ms + 0.5) / 1000  # it is cut to milliseconds: 2.018 would be 2017
    return made


def publish(connection, queue):
    sender = connection.create_sender(address(queue))
    for line in sys.stdin:
        number, ttl = line.split()
        before = now_us()
        sender.send(message(number, int(ttl)))
        say("sent", number, ttl, before, now_us())


def collect(connection, queue, count):
    receiver = connection.create_receiver(address(queue), credit=500)
    say("ready")
    for _ in range(int(count)):
        got = receiver.receive()
        at = now_us()
        receiver.accept()
        say("got", bytes(got.body).decode(), at)
        if receiver.link.credit < 250:
            receiver.link.flow(250)


def get(connection, queue):
    receiver = connection.create_receiver(address(queue), credit=1)
    try:
        got = receiver.receive(timeout=2)
    except Timeout:
        say("empty")
        return
    say("head", bytes(got.body).decode())
    receiver.release(delivered=False)


def modify(receiver, failed, undeliverable):
    local = receiver.fetcher.unsettled[0].local
    local.failed, local.undeliverable = failed, undeliverable
    receiver.settle(Delivery.MODIFIED)


def send(sender, made):
    try:
        sender.send(made)
    except SendException as refused:
        return "released" if refused.state == Delivery.RELEASED else "rejected"
    return "accepted"


def outcomes(connection, queue, dlq):
    sender = connection.create_sender(address(queue))
    for number in "abc":
        say(number, send(sender, message(number)))
    receiver = connection.create_receiver(address(queue), credit=0)
    for settle in (
        receiver.accept,
        receiver.reject,
        lambda: receiver.release(delivered=False),
        lambda: modify(receiver, True, False),
        lambda: modify(receiver, False, True),
    ):
        got = receiver.receive()
        say("got", bytes(got.body).decode(), got.delivery_count)
        settle()
    say("d", send(sender, message("d", 1000)))
    dead = connection.create_receiver(address(dlq), credit=3)
    for _ in range(3):
        got = dead.receive()
        say("dead", bytes(got.body).decode(), got.annotations[symbol("x-first-death-reason")])
        dead.accept()
    say("unroutable", send(connection.create_sender("/exchanges/amq.direct/none"), message("e")))
    try:
        connection.create_receiver("/queues/none")
    except LinkDetached as refused:
        say("missing", refused.condition)


def wrong_password(url):
    try:
        connect(url.replace("guest:guest", "guest:wrong"))
    except ConnectionException:
        say("password", "refused")


def main():
    role, url, *rest = sys.argv[1:]
    roles = {"declare": declare, "publish": publish, "collect": collect, "get": get, "outcomes": outcomes}
    connection = connect(url)
    roles[role](connection, *rest)
    connection.close()
    if role == "outcomes":
        wrong_password(url)


if __name__ == "__main__":
    main()
