package broker_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"curfew/broker"
)

// heap is what is in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestEmptiedQueuesGiveMemoryBack: a queue that messages went through takes, once it is
// left alone, hardly more than one that is new.
func TestEmptiedQueuesGiveMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queues, messages = 500, 300
		x := newTestBroker(t, broker.Options{})
		before := heap()
		for i := range queues {
			name := fmt.Sprint("q", i)
			q := x.queue(name, nil)
			for range messages {
				x.publish("", name, "m", "", nil)
			}
			assert.Equal(t, messages, len(x.drain(q)))
		}
		each := func() float64 { return (float64(heap()) - float64(before)) / queues }
		kept := each()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		left := each()
		assert.Less(t, left, 2000.0, "bytes for an idle queue")
		assert.Greater(t, kept, left+2000, "a queue just emptied is not yet idle")

		for range 10 { // goes on as before
			x.publish("", "q7", "again", "", nil)
			time.Sleep(time.Second)
			assert.Equal(t, []string{"again"}, x.drain(x.queue("q7", nil)))
		}
	})
}
