package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

func TestStoreIsInspectedAndVerified(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fillStore(t, dir)
	code, out, errOut := runCommand(t, "store", "inspect", dir)
	require.Zero(t, code, errOut)
	assert.Regexp(t, `(?m)^\d+ +1 +1 +1$`, out, "one queue with one message, the first")
	setenv(t, "CURFEW_DATA_DIR="+dir)
	code, _, errOut = runCommand(t, "store", "verify")
	assert.Zero(t, code, errOut)

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, f := range files {
		damage(t, f)
	}
	code, _, errOut = runCommand(t, "store", "verify", dir)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, dir, "the damaged file is named")
}

func TestStoreIsRepaired(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fillStore(t, dir)
	first := filepath.Join(dir, "0000000001.journal")
	other := filepath.Join(dir, "0000000009.journal")
	require.NoError(t, os.Rename(first, other))
	code, out, errOut := runCommand(t, "store", "repair", dir)
	assert.Equal(t, exitFailed, code, "nobody agreed")
	assert.Contains(t, out, "Repair it? [y/N]")
	assert.Contains(t, errOut, "`curfew store repair` can name it 0000000001.journal")
	assert.NoFileExists(t, first)
	code, _, errOut = runCommand(t, "store", "repair", "--yes", dir)
	assert.Zero(t, code, errOut)
	code, _, errOut = runCommand(t, "store", "verify", dir)
	assert.Zero(t, code, errOut)
}

func fillStore(t *testing.T, dir string) {
	b, err := broker.New(broker.Options{Store: store.Options{Dir: dir}})
	require.NoError(t, err)
	vh, _ := b.VHost("/")
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	persistent := amqp.Properties{DeliveryMode: 2}
	p := vh.NewPublisher("guest")
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: persistent.Append(nil), Body: []byte("m")})
	require.NoError(t, err)
	p.Flush(nil)
	require.NoError(t, b.Close())
}

// damage flips a byte near the beginning of a file.
func damage(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	if len(b) > 8 {
		b[6] ^= 0xff
		require.NoError(t, os.WriteFile(file, b, 0o600))
	}
}
