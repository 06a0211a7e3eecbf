package topology

import (
	g "maragu.dev/gomponents"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// QueueMenu is what the actor may do with a queue.
func QueueMenu(o *operate.Operations, a operate.Actor, vhost, name string) g.Node {
	to := func(path string) string { return ui.At(path, "vhost", vhost, "name", name) }
	read, write := operate.MayQueue(o, a, access.Read, vhost, name), operate.MayQueue(o, a, access.Write, vhost, name)
	return ui.Menu("Actions",
		g.If(operate.MayExchange(o, a, access.Write, vhost, ""), ui.Action(ui.At(PublishPath, "vhost", vhost, "key", name), "Publish…")),
		g.If(read, ui.Action(to("/queue/get"), "Get…")),
		g.If(write, ui.Action(ui.At("/binding/new", "vhost", vhost, "destination", name), "Bind…")),
		g.If(read, ui.DangerLink(to("/queue/purge"), "Purge…")),
		g.If(operate.MayQueue(o, a, access.Configure, vhost, name), ui.DangerLink(to("/queue/delete"), "Delete…")))
}
