// The stories of test_stories.py.
const amqp = require('amqplib');

const run = process.env.RUN + '.js.';
const advance = (by) => fetch(process.env.HTTP + '/api/curfew/clock', {
  method: 'POST', body: JSON.stringify({ advance: by }), headers: { Authorization: 'Basic ' + btoa('guest:guest') },
});

let connection;
let channel;
beforeAll(async () => {
  connection = await amqp.connect(process.env.AMQP);
  channel = await connection.createConfirmChannel();
});
afterAll(() => connection.close());

const to = (name) => ({ 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': run + name });
const queue = (name, args = {}) => channel.assertQueue(run + name, { durable: false, arguments: args });
const publish = async (name, body, options = {}) => {
  channel.sendToQueue(run + name, Buffer.from(body), options);
  await channel.waitForConfirms();
};
const get = async (name, noAck = true) => (await channel.get(run + name, { noAck })) || undefined;
const body = async (name) => (await get(name))?.content.toString();

test('time to live of a message', async () => {
  await queue('a.dead');
  await queue('a', to('a.dead'));
  await publish('a', 'm', { expiration: 3600000 });
  await advance('59m59.999s');
  expect(await body('a.dead')).toBeUndefined();
  await advance('1ms');
  expect(await body('a.dead')).toBe('m');
});

test('time to live of a queue', async () => {
  await queue('b.dead');
  await queue('b', { ...to('b.dead'), 'x-message-ttl': 60000 });
  await publish('b', 'm');
  await advance('1m');
  expect(await body('b.dead')).toBe('m');
});

test('the lower counts', async () => {
  await queue('c.dead');
  await queue('c', { ...to('c.dead'), 'x-message-ttl': 10000 });
  await publish('c', 'm', { expiration: 3600000 });
  await advance('10s');
  expect(await body('c.dead')).toBe('m');
});

test('behind one without a deadline', async () => {
  await queue('d.dead');
  await queue('d', to('d.dead'));
  await publish('d', 'stays');
  await publish('d', 'goes', { expiration: 1000 });
  await advance('1s');
  expect(await body('d.dead')).toBe('goes');
  expect(await body('d')).toBe('stays');
});

test('retry', async () => {
  await queue('e', to('e.retry'));
  await queue('e.retry', { ...to('e'), 'x-message-ttl': 30000 });
  await publish('e', 'job');
  for (let attempt = 0; attempt < 3; attempt++) {
    const job = await get('e', false);
    expect(job.properties.headers['x-death'] ?? []).toHaveLength(attempt ? 2 : 0);
    channel.reject(job, false);
    expect(await body('e')).toBeUndefined();
    await advance('30s');
  }
  expect(await body('e')).toBe('job');
});

test('back-off in one queue', async () => {
  await queue('f');
  await queue('f.retry', to('f'));
  for (const ttl of ['60000', '1000', '10000']) await publish('f.retry', ttl, { expiration: ttl });
  await advance('1m');
  for (const ttl of ['1000', '10000', '60000']) expect(await body('f')).toBe(ttl);
});

test('delay', async () => {
  await queue('g');
  await publish('g', 'later', { headers: { 'x-delay': 7200000 } });
  await advance('1h');
  expect(await body('g')).toBeUndefined();
  await advance('1h');
  expect(await body('g')).toBe('later');
});

test('lock', async () => {
  await queue('h', { 'x-lock-duration': 30000 });
  await publish('h', 'm');
  const holder = await connection.createChannel();
  expect((await holder.get(run + 'h')).content.toString()).toBe('m');
  await advance('30s');
  await holder.close();
  expect((await get('h')).fields.redelivered).toBe(true);
});

test('unused queue', async () => {
  await queue('i', { 'x-expires': 60000 });
  await advance('1m');
  const other = await connection.createChannel();
  other.on('error', () => {});
  await expect(other.checkQueue(run + 'i')).rejects.toThrow('404');
});

test('two waits in one advance', async () => {
  await queue('j.dead');
  await queue('j.2', { ...to('j.dead'), 'x-message-ttl': 20000 });
  await queue('j.1', { ...to('j.2'), 'x-message-ttl': 10000 });
  await publish('j.1', 'm');
  await advance('20m');
  expect(await body('j.dead')).toBe('m');
});
