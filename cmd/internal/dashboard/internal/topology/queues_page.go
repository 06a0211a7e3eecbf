package topology

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
)

func (p *queueForm) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	const spans = "in ms, or as 90s, 10m or 24h"
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(queuesTab, g.Text("Queues"))), h.H1(g.Text("New queue")),
		h.Section(h.Class("card"), s.Sheet(newQueue, f, g.Group{
			f.Field("Name", "name", "", h.Required(), h.MaxLength("255")),
			f.ChooseVHost(p.VHosts),
			f.Choose("Type", "x-queue-type", "", "classic", "classic", "quorum", "quorum: counts deliveries and limits them"),
			f.Field("Time to live", "x-message-ttl", "For its messages, "+spans+". Empty: as long as each message says.", h.Placeholder("10m")),
			f.Choose("Dead letters go", "dead_letters", "Messages that expire, are rejected or do not fit.",
				"", "nowhere: they are dropped", "exchange", "to the exchange below", "queue", "to a dead-letter queue of its own"),
			f.Field("Dead-letter exchange", "x-dead-letter-exchange", "Empty: the default exchange, which routes to the queue named by the key."),
			f.Field("Dead-letter key", "x-dead-letter-routing-key", "Empty: the message's own."),
			h.FieldSet(h.Legend(g.Text("The queue")),
				f.Check("survives a restart", "durable"), f.Check("is deleted with its last consumer", "auto_delete"),
				f.Check("has one active consumer", "x-single-active-consumer")),
			h.Details(g.If(!f.OK(), g.Attr("open")), h.Summary(g.Text("Limits and other arguments")), h.Div(h.Class("sheet"),
				f.Field("Most messages", "x-max-length", "", number),
				f.Field("Most bytes", "x-max-length-bytes", "", number),
				f.Choose("Beyond the limit", "x-overflow", "", "", "the oldest message is dropped", "reject-publish", "new messages are refused", "reject-publish-dlx", "new messages are dead-lettered"),
				f.Field("Most deliveries", "x-delivery-limit", "For quorum queues.", number),
				f.Field("Highest priority", "x-max-priority", "1 to 255.", number),
				f.Field("Expires unused after", "x-expires", "Time "+spans+"."),
				f.Field("Deliveries are locked for", "x-lock-duration", "Time "+spans+". Then they go back to the queue."),
				f.Area("Other arguments", "arguments", `A JSON object, for example {"x-auto-delete-on-idle": 3600000}.`, 3))),
		}, ui.Primary("Create the queue"), ui.Link(queuesTab, g.Text("Cancel")))),
	}}
}

var number = g.Group{g.Attr("inputmode", "numeric"), g.Attr("pattern", "[0-9]*")}

// crumbs are the links back to a queue.
func (d *deletion) crumbs() g.Node {
	return h.P(h.Class("crumbs"), ui.Link(queuesTab, g.Text("Queues")), g.Text(" / "), ui.Link(ui.QueueURL(d.VHost, d.Name), ui.Name(d.Name)),
		g.Text(" · virtual host "), ui.Name(d.VHost))
}

func (d *deletion) fields() g.Group {
	return g.Group{ui.Hidden("vhost", d.VHost), ui.Hidden("name", d.Name), ui.Hidden("asked", strconv.Itoa(d.Messages))}
}

func (d *deletion) cancel() g.Node { return ui.Link(ui.QueueURL(d.VHost, d.Name), g.Text("Cancel")) }

// QueueMenu is what can be done with a queue.
func QueueMenu(vhost, name string) g.Node {
	to := func(path string) string { return ui.At(path, "vhost", vhost, "name", name) }
	return ui.Menu("Actions",
		ui.Action(ui.At(publish, "vhost", vhost, "key", name), "Publish…"), ui.Action(to(getMessage), "Get…"),
		ui.Action(ui.At(newBinding, "vhost", vhost, "destination", name), "Bind…"), ui.DangerLink(to(purgeQueue), "Purge…"), ui.DangerLink(to(deleteQueue), "Delete…"))
}

// queueDeletion is the page that asks whether to delete a queue.
type queueDeletion struct{ *deletion }

func (d *queueDeletion) Draw(s *ui.Info) ui.Drawing {
	f := d.Form
	typed := g.Node(nil)
	if d.Messages > 0 {
		typed = f.Typed(strconv.Itoa(d.Messages))
	}
	return ui.Drawing{Live: g.Group{
		d.crumbs(), h.H1(g.Text("Delete the queue "), ui.Name(d.Name), g.Text("?")),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Messages", g.If(d.Ready+d.Unacked > 0, h.Class("bad")), g.Text(ui.Number(d.Ready+d.Unacked)+": they are lost, and not dead-lettered. If more arrive before the deletion, the queue stays.")),
			g.If(d.OwnDeadLetters > 0, ui.Fact("Dead letters", h.Class("bad"),
				g.Text(ui.Number(d.OwnDeadLetters)+": they are lost, too. No queue has taken them yet, or they are in the queue's own dead-letter queue, which is deleted with it."))),
			ui.Fact("Consumers", g.If(d.Consumers > 0, h.Class("warn")), g.Text(ui.Number(d.Consumers)+": they are cancelled.")))),
		h.Section(h.Class("card"), s.Sheet(deleteQueue, f, append(d.fields(), ui.Hidden("queue", strconv.FormatUint(d.ID, 10)),
			h.FieldSet(h.Legend(g.Text("Only if")), f.Check("it is empty", "if_empty"), f.Check("it has no consumers", "if_unused")), typed),
			ui.Danger("Delete the queue"), d.cancel())),
	}}
}

// queuePurge is the page that asks whether to delete the messages of a queue.
type queuePurge struct{ *deletion }

func (d *queuePurge) Draw(s *ui.Info) ui.Drawing {
	if d.Messages == 0 {
		return ui.Drawing{Live: g.Group{d.crumbs(), h.H1(g.Text("There is nothing to delete")), ui.Only(g.Text("No message is ready. "), d.cancel())}}
	}
	return ui.Drawing{Live: g.Group{
		d.crumbs(), h.H1(g.Text("Delete " + ui.Plural(d.Messages, "message") + " for good?")),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Queue", ui.Name(d.Name)),
			ui.Fact("Messages", g.Text("those that are ready now; messages that arrive later, or that consumers hold, stay")))),
		h.Section(h.Class("card"), s.Sheet(purgeQueue, d.Form, append(d.fields(), ui.Hidden("position", d.Position.String()), d.Form.Typed(strconv.Itoa(d.Messages))),
			ui.Danger("Delete them"), d.cancel())),
	}}
}
