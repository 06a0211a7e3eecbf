package deliveries

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/memory"
	"curfew/broker/store"
)

// wired gives fn an outbox and the other end of its socket.
func wired(t *testing.T, fn func(o *Outbox, client net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		client, nc := net.Pipe()
		o := new(Outbox)
		o.Init(func() {
			if err := o.Write(nc); err != nil || o.Ended() {
				nc.Close()
				o.Kill()
			}
		})
		fn(o, client)
		o.Close()
		rest, err := io.ReadAll(client)
		assert.NoError(t, err)
		assert.Empty(t, rest, "all was read that was sent, and then it ended")
		<-o.Gone
	})
}

func (o *Outbox) idle() bool {
	o.Lock()
	defer o.Unlock()
	return !o.writing
}

// A connection that has nothing to send has no writer goroutine.
func TestWriterRunsWhileThereIsSomethingToSend(t *testing.T) {
	wired(t, func(o *Outbox, client net.Conn) {
		assert.True(t, o.idle())
		want := amqp.AppendMethod(nil, 1, &amqp.ChannelOpenOk{})
		for range 3 {
			o.Send(1, &amqp.ChannelOpenOk{})
			synctest.Wait()
			assert.False(t, o.idle(), "nobody takes it")
			got := make([]byte, len(want))
			_, err := io.ReadFull(client, got)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			synctest.Wait()
			assert.True(t, o.idle())
		}
	})
}

// What was sent before the end is delivered, whoever sends at that moment.
func TestOutboxEndsAfterWhatIsThere(t *testing.T) {
	wired(t, func(o *Outbox, client net.Conn) {
		want := amqp.AppendMethod(nil, 1, &amqp.ChannelOpenOk{})
		o.Send(1, &amqp.ChannelOpenOk{})
		o.Send(1, &amqp.ChannelOpenOk{})
		synctest.Wait()
		o.Send(1, &amqp.ChannelOpenOk{})
		o.Close()
		got := make([]byte, 3*len(want))
		_, err := io.ReadFull(client, got)
		require.NoError(t, err)
	})
}

// A client receives something in each half of the interval, and no heartbeats beside other
// traffic.
func TestHeartbeatsAreSentInSilence(t *testing.T) {
	const interval = 10 * time.Second
	wired(t, func(o *Outbox, client net.Conn) {
		o.Heartbeats(interval, amqp.AppendHeartbeat(nil))
		beat := make([]byte, len(amqp.AppendHeartbeat(nil)))
		hear := func() {
			last := time.Now()
			_, err := io.ReadFull(client, beat)
			require.NoError(t, err)
			assert.Equal(t, amqp.AppendHeartbeat(nil), beat)
			assert.LessOrEqual(t, time.Since(last), interval/2)
		}
		for range 20 {
			hear()
		}
		reply := make([]byte, len(amqp.AppendMethod(nil, 1, &amqp.ChannelOpenOk{})))
		send := func(after time.Duration) {
			time.Sleep(after)
			o.Send(1, &amqp.ChannelOpenOk{})
			_, err := io.ReadFull(client, reply)
			require.NoError(t, err)
			assert.EqualValues(t, amqp.FrameMethod, reply[0])
		}
		for phase := range 20 { // the connection becomes silent at any moment between two checks
			send(interval / 40 * time.Duration(phase%10))
			hear()
		}
		send(interval / 5)
		for range 20 {
			send(interval / 5)
		}
	})
}

func TestOutboxIsEmptyOnceSent(t *testing.T) {
	var o Outbox
	o.Init(func() {})
	o.reserveLocked(10)
	o.buf = append(o.buf, "first"...)
	o.reserveLocked(Size64K)
	o.buf = append(o.buf, bytes.Repeat([]byte("x"), Size64K)...)
	out, _ := o.swap()
	assert.Equal(t, "first", string(out.buf[:5]))
	assert.Len(t, out.buf, 5+Size64K)
	assert.Nil(t, o.buf, "an idle connection holds no buffer")
	o.reserveLocked(1)
	assert.Equal(t, Size256K, cap(o.buf), "as large as was needed last")
}

