import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/** A worker. What fails is tried again after 1, 2, 4, 8 and 16 seconds: ../README.md has the picture. AMQP_URL says where RabbitMQ is. */
class Worker {
    static final int MOST_RETRIES = 5;

    /** Yours goes here. In this example a job is a name and how often it fails, as in "mail 2". */
    static void work(String job, int retries) {
        if (retries < Integer.parseInt(job.split(" ")[1])) throw new IllegalStateException("failed");
    }

    static void declare(Channel channel) throws IOException {
        channel.queueDeclare("failed", true, false, false, Map.of("x-queue-type", "quorum"));
        channel.queueDeclare("jobs", true, false, false, Map.of(
            "x-queue-type", "quorum", "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "failed"));
        channel.exchangeDeclare("retry", "fanout", true);
        // Dead letters keep their routing key, so they go back to the queue that it names.
        channel.queueDeclare("retry", true, false, false, Map.of(
            "x-queue-type", "quorum", "x-dead-letter-exchange", "",
            "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish"));
        channel.queueBind("retry", "retry", "");
    }

    static void handle(Channel channel, Delivery message) throws IOException {
        long tag = message.getEnvelope().getDeliveryTag();
        var headers = new HashMap<String, Object>();
        if (message.getProperties().getHeaders() != null) headers.putAll(message.getProperties().getHeaders());
        String job = new String(message.getBody());
        String name = job.split(" ")[0];
        int retries = ((Number) headers.getOrDefault("retries", 0)).intValue();
        try {
            work(job, retries);
            System.out.println(name + ": done after " + retries + " retries");
        } catch (RuntimeException error) {
            if (retries == MOST_RETRIES) {
                channel.basicReject(tag, false);
                System.out.println(name + ": " + error.getMessage() + " for good");
                return;
            }
            int seconds = 1 << retries;
            headers.put("retries", retries + 1);
            var properties = message.getProperties().builder().userId(null).headers(headers).expiration(String.valueOf(1000 * seconds)).build();
            channel.basicPublish("retry", message.getEnvelope().getRoutingKey(), properties, message.getBody());
            confirmed(channel);
            System.out.println(name + ": " + error.getMessage() + ", again in " + seconds + " s");
        }
        channel.basicAck(tag, false); // last: after a crash in between a job is there twice, never lost
    }

    static void confirmed(Channel channel) throws IOException {
        try {
            channel.waitForConfirmsOrDie();
        } catch (InterruptedException error) {
            throw new IOException(error);
        }
    }

    public static void main(String[] args) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(System.getenv().getOrDefault("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2F"));
        Channel channel = factory.newConnection().createChannel();
        channel.confirmSelect();
        declare(channel);
        channel.basicQos(10);
        channel.basicConsume("jobs", false, (consumer, message) -> handle(channel, message), consumer -> {});
        System.out.println("waiting for jobs");
    }
}
