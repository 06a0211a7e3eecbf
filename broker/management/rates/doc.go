// Package rates turns counts into rates, as RabbitMQ's lists show them. A rate is what was counted since the sample before the last, which is
// at least five seconds old. Samples are taken when somebody asks, at most that often: nobody asking costs nothing. Of the things that somebody
// asked about with samples, they are kept for a while.
package rates
