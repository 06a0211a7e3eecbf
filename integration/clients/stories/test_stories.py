# Ten stories about time, by the manual clock of the Curfew at AMQP and HTTP in the environment. RUN makes the names of queues its own.
import base64, json, os, urllib.request
import pika, pytest

RUN = os.environ["RUN"] + ".py."


def advance(by):
    headers = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
    urllib.request.urlopen(urllib.request.Request(os.environ["HTTP"] + "/api/curfew/clock", json.dumps({"advance": by}).encode(), headers)).read()


class Channel:
    def __init__(self, connection):
        self.connection = connection
        self.channel = connection.channel()
        self.channel.confirm_delivery()

    def queue(self, name, to=None, **arguments):
        arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
        if to:
            arguments |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": RUN + to}
        self.channel.queue_declare(RUN + name, arguments=arguments)

    def publish(self, name, body, ttl=None, **headers):
        headers = {key.replace("_", "-"): value for key, value in headers.items()}
        self.channel.basic_publish("", RUN + name, body.encode(), pika.BasicProperties(expiration=ttl, headers=headers))

    def get(self, name, auto_ack=True):
        method, properties, body = self.channel.basic_get(RUN + name, auto_ack=auto_ack)
        return (body.decode(), method, properties) if method else (None, None, None)

    def body(self, name):
        return self.get(name)[0]


@pytest.fixture
def ch():
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP"]))
    yield Channel(connection)
    connection.close()


def test_time_to_live_of_a_message(ch):
    ch.queue("a.dead")
    ch.queue("a", to="a.dead")
    ch.publish("a", "m", ttl="3600000")
    advance("59m59.999s")
    assert ch.body("a.dead") is None
    advance("1ms")
    assert ch.body("a.dead") == "m"


def test_time_to_live_of_a_queue(ch):
    ch.queue("b.dead")
    ch.queue("b", to="b.dead", x_message_ttl=60000)
    ch.publish("b", "m")
    advance("1m")
    assert ch.body("b.dead") == "m"


def test_the_lower_counts(ch):
    ch.queue("c.dead")
    ch.queue("c", to="c.dead", x_message_ttl=10000)
    ch.publish("c", "m", ttl="3600000")
    advance("10s")
    assert ch.body("c.dead") == "m"


def test_behind_one_without_a_deadline(ch):
    ch.queue("d.dead")
    ch.queue("d", to="d.dead")
    ch.publish("d", "stays")
    ch.publish("d", "goes", ttl="1000")
    advance("1s")
    assert ch.body("d.dead") == "goes"
    assert ch.body("d") == "stays"


def test_retry(ch):
    ch.queue("e", to="e.retry")
    ch.queue("e.retry", to="e", x_message_ttl=30000)
    ch.publish("e", "job")
    for attempt in range(3):
        body, method, properties = ch.get("e", auto_ack=False)
        assert body == "job" and len((properties.headers or {}).get("x-death", [])) == (2 if attempt else 0)
        ch.channel.basic_reject(method.delivery_tag, requeue=False)
        assert ch.body("e") is None
        advance("30s")
    assert ch.body("e") == "job"


def test_back_off_in_one_queue(ch):
    ch.queue("f")
    ch.queue("f.retry", to="f")
    for ttl in "60000", "1000", "10000":
        ch.publish("f.retry", ttl, ttl=ttl)
    advance("1m")
    assert [ch.body("f") for _ in range(3)] == ["1000", "10000", "60000"]


def test_delay(ch):
    ch.queue("g")
    ch.publish("g", "later", x_delay=7200000)
    advance("1h")
    assert ch.body("g") is None
    advance("1h")
    assert ch.body("g") == "later"


def test_lock(ch):
    ch.queue("h", x_lock_duration=30000)
    ch.publish("h", "m")
    holder = Channel(ch.connection)
    assert holder.get("h", auto_ack=False)[0] == "m"
    advance("30s")
    holder.channel.close()
    body, method, _ = ch.get("h")
    assert body == "m" and method.redelivered


def test_unused_queue(ch):
    ch.queue("i", x_expires=60000)
    advance("1m")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        ch.channel.queue_declare(RUN + "i", passive=True)


def test_two_waits_in_one_advance(ch):
    ch.queue("j.dead")
    ch.queue("j.2", to="j.dead", x_message_ttl=20000)
    ch.queue("j.1", to="j.2", x_message_ttl=10000)
    ch.publish("j.1", "m")
    advance("20m")
    assert ch.body("j.dead") == "m"
