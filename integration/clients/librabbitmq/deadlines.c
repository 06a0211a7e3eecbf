/* One side of a deadline run, with librabbitmq. amqp-publish cannot set a message's expiration, the library can.
 *
 * deadlines declare URL QUEUE DLX DLQ   the queue, its dead-letter exchange and a queue bound to that
 * deadlines publish URL QUEUE           "ID TTL_MS" lines on stdin; prints "sent ID TTL_MS BEFORE_US AFTER_US" (after: confirmed)
 * deadlines collect URL DLQ COUNT       prints "ready", then "got ID ARRIVED_US" per message, and ends after COUNT
 * deadlines get     URL QUEUE           prints "head ID" or "empty" and puts the message back
 *
 * Build: cc -O1 -Wall -Werror -o deadlines deadlines.c -lrabbitmq
 */
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static amqp_connection_state_t conn;

static long long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void die(const char *what) {
  fprintf(stderr, "deadlines: %s\n", what);
  exit(1);
}

static void check(int status, const char *what) {
  if (status < 0) {
    fprintf(stderr, "deadlines: %s: %s\n", what, amqp_error_string2(status));
    exit(1);
  }
}

static void check_reply(amqp_rpc_reply_t reply, const char *what) {
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) die(what);
}

static void connect_to(char *url) {
  struct amqp_connection_info info;
  check(amqp_parse_url(url, &info), "parse url");
  conn = amqp_new_connection();
  amqp_socket_t *socket = amqp_tcp_socket_new(conn);
  if (socket == NULL) die("new socket");
  check(amqp_socket_open(socket, info.host, info.port), "connect");
  check_reply(amqp_login(conn, info.vhost, 0, 131072, 30, AMQP_SASL_METHOD_PLAIN, info.user, info.password), "login");
  amqp_channel_open(conn, 1);
  check_reply(amqp_get_rpc_reply(conn), "open channel");
}

static void declare(char **names) {
  amqp_bytes_t queue = amqp_cstring_bytes(names[0]);
  amqp_bytes_t dlx = amqp_cstring_bytes(names[1]);
  amqp_bytes_t dlq = amqp_cstring_bytes(names[2]);
  amqp_table_entry_t entry = {.key = amqp_cstring_bytes("x-dead-letter-exchange"),
                              .value = {.kind = AMQP_FIELD_KIND_UTF8, .value = {.bytes = dlx}}};
  amqp_table_t arguments = {.num_entries = 1, .entries = &entry};

  amqp_exchange_declare(conn, 1, dlx, amqp_cstring_bytes("direct"), 0, 1, 0, 0, amqp_empty_table);
  check_reply(amqp_get_rpc_reply(conn), "declare exchange");
  amqp_queue_declare(conn, 1, dlq, 0, 1, 0, 0, amqp_empty_table);
  check_reply(amqp_get_rpc_reply(conn), "declare dead-letter queue");
  amqp_queue_bind(conn, 1, dlq, dlx, queue, amqp_empty_table);
  check_reply(amqp_get_rpc_reply(conn), "bind");
  amqp_queue_declare(conn, 1, queue, 0, 1, 0, 0, arguments);
  check_reply(amqp_get_rpc_reply(conn), "declare queue");
}

static void wait_for_confirm(void) {
  amqp_frame_t frame;
  check(amqp_simple_wait_frame(conn, &frame), "wait for confirm");
  if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) die("not confirmed");
  amqp_maybe_release_buffers(conn);
}

static void publish(char **names) {
  char id[32], ttl[32];
  amqp_confirm_select(conn, 1);
  check_reply(amqp_get_rpc_reply(conn), "confirm.select");
  while (scanf("%31s %31s", id, ttl) == 2) {
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG,
        .expiration = amqp_cstring_bytes(ttl),
        .delivery_mode = 2,
        .message_id = amqp_cstring_bytes(id)};
    long long before = now_us();
    check(amqp_basic_publish(conn, 1, amqp_empty_bytes, amqp_cstring_bytes(names[0]), 1, 0, &properties,
                             amqp_cstring_bytes(id)),
          "publish");
    wait_for_confirm();
    printf("sent %s %s %lld %lld\n", id, ttl, before, now_us());
  }
}

static void collect(char **names) {
  amqp_basic_qos(conn, 1, 0, 500, 0);
  check_reply(amqp_get_rpc_reply(conn), "qos");
  amqp_basic_consume(conn, 1, amqp_cstring_bytes(names[0]), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
  check_reply(amqp_get_rpc_reply(conn), "consume");
  printf("ready\n");
  fflush(stdout);
  for (int left = atoi(names[1]); left > 0; left--) {
    amqp_envelope_t envelope;
    check_reply(amqp_consume_message(conn, &envelope, NULL, 0), "consume message");
    long long at = now_us();
    check(amqp_basic_ack(conn, 1, envelope.delivery_tag, 0), "ack");
    printf("got %.*s %lld\n", (int)envelope.message.body.len, (char *)envelope.message.body.bytes, at);
    amqp_destroy_envelope(&envelope);
    amqp_maybe_release_buffers(conn);
  }
}

static void get(char **names) {
  amqp_message_t message;
  amqp_rpc_reply_t reply = amqp_basic_get(conn, 1, amqp_cstring_bytes(names[0]), 0);
  check_reply(reply, "get");
  if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) {
    printf("empty\n");
    return;
  }
  uint64_t tag = ((amqp_basic_get_ok_t *)reply.reply.decoded)->delivery_tag;
  check_reply(amqp_read_message(conn, 1, &message, 0), "read message");
  printf("head %.*s\n", (int)message.body.len, (char *)message.body.bytes);
  amqp_destroy_message(&message);
  check(amqp_basic_nack(conn, 1, tag, 0, 1), "nack");
}

int main(int argc, char **argv) {
  if (argc < 4) die("usage: deadlines declare|publish|collect|get URL NAMES...");
  connect_to(argv[2]);
  if (strcmp(argv[1], "declare") == 0 && argc == 6) {
    declare(argv + 3);
  } else if (strcmp(argv[1], "publish") == 0) {
    publish(argv + 3);
  } else if (strcmp(argv[1], "collect") == 0 && argc == 5) {
    collect(argv + 3);
  } else if (strcmp(argv[1], "get") == 0) {
    get(argv + 3);
  } else {
    die("unknown role or wrong number of names");
  }
  check_reply(amqp_connection_close(conn, AMQP_REPLY_SUCCESS), "close");
  check(amqp_destroy_connection(conn), "destroy");
  return 0;
}
