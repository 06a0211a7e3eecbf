"""A worker. What fails is tried again after 1, 2, 4, 8 and 16 seconds: ../README.md has the picture. AMQP_URL says where RabbitMQ is."""
import os

import pika

MOST_RETRIES = 5


def work(job, retries):
    """Yours goes here. In this example a job is a name and how often it fails, as in "mail 2"."""
    if retries < int(job.split()[1]):
        raise RuntimeError("failed")


def declare(channel):
    channel.queue_declare("failed", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_declare("jobs", durable=True, arguments={
        "x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"})
    channel.exchange_declare("retry", exchange_type="fanout", durable=True)
    # Dead letters keep their routing key, so they go back to the queue that it names.
    channel.queue_declare("retry", durable=True, arguments={
        "x-queue-type": "quorum", "x-dead-letter-exchange": "",
        "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
    channel.queue_bind("retry", "retry")


def handle(channel, method, properties, body):
    job, headers = body.decode(), properties.headers or {}
    name, retries = job.split()[0], headers.get("retries", 0)
    try:
        work(job, retries)
        print(f"{name}: done after {retries} retries", flush=True)
    except Exception as error:
        if retries == MOST_RETRIES:
            channel.basic_reject(method.delivery_tag, requeue=False)
            print(f"{name}: {error} for good", flush=True)
            return
        seconds = 2 ** retries
        properties.headers = {**headers, "retries": retries + 1}
        properties.expiration = str(1000 * seconds)
        properties.user_id = None  # only its first publisher may give it
        channel.basic_publish("retry", method.routing_key, body, properties)  # waits for the confirm
        print(f"{name}: {error}, again in {seconds} s", flush=True)
    channel.basic_ack(method.delivery_tag)  # last: after a crash in between a job is there twice, never lost


def main():
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2F")
    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    channel.confirm_delivery()
    declare(channel)
    channel.basic_qos(prefetch_count=10)
    channel.basic_consume("jobs", handle)
    print("waiting for jobs", flush=True)
    channel.start_consuming()


if __name__ == "__main__":
    main()
