// Microsoft's SDK, @azure/service-bus, against a Curfew whose clock is manual.
//
// servicebus.js CONNECTION CLOCK   a connection string and the URL of the clock; prints "ok STEP" after each step
'use strict';

const assert = require('node:assert/strict');
const Long = require('long');
const { ServiceBusClient } = require('@azure/service-bus');

const [connection, clock] = process.argv.slice(2);
const queue = 'orders';
const day = 24 * 3600;

async function advance(seconds) {
  const answer = await fetch(clock, {
    method: 'POST',
    body: JSON.stringify({ advance: `${seconds}s` }),
    headers: { authorization: 'Basic ' + Buffer.from('guest:guest').toString('base64') },
  });
  assert.equal(answer.status, 200, await answer.text());
}

const client = new ServiceBusClient(connection, { retryOptions: { maxRetries: 0 } });

// all receives as many as there are; it waits for the first.
async function all(receiver, most = 1) {
  return receiver.receiveMessages(most, { maxWaitTimeInMs: 20000 });
}

async function one(receiver) {
  const got = await all(receiver);
  assert.equal(got.length, 1);
  return got[0];
}

// peek reads from the beginning: the SDK goes on where it was.
const peek = () => client.createReceiver(queue).peekMessages(10, { fromSequenceNumber: Long.ONE });

