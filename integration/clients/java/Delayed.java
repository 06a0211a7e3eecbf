import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** An application written for the delayed-message plugin. The roles and their lines are those of ../pika/delayed.py. */
public class Delayed {
    public static void main(String[] args) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(args[1]);
        try (Connection connection = factory.newConnection()) {
            switch (args[0]) {
                case "declare" -> declare(connection.createChannel());
                case "publish" -> publish(connection.createChannel());
                default -> refused(connection);
            }
        }
    }

    private static void declare(Channel channel) throws Exception {
        for (String type : List.of("direct", "topic", "fanout", "headers")) {
            channel.exchangeDeclare("delayed." + type, "x-delayed-message", true, false, Map.of("x-delayed-type", type));
            channel.queueDeclare("jobs." + type, true, false, false, null);
            Map<String, Object> arguments = type.equals("headers") ? Map.of("x-match", "all", "region", "eu") : Map.of();
            channel.queueBind("jobs." + type, "delayed." + type, type.equals("topic") ? "eu.*" : "eu.new", arguments);
        }
    }

    private static void publish(Channel channel) throws Exception {
        channel.confirmSelect();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ");
            Map<String, Object> headers = new HashMap<>(Map.of("region", words[3]));
            if (!words[4].equals("none")) {
                headers.put("x-delay", Integer.parseInt(words[4]));
            }
            AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().messageId(words[1]).headers(headers).deliveryMode(2).build();
            long before = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
            channel.basicPublish("delayed." + words[0], words[2], properties, "job".getBytes());
            channel.waitForConfirmsOrDie(30_000);
            System.out.println("sent " + words[0] + " " + words[1] + " " + before);
        }
    }

    private static void refused(Connection connection) throws Exception {
        for (Map<String, Object> arguments : List.of(Map.<String, Object>of(), Map.<String, Object>of("x-delayed-type", "unheard-of"))) {
            try {
                connection.createChannel().exchangeDeclare("refused", "x-delayed-message", true, false, arguments);
                System.out.println("declared");
            } catch (IOException e) {
                System.out.println(e.getCause().getMessage());
            }
        }
    }
}
