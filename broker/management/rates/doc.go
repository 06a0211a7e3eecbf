// Package rates turns counts into rates, as RabbitMQ's lists show them. A rate is what was counted since the sample before the last, which is
// at least five seconds old. Samples are taken only on requests, so rates cost nothing when nobody needs them. The samples of a thing are kept for a
// while once somebody has requested them.
package rates
