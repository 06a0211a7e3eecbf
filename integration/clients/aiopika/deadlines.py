"""One side of a deadline run, with python3-aio-pika. The roles and their lines are those of ../pika/deadlines.py."""
import asyncio
import sys
import time

import aio_pika


def now_us():
    return time.time_ns() // 1000


def say(*words):
    print(*words, flush=True)


async def declare(channel, queue, dlx, dlq):
    exchange = await channel.declare_exchange(dlx, aio_pika.ExchangeType.DIRECT, durable=True)
    dead = await channel.declare_queue(dlq, durable=True)
    await dead.bind(exchange, routing_key=queue)
    await channel.declare_queue(queue, durable=True, arguments={"x-dead-letter-exchange": dlx})


async def publish(channel, queue):
    for line in sys.stdin:
        number, ttl = line.split()
        message = aio_pika.Message(
            number.encode(),
            expiration=(int(ttl) + 0.5) / 1000,  # it is cut to whole ms
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=number,
        )
        before = now_us()
        await channel.default_exchange.publish(message, routing_key=queue, mandatory=True)  # returns once confirmed
        say("sent", number, ttl, before, now_us())


async def collect(channel, queue, count):
    await channel.set_qos(prefetch_count=500)
    left = int(count)
    done = asyncio.Event()

    async def arrived(message):
        nonlocal left
        at = now_us()
        await message.ack()
        say("got", message.body.decode(), at)
        left -= 1
        if left == 0:
            done.set()

    await (await channel.get_queue(queue)).consume(arrived)
    say("ready")
    await done.wait()


async def get(channel, queue):
    message = await (await channel.get_queue(queue)).get(fail=False)
    if message is None:
        say("empty")
        return
    say("head", message.body.decode())
    await message.nack(requeue=True)


async def main():
    role, url, *rest = sys.argv[1:]
    roles = {"declare": declare, "publish": publish, "collect": collect, "get": get}
    connection = await aio_pika.connect_robust(url)
    async with connection:
        await roles[role](await connection.channel(publisher_confirms=True), *rest)


asyncio.run(main())
