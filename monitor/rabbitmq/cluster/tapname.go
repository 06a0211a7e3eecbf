package cluster

import (
	"crypto/rand"
	"strings"
)

// TapPrefix begins the names of the queues that Curfew declares in RabbitMQ. The permissions
// of its user name it.
const TapPrefix = NamePrefix + "tap."

// TapName returns a new name for a queue of Curfew's own. Nobody else has it, not even an
// earlier connection of Curfew that RabbitMQ still takes for alive. It ends with what the
// queue is for, and is cut to the 255 bytes that AMQP allows.
func TapName(purpose string) string {
	name := TapPrefix + strings.ToLower(rand.Text()[:10]) + "." + purpose
	if len(name) > 255 {
		name = strings.ToValidUTF8(name[:255], "")
	}
	return name
}
