package topology

import (
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// Pages are those of queues, exchanges, bindings and messages.
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

	queuesTab = "/queues"
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
		},
		Changes: map[string]ui.Handler{
			newQueue: p.declareQueue, deleteQueue: p.deleteQueue, purgeQueue: p.purge, getMessage: p.get, publish: p.publish,
			newExchange: p.declareExchange, deleteExchange: p.deleteExchange, newBinding: p.bind, deleteBinding: p.unbind,
		},
	}
}
