package cluster

import (
	"crypto/rand"
	"strings"
)

// TapPrefix is how the queues that Curfew declares in RabbitMQ begin. The permissions of
// its user name it.
const TapPrefix = NamePrefix + "tap."

// TapName is a new name for a queue of Curfew's own: nobody else has it, so that a
// connection that RabbitMQ still takes for alive cannot hold it. It ends with what the
// queue is for, cut to the 255 bytes that AMQP allows.
func TapName(purpose string) string {
	name := TapPrefix + strings.ToLower(rand.Text()[:10]) + "." + purpose
	if len(name) > 255 {
		name = strings.ToValidUTF8(name[:255], "")
	}
	return name
}
