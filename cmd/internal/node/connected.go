package node

import (
	"net/netip"
	"regexp"

	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/broker/server"
	"curfew/monitor/history"
)

// connected is which versions of applications are connected, as they were when a connection was last opened or closed.
type connected struct {
	of   [2]uint64 // connections opened and closed until then
	list []history.Client
}

// versions asks again if connections were opened or closed.
func (c *connected) versions(s *server.Server) []history.Client {
	now := [...]uint64{s.Totals.ConnectionsOpened.Load(), s.Totals.ConnectionsClosed.Load()}
	if c.of == now {
		return c.list
	}
	seen := map[history.Client]bool{}
	s.Clients(func(user string, properties amqp.Table) {
		if one := application(user, operate.ClientOf(properties)); one.Version != "" {
			seen[one] = true
		}
	})
	c.of, c.list = now, nil
	for one := range seen {
		c.list = append(c.list, one)
	}
	return c.list
}

// ending is a version at the end of a client's name: "orders 2.4.1", "orders@v2.4.1-rc1".
var ending = regexp.MustCompile(`^(.+?)[ /@:_-]v?(\d+\.\d[0-9A-Za-z.+-]*)$`)

// longest is how many bytes the name of an application and its version may have. They are kept for a day, and a client says what it likes.
const longest = 128

// application is what a client says of itself: its name, if that ends with a version, or else its product and that product's version.
func application(user string, c operate.Client) history.Client {
	if found := ending.FindStringSubmatch(c.Name[:min(len(c.Name), longest+1)]); found != nil && len(c.Name) <= longest {
		if _, err := netip.ParseAddr(found[2]); err != nil {
			return history.Client{Name: found[1], Version: found[2]}
		}
	}
	if c.Product == "" || max(len(c.Product), len(c.Version)) > longest {
		return history.Client{}
	}
	return history.Client{Name: c.Product, User: user, Version: c.Version}
}