const steps = {
  async send({ sender, receiver }) {
    await sender.sendMessages({ body: { job: 1 }, subject: 'made', applicationProperties: { n: 7 }, timeToLive: 60000 });
    const m = await one(receiver);
    assert.deepEqual(m.body, { job: 1 });
    assert.equal(m.subject, 'made');
    assert.equal(m.applicationProperties.n, 7);
    assert.equal(m.deliveryCount, 0);
    assert.equal(m.expiresAtUtc - m.enqueuedTimeUtc, 60000);
    await receiver.completeMessage(m);
  },

  async batch({ sender, destroyer }) {
    const batch = await sender.createMessageBatch();
    for (let i = 0; i < 20; i++) assert.ok(batch.tryAddMessage({ body: i }));
    await sender.sendMessages(batch);
    await sender.sendMessages([{ body: 20 }, { body: 21 }]);
    const got = [];
    while (got.length < 22) got.push(...(await all(destroyer, 22)).map((m) => m.body)); // receive and delete
    assert.deepEqual(got, [...Array(22).keys()]);
  },

  async peek({ sender, receiver }) {
    await sender.sendMessages([{ body: 'one' }, { body: 'two' }]);
    const seen = await receiver.peekMessages(10);
    assert.deepEqual(seen.map((m) => m.body), ['one', 'two']);
    for (const m of seen) assert.equal((await one(receiver)).sequenceNumber.toString(), m.sequenceNumber.toString());
    await advance(60); // their locks end
    for (const body of ['one', 'two']) {
      const m = await one(receiver);
      assert.equal(m.body, body);
      assert.equal(m.deliveryCount, 1);
      await receiver.completeMessage(m);
    }
  },

  async renew({ sender, receiver }) {
    await sender.sendMessages({ body: 'renewed' });
    const m = await one(receiver);
    const until = m.lockedUntilUtc.getTime();
    await advance(40);
    assert.equal((await receiver.renewMessageLock(m)).getTime(), until + 40000);
    await advance(40);
    await receiver.completeMessage(m);
  },

  async abandon({ sender, receiver }) {
    await sender.sendMessages({ body: 'again', applicationProperties: { kept: 'k', tries: 0 } });
    await receiver.abandonMessage(await one(receiver), { tries: 1, by: 'me' });
    const m = await one(receiver);
    assert.equal(m.deliveryCount, 1);
    assert.deepEqual(m.applicationProperties, { kept: 'k', tries: 1, by: 'me' });
    await receiver.completeMessage(m);
  },

  async defer({ sender, receiver }) {
    await sender.sendMessages({ body: 'later' });
    const m = await one(receiver);
    await receiver.deferMessage(m, { why: 'busy' });
    const [back] = await receiver.receiveDeferredMessages([m.sequenceNumber]);
    assert.equal(back.body, 'later');
    assert.equal(back.state, 'deferred');
    assert.equal(back.applicationProperties.why, 'busy');
    await receiver.completeMessage(back);
  },

  async 'dead-letter'({ sender, receiver, dead }) {
    await sender.sendMessages({ body: 'bad' });
    await receiver.deadLetterMessage(await one(receiver), { deadLetterReason: 'BadAddress', deadLetterErrorDescription: 'no such street', by: 'me' });
    const m = await one(dead);
    assert.equal(m.body, 'bad');
    assert.equal(m.deadLetterReason, 'BadAddress');
    assert.equal(m.deadLetterErrorDescription, 'no such street');
    assert.equal(m.applicationProperties.by, 'me');
    await dead.completeMessage(m);
  },

  async schedule({ sender, receiver }) {
    await sender.sendMessages({ body: 'now' });
    const m = await one(receiver);
    const due = new Date(m.enqueuedTimeUtc.getTime() + 600000);
    await receiver.completeMessage(m);
    const numbers = await sender.scheduleMessages([{ body: 'first' }, { body: 'cancelled' }], due);
    await sender.cancelScheduledMessages(numbers[1]);
    await advance(540);
    assert.deepEqual((await peek()).map((x) => x.state), ['scheduled']);
    await advance(120);
    const came = await one(receiver);
    assert.equal(came.body, 'first');
    await receiver.completeMessage(came);
    assert.deepEqual(await peek(), []);
  },

  // A time to live counts from when the message is enqueued: by Curfew's clock, not by the sender's, and not before it is due.
  async 'expire by the clock of Curfew'({ sender, receiver, dead }) {
    const expired = async (body) => {
      const m = await one(dead);
      assert.equal(m.body, body);
      assert.equal(m.deadLetterReason, 'TTLExpiredException');
      await dead.completeMessage(m);
    };
    for (const skew of [-day, day]) {
      const RealDate = Date;
      globalThis.Date = class extends RealDate {
        constructor(...given) {
          super(...(given.length ? given : [RealDate.now() + skew * 1000]));
        }
      };
      try {
        await sender.sendMessages({ body: 'skewed', timeToLive: 60000 });
      } finally {
        globalThis.Date = RealDate;
      }
      await advance(59);
      assert.deepEqual((await peek()).map((m) => m.body), ['skewed']);
      await advance(1);
      await expired('skewed');
    }
    for (const how of ['scheduleMessages', 'scheduledEnqueueTimeUtc']) {
      await sender.sendMessages({ body: 'now' });
      const first = await one(receiver);
      const due = new Date(first.enqueuedTimeUtc.getTime() + 60000);
      await receiver.completeMessage(first);
      if (how === 'scheduleMessages') {
        await sender.scheduleMessages({ body: how, timeToLive: 30000 }, due);
      } else {
        await sender.sendMessages({ body: how, timeToLive: 30000, scheduledEnqueueTimeUtc: due });
      }
      await advance(70);
      const m = await one(receiver);
      assert.equal(m.body, how);
      assert.equal(m.expiresAtUtc - m.enqueuedTimeUtc, 30000);
      await receiver.abandonMessage(m);
      await advance(20);
      await expired(how);
    }
  },

  async 'expire after 14 days'({ sender, receiver, dead }) {
    await sender.sendMessages([{ body: 'lives 14 days', timeToLive: 30 * day * 1000 }, { body: 'lives a day', timeToLive: day * 1000 }]);
    await advance(day);
    let m = await one(dead);
    assert.equal(m.body, 'lives a day');
    assert.equal(m.deadLetterReason, 'TTLExpiredException');
    await dead.completeMessage(m);
    await advance(13 * day - 1);
    assert.equal((await peek()).length, 1);
    await advance(1);
    assert.equal((await peek()).length, 0);
    m = await one(dead);
    assert.equal(m.body, 'lives 14 days');
    await dead.completeMessage(m);
  },

  // The rules of a subscription that gets what has the subject price.
  async rules() {
    const rules = client.createRuleManager('events', 'filtered');
    const list = async () => {
      const all = [];
      for await (const rule of rules.listRules()) all.push(rule);
      return all.filter(Boolean); // the SDK has one undefined rule where there is none
    };
    const [first] = await list();
    assert.equal(first.filter.subject, 'price');
    await rules.deleteRule(first.name);
    assert.deepEqual(await list(), []);
    const large = { applicationProperties: { size: 7, kind: 'large', on: true }, contentType: 'c' };
    await rules.createRule('correlated', large);
    await rules.createRule('sql', { sqlExpression: "sys.Label LIKE 'n%' AND size > 2.5" });
    await rules.createRule('none', { sqlExpression: '1=0' });
    await assert.rejects(rules.createRule('SQL', { sqlExpression: '1=1' }), { code: 'MessagingEntityAlreadyExists' });
    await assert.rejects(rules.createRule('bad', { sqlExpression: 'size +' }), /octet 6: expected a comparison/);
    await assert.rejects(rules.createRule('act', { sqlExpression: '1=1' }, { sqlExpression: 'SET a = 1' }), /actions are not supported/);
    await assert.rejects(rules.deleteRule('bad'), { code: 'MessagingEntityNotFound' });
    const [correlated, none, sql] = await list();
    assert.deepEqual(correlated.filter.applicationProperties, large.applicationProperties);
    assert.equal(correlated.filter.contentType, 'c');
    assert.equal(none.filter.sqlExpression, '1=0');
    assert.equal(sql.filter.sqlExpression, "sys.Label LIKE 'n%' AND size > 2.5");

    const sender = client.createSender('events');
    const send = (body, message) => sender.sendMessages({ body, ...message });
    await send('price', { subject: 'price' });
    await send('news', { subject: 'news', applicationProperties: { size: 3 } });
    await send('small', { subject: 'news', applicationProperties: { size: 2 } });
    await send('large', { contentType: 'c', applicationProperties: { size: 7, kind: 'large', on: true, more: 1 } });
    const receiver = client.createReceiver('events', 'filtered', { receiveMode: 'receiveAndDelete' });
    assert.equal((await one(receiver)).body, 'news');
    assert.equal((await one(receiver)).body, 'large');
  },
};

async function main() {
  const at = {
    sender: client.createSender(queue),
    receiver: client.createReceiver(queue),
    destroyer: client.createReceiver(queue, { receiveMode: 'receiveAndDelete' }),
    dead: client.createReceiver(queue, { subQueueType: 'deadLetter' }),
  };
  for (const [name, step] of Object.entries(steps)) {
    await step(at);
    console.log('ok', name);
  }
  await client.close();
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
