// Package rates turns counts into rates, as RabbitMQ's lists show them. A rate is what was counted since the sample before the last, which is
// at least five seconds old. Samples are taken when somebody asks, and no more often than that, so it costs nothing while nobody asks. The samples
// of something whose samples were asked for are kept for a while.
package rates
