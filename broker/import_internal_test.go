package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/internal/catalog"
)

// What cannot be put into force is not passed over in silence.
func TestImportReportsWhatIsNotInForce(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	err = importer{b}.apply(&catalog.Definitions{Queues: []catalog.Queue{{VHost: "/", Name: "q", Args: catalog.Args("?")}}})
	require.ErrorContains(t, err, `queue "q"`)
}
