package rabbitmq

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/cluster"
)

// TestIdentity: whichever node is asked, and however many ask at the same time, a virtual host has one identity. Another virtual host has
// another. A user without the permissions learns which are missing.
func TestIdentity(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	_, url := nodes[2].vhost(t)
	plain := nodes[2].user(t, url, "plain", "", "^curfew\\.tap\\.", "^curfew\\.tap\\.", "^curfew\\.tap\\.")
	var mu sync.Mutex
	seen := map[string]bool{}
	var asking sync.WaitGroup
	for i := range 9 {
		asking.Go(func() {
			n := nodes[i%3]
			word, err := mustOpen(t, cluster.Options{URL: strings.Replace(plain, nodes[2].addr, n.addr, 1)}).Identity(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[word] = true
		})
	}
	asking.Wait()
	require.Len(t, seen, 1)
	require.NotContains(t, seen, "")
	denied := nodes[2].user(t, url, "denied", "", "^$", "^$", "^$")
	_, err := mustOpen(t, cluster.Options{URL: denied}).Identity(t.Context())
	require.ErrorContains(t, err, "the permissions to configure, write and read curfew.tap.*")
	check(t, openChannel(t, dial(t, url)).ExchangeDelete("curfew.tap.identity", false, false))
	word, err := mustOpen(t, cluster.Options{URL: plain}).Identity(t.Context())
	check(t, err)
	require.NotContains(t, seen, word)
}
