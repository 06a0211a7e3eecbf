import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import javax.net.SocketFactory;

/**
 * Holds idle connections as later versions of the client do over Netty, which the packaged one does not have: one that reads
 * nothing for one heartbeat interval is closed, where the client over plain sockets allows for two.
 *
 * idle URL CONNECTIONS HEARTBEAT_SECONDS SECONDS prints "ready" and, after that time, "open N" with how many are.
 */
class Idle {
    /** Sockets whose reads end for good after a time without an octet. */
    static class Impatient extends SocketFactory {
        final int millis;

        Impatient(int millis) {
            this.millis = millis;
        }

        @Override
        public Socket createSocket() {
            return new Socket() {
                @Override
                public void setSoTimeout(int ignored) throws java.net.SocketException {
                    super.setSoTimeout(millis);
                }

                @Override
                public InputStream getInputStream() throws IOException {
                    super.setSoTimeout(millis);
                    return new FilterInputStream(super.getInputStream()) {
                        @Override
                        public int read(byte[] b, int offset, int length) throws IOException {
                            try {
                                return super.read(b, offset, length);
                            } catch (SocketTimeoutException e) {
                                throw new IOException("nothing was read for " + millis + " ms");
                            }
                        }
                    };
                }
            };
        }

        @Override
        public Socket createSocket(String host, int port) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Socket createSocket(String host, int port, InetAddress local, int localPort) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Socket createSocket(InetAddress host, int port) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) {
            throw new UnsupportedOperationException();
        }
    }

    public static void main(String[] args) throws Exception {
        int heartbeat = Integer.parseInt(args[3]);
        var factory = new ConnectionFactory();
        factory.setUri(args[1]);
        factory.setRequestedHeartbeat(heartbeat);
        factory.setAutomaticRecoveryEnabled(false);
        factory.setSocketFactory(new Impatient(1000 * heartbeat));
        var connections = new ArrayList<Connection>();
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            Connection connection = factory.newConnection();
            connection.addShutdownListener(cause -> System.err.println(cause + " " + cause.getCause()));
            connections.add(connection);
        }
        System.out.println("ready");
        Thread.sleep(1000L * Integer.parseInt(args[4]));
        System.out.println("open " + connections.stream().filter(Connection::isOpen).count());
        System.exit(0);
    }
}
