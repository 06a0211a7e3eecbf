// An application written for the delayed-message plugin, with amqplib. The roles and their lines are those of ../pika/delayed.py.
'use strict';

const readline = require('readline');
const amqp = require('amqplib');

const { nowMicros } = require('./clock');
const say = (...words) => process.stdout.write(words.join(' ') + '\n');

async function declare(connection) {
  const channel = await connection.createChannel();
  for (const type of ['direct', 'topic', 'fanout', 'headers']) {
    await channel.assertExchange('delayed.' + type, 'x-delayed-message', { durable: true, arguments: { 'x-delayed-type': type } });
    await channel.assertQueue('jobs.' + type, { durable: true });
    await channel.bindQueue('jobs.' + type, 'delayed.' + type, type === 'topic' ? 'eu.*' : 'eu.new', type === 'headers' ? { 'x-match': 'all', region: 'eu' } : {});
  }
}

async function publish(connection) {
  const channel = await connection.createConfirmChannel();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [type, id, key, region, delay] = line.split(' ');
    const headers = delay === 'none' ? { region } : { region, 'x-delay': Number(delay) };
    const before = nowMicros();
    channel.publish('delayed.' + type, key, Buffer.from('job'), { messageId: id, headers, persistent: true });
    await channel.waitForConfirms();
    say('sent', type, id, before);
  }
}

async function refused(connection) {
  for (const args of [{}, { 'x-delayed-type': 'unheard-of' }]) {
    const channel = await connection.createChannel();
    channel.on('error', () => {}); // the promise has it, too
    await channel.assertExchange('refused', 'x-delayed-message', { durable: true, arguments: args }).then(() => say('declared'), (err) => say(err.message));
  }
}

async function main(role, url) {
  const connection = await amqp.connect(url);
  await { declare, publish, refused }[role](connection);
  await connection.close();
}

main(...process.argv.slice(2)).catch((err) => {
  console.error(err);
  process.exit(1);
});
