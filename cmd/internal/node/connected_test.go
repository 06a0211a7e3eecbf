package node

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
	"curfew/monitor/history"
)

// TestApplicationsSayTheirVersion in their name, or as a product.
func TestApplicationsSayTheirVersion(t *testing.T) {
	for name, want := range map[string]history.Client{
		"orders 2.4.1":         {Name: "orders", Version: "2.4.1"},
		"orders@v2.4.1-rc.1":   {Name: "orders", Version: "2.4.1-rc.1"},
		"team/orders/2.4":      {Name: "team/orders", Version: "2.4"},
		"orders-10.0.0.5":      {Name: "pika", User: "ann", Version: "1.3.2"},
		"orders-7f9c6d-x2kp":   {Name: "pika", User: "ann", Version: "1.3.2"},
		"10.0.0.5:4431 orders": {Name: "pika", User: "ann", Version: "1.3.2"},
		"":                     {Name: "pika", User: "ann", Version: "1.3.2"},
	} {
		require.Equal(t, want, application("ann", operate.Client{Name: name, Product: "pika", Version: "1.3.2"}), name)
	}
	require.Zero(t, application("ann", operate.Client{Name: "orders"}))
	long := strings.Repeat("long", 2000)
	require.Zero(t, application("ann", operate.Client{Name: long + " 1.2", Product: long, Version: "1.3.2"}), "it would be kept for a day")
	require.Zero(t, application("ann", operate.Client{Product: "pika", Version: long}))
	require.Equal(t, "pika", application("ann", operate.Client{Name: long + " 1.2", Product: "pika", Version: "1.3.2"}).Name)
}
