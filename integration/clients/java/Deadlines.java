import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/** One side of a deadline run, with RabbitMQ's Java client. The roles and their lines are those of ../pika/deadlines.py. */
class Deadlines {
    static long nowMicros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static void declare(Channel channel, String queue, String dlx, String dlq) throws Exception {
        channel.exchangeDeclare(dlx, "direct", true);
        channel.queueDeclare(dlq, true, false, false, null);
        channel.queueBind(dlq, dlx, queue);
        channel.queueDeclare(queue, true, false, false, Map.of("x-dead-letter-exchange", dlx));
    }

    static void publish(Channel channel, String queue) throws Exception {
        channel.confirmSelect();
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            var properties = new AMQP.BasicProperties.Builder().expiration(words[1]).deliveryMode(2).messageId(words[0]).build();
            long before = nowMicros();
            channel.basicPublish("", queue, true, properties, words[0].getBytes());
            channel.waitForConfirmsOrDie(30_000);
            say("sent " + words[0] + " " + words[1] + " " + before + " " + nowMicros());
        }
    }

    static void collect(Channel channel, String queue, int count) throws Exception {
        channel.basicQos(500);
        var left = new CountDownLatch(count);
        channel.basicConsume(queue, false, (tag, delivery) -> {
            long at = nowMicros();
            channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
            say("got " + new String(delivery.getBody()) + " " + at);
            left.countDown();
        }, tag -> {});
        say("ready");
        left.await();
    }

    static void get(Channel channel, String queue) throws Exception {
        GetResponse message = channel.basicGet(queue, false);
        if (message == null) {
            say("empty");
            return;
        }
        say("head " + new String(message.getBody()));
        channel.basicNack(message.getEnvelope().getDeliveryTag(), false, true);
    }

    public static void main(String[] args) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(args[1]);
        try (Connection connection = factory.newConnection(); Channel channel = connection.createChannel()) {
            switch (args[0]) {
                case "declare" -> declare(channel, args[2], args[3], args[4]);
                case "publish" -> publish(channel, args[2]);
                case "collect" -> collect(channel, args[2], Integer.parseInt(args[3]));
                case "get" -> get(channel, args[2]);
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
    }
}
