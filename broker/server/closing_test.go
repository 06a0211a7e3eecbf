package server_test

import (
	"testing"

	"curfew/broker/amqp"
	"curfew/broker/server"
)

// TestBothSidesCloseAChannel: the client's channel.close crosses the server's. Each is answered, and the close-ok that comes last
// does not hit a channel that is already forgotten (504 on the whole connection).
func TestBothSidesCloseAChannel(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.raw()
		defer c.Close()
		crossing := amqp.AppendMethod(nil, 1, &amqp.QueueDeclare{Queue: "none", Passive: true})
		crossing = amqp.AppendMethod(crossing, 1, &amqp.ChannelClose{})
		c.write(crossing)
		c.expect(amqp.ChannelCloseID)
		c.expect(amqp.ChannelCloseOkID)
		c.send(&amqp.ChannelCloseOk{})
		c.send(&amqp.ChannelOpen{})
		c.expect(amqp.ChannelOpenOkID)
	})
}
