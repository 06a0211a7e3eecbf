// One side of a deadline run, over AMQP 1.0, with rhea. The queues are declared over the connection.
//
// amqp10.js declare URL QUEUE DLX DLQ   the queue, its dead-letter exchange and a queue bound to that
// amqp10.js publish URL QUEUE           "ID TTL_MS" lines on stdin; prints "sent ID TTL_MS BEFORE_US AFTER_US" (after: accepted)
// amqp10.js collect URL DLQ COUNT       prints "ready", then "got ID ARRIVED_US" per message, and ends after COUNT
// amqp10.js get     URL QUEUE           prints "head ID" or "empty" and puts the message back
// amqp10.js outcomes URL QUEUE DLQ      prints what becomes of messages, of links and of a wrong password; the queue's time to live is of d
'use strict';

const readline = require('readline');
const rhea = require('rhea');

const { nowMicros } = require('./clock');
const say = (...words) => process.stdout.write(words.join(' ') + '\n');
const queueAddress = (name) => '/queues/' + encodeURIComponent(name);

// when waits for one of the events, and returns its name and context.
const when = (emitter, ...events) =>
  new Promise((done) => {
    const listeners = events.map((event) => (context) => {
      events.forEach((other, i) => emitter.removeListener(other, listeners[i]));
      done([event, context]);
    });
    events.forEach((event, i) => emitter.on(event, listeners[i]));
  });

async function connect(url, password) {
  const at = new URL(url);
  const container = rhea.create_container();
  container.on('error', () => {}); // errors are events of links and connections, too
  const connection = container.connect({
    host: at.hostname, port: at.port, username: at.username, password: password || at.password, reconnect: false,
  });
  const [event, context] = await when(connection, 'connection_open', 'connection_error', 'disconnected');
  if (event !== 'connection_open') throw new Error('refused: ' + (connection.error || context.error || event));
  return connection;
}

async function close(connection) {
  connection.close();
  await when(connection, 'connection_close');
}

// manage returns a function that asks /management.
async function manage(connection) {
  const name = 'management-link-pair';
  const properties = { paired: true };
  const sender = connection.open_sender({ name, properties, target: '/management', snd_settle_mode: 1 });
  await when(sender, 'sendable'); // rhea knows links by their names: one after the other
  const receiver = connection.open_receiver({ name, properties, source: '/management', snd_settle_mode: 1 });
  await when(receiver, 'receiver_open');
  let requests = 0;
  return async (method, path, body) => {
    requests += 1;
    sender.send({ subject: method, to: path, reply_to: '$me', message_id: String(requests), body });
    const [, { message }] = await when(receiver, 'message');
    if (message.correlation_id !== String(requests) || !message.subject.startsWith('2')) {
      throw new Error(`${method} ${path}: ${message.subject} ${message.body}`);
    }
  };
}

async function declare(connection, queue, dlx, dlq) {
  const ask = await manage(connection);
  await ask('PUT', '/exchanges/' + encodeURIComponent(dlx), { type: 'direct' });
  await ask('PUT', queueAddress(dlq), {});
  await ask('POST', '/bindings', { source: dlx, destination_queue: dlq, binding_key: queue, arguments: {} });
  await ask('PUT', queueAddress(queue), { arguments: { 'x-dead-letter-exchange': dlx } });
}

async function openSender(connection, target) {
  const sender = connection.open_sender({ target });
  const [event] = await when(sender, 'sendable', 'sender_error');
  return event === 'sendable' ? sender : undefined;
}

// send returns the outcome.
async function send(sender, id, ttl) {
  sender.send({ durable: true, ttl, message_id: id, footer: { id }, body: rhea.message.data_section(Buffer.from(id)) });
  const [outcome] = await when(sender, 'accepted', 'released', 'rejected');
  return outcome;
}

async function publish(connection, queue) {
  const sender = await openSender(connection, queueAddress(queue));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [id, ttl] = line.split(' ');
    const before = nowMicros();
    const outcome = await send(sender, id, Number(ttl));
    if (outcome !== 'accepted') throw new Error(outcome);
    say('sent', id, ttl, before, nowMicros());
  }
}

const idOf = (message) => message.body.content.toString();

// sentID is the id of a message that has come with the footer that send gave it.
function sentID(message) {
  const id = idOf(message);
  if (!message.footer || message.footer.id !== id) throw new Error('a footer is lost: ' + id);
  return id;
}

async function collect(connection, queue, count) {
  const receiver = connection.open_receiver({ source: queueAddress(queue), autoaccept: false, credit_window: 500 });
  receiver.on('receiver_open', () => say('ready'));
  let left = Number(count);
  await new Promise((done) => {
    receiver.on('message', ({ message, delivery }) => {
      const at = nowMicros();
      delivery.accept();
      say('got', idOf(message), at);
      left -= 1;
      if (left === 0) done();
    });
  });
}

function openReceiver(connection, queue) {
  return connection.open_receiver({ source: queueAddress(queue), autoaccept: false, credit_window: 0 });
}

async function receive(receiver) {
  receiver.add_credit(1);
  const [, context] = await when(receiver, 'message');
  return context;
}

async function get(connection, queue) {
  const receiver = openReceiver(connection, queue);
  receiver.add_credit(1);
  receiver.drain_credit();
  const [event, { message, delivery }] = await when(receiver, 'message', 'receiver_drained');
  if (event !== 'message') {
    say('empty');
    return;
  }
  say('head', idOf(message));
  delivery.release();
}

async function outcomes(connection, queue, dlq) {
  const sender = await openSender(connection, queueAddress(queue));
  for (const id of ['a', 'b', 'c']) say(id, await send(sender, id));
  const receiver = openReceiver(connection, queue);
  for (const settle of [
    (delivery) => delivery.accept(),
    (delivery) => delivery.reject(),
    (delivery) => delivery.release(),
    (delivery) => delivery.modified({ delivery_failed: true }),
    (delivery) => delivery.modified({ undeliverable_here: true }),
  ]) {
    const { message, delivery } = await receive(receiver);
    say('got', sentID(message), message.delivery_count || 0);
    settle(delivery);
  }
  say('d', await send(sender, 'd', 1000));
  const dead = openReceiver(connection, dlq);
  for (let i = 0; i < 3; i += 1) {
    const { message, delivery } = await receive(dead);
    say('dead', sentID(message), message.message_annotations['x-first-death-reason']);
    delivery.accept();
  }
  say('unroutable', await send(await openSender(connection, '/exchanges/amq.direct/none'), 'e'));
  const missing = connection.open_receiver('/queues/none');
  await when(missing, 'receiver_error');
  say('missing', missing.error.condition);
}

async function main() {
  const [role, url, ...rest] = process.argv.slice(2);
  const connection = await connect(url);
  await { declare, publish, collect, get, outcomes }[role](connection, ...rest);
  if (role === 'outcomes') await connect(url, 'wrong').catch((error) => say('password', error.message.split(':')[0]));
  await close(connection);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
