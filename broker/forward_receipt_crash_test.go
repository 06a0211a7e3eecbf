package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// TestReceiptAndExpiryAreOne: wherever in what an expiry writes the machine crashes, the
// message is in its queue and no receipt was sent, or it is where it went and its publisher
// has one. In the end, there is exactly one.
func TestReceiptAndExpiryAreOne(t *testing.T) {
	for name, c := range map[string]struct {
		args  amqp.Table
		going int // dead letters
	}{
		"dropped":       {nil, 0},
		"dead-lettered": {amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var before, after map[string][]byte
			inBubble(t, broker.Options{Store: store.Options{Dir: dir}}, func(x *testBroker) {
				for _, queue := range []string{"dead", "replies"} {
					x.durable(queue, nil)
				}
				x.durable("q", c.args)
				p := amqp.Properties{Expiration: "100", Headers: wantsReceipt, ReplyTo: "replies", DeliveryMode: 2}
				_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte("body")})
				require.NoError(t, err)
				x.p.Flush(nil)
				x.commit()
				before = written(t, dir)
				time.Sleep(time.Second)
				x.expire(x.deadlines())
				x.commit()
				after = written(t, dir)
			})
			gone := fmt.Sprint(0, c.going, 1)
			log, seen := journalOf(t, after), map[string]int{}
			for cut := len(before[log]); ; cut = min(cut+64, len(after[log])) { // the records are longer
				found, end := afterCrash(t, after, log, cut)
				seen[found]++
				assert.Equal(t, gone, end, "cut at %d", cut)
				if cut == len(after[log]) {
					break
				}
			}
			waiting := fmt.Sprint(1, 0, 0)
			assert.Len(t, seen, 2, "%v", seen)
			assert.NotZero(t, seen[waiting])
			assert.NotZero(t, seen[gone])
		})
	}
}

// written reads what is in the files of a store, without most of the zeros they are made of.
func written(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, ".tmp") {
			continue // it has been given its name meanwhile; nothing is in it
		}
		require.NoError(t, err)
		if n := len(bytes.TrimRight(data, "\x00")); n > 0 {
			files[filepath.Base(name)] = data[:min(n+64, len(data))] // the last record may end with zeros
		}
	}
	return files
}

func journalOf(t *testing.T, files map[string][]byte) (name string) {
	t.Helper()
	for file := range files {
		if filepath.Ext(file) == ".journal" {
			require.Empty(t, name, "one segment")
			name = file
		}
	}
	return name
}

// afterCrash recovers with a file cut off and says how many messages are in q, dead and
// replies: at first, and when what was left has expired.
func afterCrash(t *testing.T, files map[string][]byte, log string, cut int) (found, end string) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if name == log {
			data = append(slices.Clone(data[:cut]), make([]byte, 64)...) // the zeros that the file is made of, with which a record may end
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	inBubble(t, broker.Options{Store: store.Options{Dir: dir}}, func(x *testBroker) {
		found = x.depths("q", "dead", "replies")
		time.Sleep(time.Hour)
		x.expire(x.deadlines())
		end = x.depths("q", "dead", "replies")
	})
	return found, end
}

func (x *testBroker) depths(names ...string) string {
	x.t.Helper()
	var all []any
	for _, name := range names {
		q, err := x.vh.Queues.Get(name)
		require.NoError(x.t, err)
		ready, _, _ := q.Messages.Counts()
		all = append(all, ready)
	}
	return fmt.Sprint(all...)
}