// A client that reads slowly, or a large message in small frames: what waits is not copied again for each frame, comes in order, and is
// drawn from the budget once.
func TestManyMegabytesWait(t *testing.T) {
	const frame, frames = 512, 24 << 10
	account := memory.New(64<<20).Open("guest", func(error) {})
	wired(t, func(o *Outbox, client net.Conn) {
		o.OpenAccount(account)
		var sent []byte
		o.Lock()
		for i := range frames {
			f := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, frame/2)
			sent = append(sent, f...)
			o.RawLocked(f)
			assert.LessOrEqual(t, cap(o.buf), size1M)
		}
		assert.Equal(t, len(sent), o.sizeLocked())
		assert.InDelta(t, len(sent), o.drawn, size1M)
		o.FlushLocked()
		o.Unlock()
		got := make([]byte, len(sent))
		_, err := io.ReadFull(client, got)
		require.NoError(t, err)
		synctest.Wait()
		assert.True(t, bytes.Equal(sent, got))
		assert.Zero(t, o.drawn)
		assert.Zero(t, o.Pending())
	})
}

// The frames of a message are the same, whatever buffers they are in.
func TestLargeMessagesInSmallBuffers(t *testing.T) {
	for _, frameMax := range []uint32{0, 4096, 128 << 10, 3 << 20} {
		for _, size := range []int{Size256K - 1, Size256K, Size256K + 1, 5<<20 + 7} {
			wired(t, func(o *Outbox, client net.Conn) {
				o.SetFrameMax(frameMax)
				d := broker.Delivery{Message: store.Message{Exchange: []byte("x"), RoutingKey: []byte("key"), Properties: []byte{0, 0}, Body: bytes.Repeat([]byte("123"), size/3+1)[:size]}}
				want := amqp.AppendContent(amqp.AppendDeliver(nil, 1, "c", 7, false, d.Message.Exchange, d.Message.RoutingKey), 1, d.Message.Properties, d.Message.Body, frameMax)
				o.Lock()
				o.DeliverLocked(1, "c", 7, &d)
				if frameMax > 0 {
					assert.LessOrEqual(t, cap(o.buf), max(size1M, int(frameMax)+Size64K))
				}
				o.FlushLocked()
				o.Unlock()
				got := make([]byte, len(want))
				_, err := io.ReadFull(client, got)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(want, got), "frame-max %d, %d octets", frameMax, size)
			})
		}
	}
}

func TestOutboxDoesNotAllocate(t *testing.T) {
	var o Outbox
	o.Init(func() {})
	message := make([]byte, 1000)
	round := func() {
		for range 100 {
			o.reserveLocked(len(message))
			o.buf = append(o.buf, message...)
		}
		out, _ := o.swap()
		RecycleBuffer(out.buf)
	}
	round()
	assert.Less(t, testing.AllocsPerRun(200, round), 1.0)
}

func TestConfirmsInAsFewFramesAsItTakes(t *testing.T) {
	ack := func(b []byte, tag uint64, multiple bool) []byte { return amqp.AppendAck(b, 7, tag, multiple) }
	nack := func(b []byte, tag uint64) []byte { return amqp.AppendNack(b, 7, tag, false, false) }
	for _, c := range []struct {
		first, last uint64
		refused     []uint64
		want        []byte
	}{
		{1, 1, nil, ack(nil, 1, false)},
		{1, 5, nil, ack(nil, 5, true)},
		{4, 6, []uint64{4, 5, 6}, nack(nack(nack(nil, 4), 5), 6)},
		{1, 6, []uint64{3}, ack(nack(ack(nil, 2, true), 3), 6, true)},
		{1, 3, []uint64{2}, ack(nack(ack(nil, 1, false), 2), 3, false)},
	} {
		var o Outbox
		o.Init(func() {})
		o.ConfirmLocked(7, c.first, c.last, c.refused)
		assert.Equal(t, c.want, o.buf)
	}
}
