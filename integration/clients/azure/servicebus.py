"""Microsoft's SDK for Python, azure-servicebus, over TLS and with a key.

servicebus.py PORT ADMINISTRATION_PORT CA   of a Curfew on localhost with the key root. REQUESTS_CA_BUNDLE has to name CA, too.
                                            Prints "ok STEP" after each step
"""
import sys
import time
from datetime import datetime, timedelta

import uamqp.constants

port, administration, ca = sys.argv[1:]
uamqp.constants.DEFAULT_AMQPS_PORT = int(port)  # the SDK takes no other port from a connection string

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue  # noqa: E402
from azure.servicebus.exceptions import ServiceBusError  # noqa: E402
from azure.servicebus.management import ServiceBusAdministrationClient  # noqa: E402

KEY = ";SharedAccessKeyName=root;SharedAccessKey=cm9vdA=="
options = {"retry_total": 0}
client = ServiceBusClient.from_connection_string("Endpoint=sb://localhost" + KEY, connection_verify=ca, **options)
admin = ServiceBusAdministrationClient.from_connection_string("Endpoint=sb://localhost:" + administration + KEY, **options)
QUEUE = "python"


def receive(receiver, count, seconds=20):
    """Returns the next messages, as many as asked for."""
    got, until = [], time.monotonic() + seconds
    while len(got) < count and time.monotonic() < until:
        got += receiver.receive_messages(count - len(got), max_wait_time=5)
    assert len(got) == count, got
    return got


def fails(kind, text, do):
    """Asserts that do raises an error."""
    try:
        do()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError("no " + kind.__name__)


def administer():
    made = admin.create_queue(QUEUE, lock_duration=timedelta(seconds=5), dead_lettering_on_message_expiration=True, user_metadata="of the shop")
    assert made.lock_duration == timedelta(seconds=5) and made.user_metadata == "of the shop"
    made.max_delivery_count = 4
    admin.update_queue(made)
    assert admin.get_queue(QUEUE).max_delivery_count == 4
    assert QUEUE in [q.name for q in admin.list_queues()]


def send():
    with client.get_queue_sender(QUEUE) as sender:
        sender.send_messages(ServiceBusMessage("one", application_properties={"n": 1}, message_id="m"))
        batch = sender.create_message_batch()
        for i in range(4):
            batch.add_message(ServiceBusMessage("batch"))
        sender.send_messages(batch)
    assert admin.get_queue_runtime_properties(QUEUE).active_message_count == 5


def settle():
    with client.get_queue_receiver(QUEUE) as receiver, client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        assert len(receiver.peek_messages(10)) == 5
        first, second, third, fourth, fifth = receive(receiver, 5)
        assert str(first) == "one" and first.application_properties == {b"n": 1} and first.message_id == "m"
        receiver.complete_message(first)
        receiver.dead_letter_message(second, reason="bad", error_description="worse")
        receiver.defer_message(third)
        receiver.abandon_message(fourth)
        was = fifth.locked_until_utc
        assert receiver.renew_message_lock(fifth) >= was
        receiver.complete_message(fifth)
        (again,) = receive(receiver, 1)
        assert again.delivery_count == 1
        receiver.complete_message(again)
        (deferred,) = receiver.receive_deferred_messages(third.sequence_number)
        receiver.complete_message(deferred)
        (letter,) = receive(dead, 1)
        assert (letter.dead_letter_reason, letter.dead_letter_error_description) == ("bad", "worse")
        dead.complete_message(letter)


def lock_lost():
    with client.get_queue_sender(QUEUE) as sender, client.get_queue_receiver(QUEUE) as receiver:
        sender.send_messages(ServiceBusMessage("slow"))
        (slow,) = receive(receiver, 1)
        time.sleep(5.5)
        fails(ServiceBusError, "lock", lambda: receiver.complete_message(slow))
        (again,) = receive(receiver, 1)
        receiver.complete_message(again)


def expire():
    with client.get_queue_sender(QUEUE) as sender, client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        sender.send_messages(ServiceBusMessage("late", time_to_live=timedelta(milliseconds=300)))
        (letter,) = receive(dead, 1)
        assert str(letter) == "late" and letter.dead_letter_reason == "TTLExpiredException", letter
        dead.complete_message(letter)


def schedule():
    with client.get_queue_sender(QUEUE) as sender, client.get_queue_receiver(QUEUE) as receiver:
        at = datetime.utcnow() + timedelta(seconds=1)
        sender.cancel_scheduled_messages(sender.schedule_messages(ServiceBusMessage("never"), at))
        sender.schedule_messages(ServiceBusMessage("later"), at)
        (later,) = receive(receiver, 1)
        assert str(later) == "later" and datetime.utcnow() >= at
        receiver.complete_message(later)


for step in administer, send, settle, lock_lost, expire, schedule:
    step()
    print("ok", step.__name__, flush=True)
client.close()
