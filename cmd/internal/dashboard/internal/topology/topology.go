package topology

import (
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// Pages are those of virtual hosts, queues, exchanges, bindings and messages.
type Pages struct {
	Operations *operate.Operations
	Site       ui.Site
}

// The pages, and where their forms are sent.
const (
	newQueue       = "/queue/new"
	deleteQueue    = "/queue/delete"
	purgeQueue     = "/queue/purge"
	getMessage     = "/queue/get"
	publish        = "/publish"
	exchanges      = "/exchanges"
	newExchange    = "/exchange/new"
	deleteExchange = "/exchange/delete"
	newBinding     = "/binding/new"
	deleteBinding  = "/binding/delete"

	queuesTab   = "/queues"
	policiesTab = "/policies"
)

// PublishPath takes longer forms than the others.
const PublishPath = publish

// Group has the pages and the forms.
func (p Pages) Group() ui.Group {
	return ui.Group{
		Pages: map[string]ui.Page{
			newQueue:       {Title: "New queue", Tab: queuesTab, Build: p.newQueue},
			deleteQueue:    {Title: "Delete", Tab: queuesTab, Build: p.askDeleteQueue},
			purgeQueue:     {Title: "Purge", Tab: queuesTab, Build: p.askPurge},
			getMessage:     {Title: "Get", Tab: queuesTab, Build: p.askGet},
			publish:        {Title: "Publish", Tab: exchanges, Build: p.publishForm},
			exchanges:      {Title: "Exchanges", Tab: exchanges, Build: p.listExchanges},
			"/exchange":    {Title: "Exchange", Tab: exchanges, Build: p.exchange},
			newExchange:    {Title: "New exchange", Tab: exchanges, Build: p.newExchange},
			deleteExchange: {Title: "Delete", Tab: exchanges, Build: p.askDeleteExchange},
			newBinding:     {Title: "New binding", Tab: exchanges, Build: p.newBinding},
			deleteBinding:  {Title: "Delete", Tab: exchanges},
			vhosts:         {Title: "Virtual hosts", Tab: policiesTab, Build: p.listVHosts},
			vhostPath:      {Title: "Virtual host", Tab: policiesTab, Build: p.vhost},
			newVHost:       {Title: "New virtual host", Tab: policiesTab, Build: p.newVHost},
			deleteVHost:    {Title: "Delete", Tab: policiesTab, Build: p.askDeleteVHost},
		},
		Changes: map[string]ui.Handler{
			newQueue: p.declareQueue, deleteQueue: p.deleteQueue, purgeQueue: p.purge, getMessage: p.get, publish: p.publish,
			newExchange: p.declareExchange, deleteExchange: p.deleteExchange, newBinding: p.bind, deleteBinding: p.unbind,
			newVHost: p.makeVHost, vhostPath: p.describeVHost, limitVHost: p.limitVHost, protectVHost: p.protectVHost, deleteVHost: p.deleteVHost,
		},
	}
}
