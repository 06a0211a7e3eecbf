// One side of a deadline run, with amqplib.
//
// deadlines.js declare URL QUEUE DLX DLQ   the queue, its dead-letter exchange and a queue bound to that
// deadlines.js publish URL QUEUE           "ID TTL_MS" lines on stdin; prints "sent ID TTL_MS BEFORE_US AFTER_US" (after: confirmed)
// deadlines.js collect URL DLQ COUNT       prints "ready", then "got ID ARRIVED_US" per message, and ends after COUNT
// deadlines.js get     URL QUEUE           prints "head ID" or "empty" and puts the message back
'use strict';

const readline = require('readline');
const amqp = require('amqplib');

const { nowMicros } = require('./clock');
const say = (...words) => process.stdout.write(words.join(' ') + '\n');

async function declare(connection, queue, dlx, dlq) {
  const channel = await connection.createChannel();
  await channel.assertExchange(dlx, 'direct', { durable: true });
  await channel.assertQueue(dlq, { durable: true });
  await channel.bindQueue(dlq, dlx, queue);
  await channel.assertQueue(queue, { durable: true, deadLetterExchange: dlx });
}

async function publish(connection, queue) {
  const channel = await connection.createConfirmChannel();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [id, ttl] = line.split(' ');
    const before = nowMicros();
    channel.sendToQueue(queue, Buffer.from(id), { expiration: ttl, persistent: true, messageId: id });
    await channel.waitForConfirms();
    say('sent', id, ttl, before, nowMicros());
  }
}

async function collect(connection, queue, count) {
  const channel = await connection.createChannel();
  await channel.prefetch(500);
  await new Promise((done) => {
    let left = Number(count);
    const arrived = (message) => {
      const at = nowMicros();
      channel.ack(message);
      say('got', message.content.toString(), at);
      left -= 1;
      if (left === 0) done();
    };
    channel.consume(queue, arrived).then(() => say('ready'));
  });
  await channel.close();
}

async function get(connection, queue) {
  const channel = await connection.createChannel();
  const message = await channel.get(queue);
  if (!message) {
    say('empty');
    return;
  }
  say('head', message.content.toString());
  channel.nack(message);
  await channel.close();
}

async function main() {
  const [role, url, ...rest] = process.argv.slice(2);
  const connection = await amqp.connect(url);
  await { declare, publish, collect, get }[role](connection, ...rest);
  await connection.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
