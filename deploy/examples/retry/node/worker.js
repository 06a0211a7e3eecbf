// A worker. What fails is tried again after 1, 2, 4, 8 and 16 seconds: ../README.md has the picture. AMQP_URL says where RabbitMQ is.
'use strict';

const amqp = require('amqplib');

const mostRetries = 5;

// Yours goes here. In this example a job is a name and how often it fails, as in "mail 2".
async function work(job, retries) {
  if (retries < Number(job.split(' ')[1])) throw new Error('failed');
}

async function declare(channel) {
  await channel.assertQueue('failed', { arguments: { 'x-queue-type': 'quorum' } });
  await channel.assertQueue('jobs', { deadLetterExchange: '', deadLetterRoutingKey: 'failed', arguments: { 'x-queue-type': 'quorum' } });
  await channel.assertExchange('retry', 'fanout');
  // Dead letters keep their routing key, so they go back to the queue that it names.
  await channel.assertQueue('retry', {
    deadLetterExchange: '',
    arguments: { 'x-queue-type': 'quorum', 'x-dead-letter-strategy': 'at-least-once', 'x-overflow': 'reject-publish' },
  });
  await channel.bindQueue('retry', 'retry', '');
}

async function handle(channel, message) {
  const job = message.content.toString();
  const name = job.split(' ')[0];
  const { headers } = message.properties;
  const retries = headers.retries || 0;
  try {
    await work(job, retries);
    console.log(`${name}: done after ${retries} retries`);
  } catch (error) {
    if (retries === mostRetries) {
      channel.reject(message, false);
      console.log(`${name}: ${error.message} for good`);
      return;
    }
    const seconds = 2 ** retries;
    channel.publish('retry', message.fields.routingKey, message.content, {
      ...message.properties,
      userId: undefined, // only its first publisher may give it
      headers: { ...headers, retries: retries + 1 },
      expiration: String(1000 * seconds),
    });
    await channel.waitForConfirms();
    console.log(`${name}: ${error.message}, again in ${seconds} s`);
  }
  channel.ack(message); // last: after a crash in between a job is there twice, never lost
}

async function main() {
  const connection = await amqp.connect(process.env.AMQP_URL || 'amqp://guest:guest@127.0.0.1:5672/%2F');
  const channel = await connection.createConfirmChannel();
  await declare(channel);
  await channel.prefetch(10);
  await channel.consume('jobs', (message) => handle(channel, message).catch(exit));
  console.log('waiting for jobs');
}

function exit(error) {
  console.error(error);
  process.exit(1);
}

main().catch(exit);
