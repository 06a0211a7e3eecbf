import static org.junit.jupiter.api.Assertions.*;

import com.rabbitmq.client.*;
import java.net.URI;
import java.net.http.*;
import java.util.*;
import org.junit.jupiter.api.*;

/** The stories of test_stories.py. */
class StoriesTest {
    static final String RUN = System.getenv("RUN") + ".java.";
    static final HttpClient http = HttpClient.newHttpClient();
    static Connection connection;
    static Channel channel;

    @BeforeAll static void connect() throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(System.getenv("AMQP"));
        connection = factory.newConnection();
        channel = connection.createChannel();
        channel.confirmSelect();
    }

    @AfterAll static void close() throws Exception { connection.close(); }

    static void advance(String by) throws Exception {
        var login = "Basic " + Base64.getEncoder().encodeToString("guest:guest".getBytes());
        var body = HttpRequest.BodyPublishers.ofString("{\"advance\": \"" + by + "\"}");
        var request = HttpRequest.newBuilder(URI.create(System.getenv("HTTP") + "/api/curfew/clock")).header("Authorization", login).POST(body).build();
        assertEquals(200, http.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    }

    static void queue(String name, Object... arguments) throws Exception {
        var all = new HashMap<String, Object>();
        for (int i = 0; i < arguments.length; i += 2) {
            all.put((String) arguments[i], arguments[i + 1]);
        }
        if (all.remove("to") instanceof String target) {
            all.put("x-dead-letter-exchange", "");
            all.put("x-dead-letter-routing-key", RUN + target);
        }
        channel.queueDeclare(RUN + name, false, false, false, all);
    }

    static void publish(String name, String body, String ttl, Map<String, Object> headers) throws Exception {
        channel.basicPublish("", RUN + name, new AMQP.BasicProperties.Builder().expiration(ttl).headers(headers).build(), body.getBytes());
        channel.waitForConfirmsOrDie();
    }

    static void publish(String name, String body, String ttl) throws Exception { publish(name, body, ttl, Map.of()); }

    static GetResponse get(String name, boolean autoAck) throws Exception { return channel.basicGet(RUN + name, autoAck); }

    static String body(String name) throws Exception {
        var message = get(name, true);
        return message == null ? null : new String(message.getBody());
    }

    @Test void timeToLiveOfAMessage() throws Exception {
        queue("a.dead");
        queue("a", "to", "a.dead");
        publish("a", "m", "3600000");
        advance("59m59.999s");
        assertNull(body("a.dead"));
        advance("1ms");
        assertEquals("m", body("a.dead"));
    }

    @Test void timeToLiveOfAQueue() throws Exception {
        queue("b.dead");
        queue("b", "to", "b.dead", "x-message-ttl", 60000);
        publish("b", "m", null);
        advance("1m");
        assertEquals("m", body("b.dead"));
    }

    @Test void theLowerCounts() throws Exception {
        queue("c.dead");
        queue("c", "to", "c.dead", "x-message-ttl", 10000);
        publish("c", "m", "3600000");
        advance("10s");
        assertEquals("m", body("c.dead"));
    }

    @Test void behindOneWithoutADeadline() throws Exception {
        queue("d.dead");
        queue("d", "to", "d.dead");
        publish("d", "stays", null);
        publish("d", "goes", "1000");
        advance("1s");
        assertEquals("goes", body("d.dead"));
        assertEquals("stays", body("d"));
    }

    @Test void retry() throws Exception {
        queue("e", "to", "e.retry");
        queue("e.retry", "to", "e", "x-message-ttl", 30000);
        publish("e", "job", null);
        for (int attempt = 0; attempt < 3; attempt++) {
            var job = get("e", false);
            var deaths = (List<?>) job.getProps().getHeaders().getOrDefault("x-death", List.of());
            assertEquals(attempt == 0 ? 0 : 2, deaths.size());
            channel.basicReject(job.getEnvelope().getDeliveryTag(), false);
            assertNull(body("e"));
            advance("30s");
        }
        assertEquals("job", body("e"));
    }

    @Test void backOffInOneQueue() throws Exception {
        queue("f");
        queue("f.retry", "to", "f");
        for (var ttl : List.of("60000", "1000", "10000")) {
            publish("f.retry", ttl, ttl);
        }
        advance("1m");
        assertEquals(List.of("1000", "10000", "60000"), List.of(body("f"), body("f"), body("f")));
    }

    @Test void delay() throws Exception {
        queue("g");
        publish("g", "later", null, Map.of("x-delay", 7200000));
        advance("1h");
        assertNull(body("g"));
        advance("1h");
        assertEquals("later", body("g"));
    }

    @Test void lock() throws Exception {
        queue("h", "x-lock-duration", 30000);
        publish("h", "m", null);
        var holder = connection.createChannel();
        assertEquals("m", new String(holder.basicGet(RUN + "h", false).getBody()));
        advance("30s");
        holder.close();
        assertTrue(get("h", true).getEnvelope().isRedeliver());
    }

    @Test void unusedQueue() throws Exception {
        queue("i", "x-expires", 60000);
        advance("1m");
        var other = connection.createChannel();
        assertThrows(java.io.IOException.class, () -> other.queueDeclarePassive(RUN + "i"));
    }

    @Test void twoWaitsInOneAdvance() throws Exception {
        queue("j.dead");
        queue("j.2", "to", "j.dead", "x-message-ttl", 20000);
        queue("j.1", "to", "j.2", "x-message-ttl", 10000);
        publish("j.1", "m", null);
        advance("20m");
        assertEquals("m", body("j.dead"));
    }
}
