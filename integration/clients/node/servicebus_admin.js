// The administration client of Microsoft's SDK, @azure/service-bus.
//
// servicebus_admin.js CONNECTION   a connection string; prints "ok STEP" after each step
'use strict';

const assert = require('node:assert/strict');
const { ServiceBusAdministrationClient } = require('@azure/service-bus');

const admin = new ServiceBusAdministrationClient(process.argv[2], { retryOptions: { maxRetries: 0 } });

async function all(list) {
  const found = [];
  for await (const one of list) found.push(one);
  return found;
}

const steps = {
  async queue() {
    const made = await admin.createQueue('js-queue', { lockDuration: 'PT30S', defaultMessageTimeToLive: 'P14D', maxDeliveryCount: 3 });
    assert.equal(made.name, 'js-queue');
    const { _response, ...got } = await admin.getQueue('js-queue');
    assert.equal(got.lockDuration, 'PT30S');
    assert.equal(got.defaultMessageTimeToLive, 'P14D');
    assert.equal(got.maxDeliveryCount, 3);
    assert.equal(got.deadLetteringOnMessageExpiration, false);
    const same = await admin.updateQueue(got); // nothing is changed
    assert.equal(same.lockDuration, 'PT30S');
    const changed = await admin.updateQueue({ ...got, lockDuration: 'PT20S', deadLetteringOnMessageExpiration: true });
    assert.equal(changed.lockDuration, 'PT20S');
    assert.equal(changed.deadLetteringOnMessageExpiration, true);
    assert.equal(changed.defaultMessageTimeToLive, 'P14D');
    await assert.rejects(admin.updateQueue({ ...changed, requiresSession: true }), /RequiresSession property of an existing Queue cannot be changed/);
    await assert.rejects(admin.createQueue('js-queue'), { statusCode: 409 });
    assert.equal(await admin.queueExists('js-queue'), true);
    assert.equal(await admin.queueExists('nowhere'), false);
    assert.ok((await all(admin.listQueues())).some((q) => q.name === 'js-queue'));
    const counts = await admin.getQueueRuntimeProperties('js-queue');
    assert.equal(counts.activeMessageCount, 0);
    assert.equal(counts.scheduledMessageCount, 0);
    assert.ok(Date.now() - counts.createdAt < 60000);
  },

  async topic() {
    const made = await admin.createTopic('js-topic', { defaultMessageTimeToLive: 'PT1H' });
    assert.equal(made.name, 'js-topic');
    const subscription = await admin.createSubscription('js-topic', 'all', { lockDuration: 'PT10S' });
    assert.equal(subscription.topicName, 'js-topic');
    assert.equal(subscription.subscriptionName, 'all');
    assert.equal((await admin.getSubscription('js-topic', 'all')).lockDuration, 'PT10S');
    assert.deepEqual((await all(admin.listTopics())).map((t) => t.name).filter((n) => n === 'js-topic'), ['js-topic']);
    assert.deepEqual((await all(admin.listSubscriptions('js-topic'))).map((s) => s.subscriptionName), ['all']);
    assert.equal((await admin.getTopicRuntimeProperties('js-topic')).subscriptionCount, 1);
    assert.equal((await admin.getSubscriptionRuntimeProperties('js-topic', 'all')).totalMessageCount, 0);
    assert.deepEqual((await all(admin.listRules('js-topic', 'all'))).map((r) => r.name), ['$Default']);
    assert.equal((await admin.getRule('js-topic', 'all', '$Default')).name, '$Default');
    await assert.rejects(admin.createRule('js-topic', 'all', 'blue', { sqlExpression: 'size + 1 = 2' }), /octet 6: expected a comparison/);
    const filter = { subject: 's', messageId: 'm', applicationProperties: { color: 'blue', size: 7, deep: true } };
    await admin.createRule('js-topic', 'all', 'blue', filter);
    const rule = await admin.getRule('js-topic', 'all', 'blue');
    assert.equal(rule.filter.subject, 's');
    assert.equal(rule.filter.messageId, 'm');
    assert.deepEqual(rule.filter.applicationProperties, filter.applicationProperties);
    await admin.deleteRule('js-topic', 'all', '$Default');
    assert.deepEqual((await all(admin.listRules('js-topic', 'all'))).map((r) => r.name), ['blue']);
  },

  async namespace() {
    assert.equal((await admin.getNamespaceProperties()).messagingSku, 'Standard');
  },

  async delete() {
    await admin.deleteSubscription('js-topic', 'all');
    assert.equal(await admin.subscriptionExists('js-topic', 'all'), false);
    await admin.deleteTopic('js-topic');
    await admin.deleteQueue('js-queue');
    assert.equal(await admin.queueExists('js-queue'), false);
  },
};

(async () => {
  for (const [name, step] of Object.entries(steps)) {
    await step();
    console.log(`ok ${name}`);
  }
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
