package broker

import (
	"sync/atomic"

	"curfew/broker/internal/forward"
	"curfew/broker/internal/topology"
)

// VHost is a virtual host: a name space of exchanges and queues, with what publishers need of it. Safe for
// concurrent use.
type VHost struct {
	*topology.VHost
	b       *Broker
	replies replies
	idlers  idlers
	delays  atomic.Pointer[delays] // nil until there are delayed messages
	letters forward.VHostLetters
	share   share
	Former  Former
}

func newVHost(b *Broker, name string) *VHost {
	vh := &VHost{b: b}
	vh.letters.Init(&b.forwarder, vh.replyDirectly)
	vh.VHost = topology.New(topology.Options{Registry: &b.registry, Name: name, Lines: vh.letters.Lines(), Judge: vh.checkIdle, Former: vh.Former.add})
	vh.letters.VHost = vh.VHost
	return vh
}
