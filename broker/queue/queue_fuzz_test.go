package queue

import (
	"bytes"
	"slices"
	"testing"

	"curfew/broker/deadline"
)

// The model searches and sorts at each step; these keep an input to a few
// milliseconds.
const (
	maxFuzzOps    = 80
	maxFuzzQueued = 600
)

// FuzzQueue reads operations from bytes and does them to a queue and the model.
// Five bytes of options, a count of messages that outlived a restart and three
// bytes for each of these come first, then operations of three bytes: which,
// and two arguments.
func FuzzQueue(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00P\x02\x00T\x00\x00A\x00\x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		in := bytes.NewBuffer(input)
		k := newMachine(t, readOptions(in))
		for range next(in) % 8 {
			p, hole, ttl := next(in), next(in), next(in)
			k.restore(p, uint64(hole&7)<<(hole>>3%24), int64(ttl)-1)
		}
		for range maxFuzzOps {
			if in.Len() == 0 {
				return
			}
			k.operate(next(in), next(in), next(in))
		}
	})
}

// next is zero at the end of the input.
func next(in *bytes.Buffer) byte {
	b, _ := in.ReadByte()
	return b
}

// readOptions takes five bytes; zero is the plain queue without limits.
func readOptions(in *bytes.Buffer) Options {
	priorities, length, size, limit := next(in), next(in), next(in), next(in)
	retry := limit >> 3
	return Options{
		Priorities:    priorities,
		MaxLength:     int64(length) - 1,
		MaxBytes:      int64(size)*2 - 1,
		DeliveryLimit: int64(limit%8) - 1,
		Overflow:      Overflow(next(in) % 3),
		Retry:         retries[retry%byte(len(retries))],
	}
}

func (k *machine) operate(op, a, b byte) {
	switch op {
	case 'p':
		k.publish(1, a, int64(b)-1, uint32(a))
	case 'P':
		k.publish(min(int(a)*2, maxFuzzQueued-len(k.m.msgs)), b, int64(b)-1, uint32(b))
	case 'T':
		k.take(1 + int(a))
	case 'A':
		k.ack(k.held(int(a)))
	case 'a':
		k.ack(k.some(int(a)<<8 | int(b)))
	case 'R':
		k.reject(k.held(int(a)))
	case 'Q':
		k.requeue(b&1 != 0, k.held(int(a)))
	case 'q':
		k.requeue(false, k.some(int(a)<<8|int(b)))
	case 'N':
		k.now += deadline.Instant(a)
	case 'E', 'K':
		s := k.some(int(a)<<8 | int(b))
		if op == 'E' {
			k.expire(s, k.deadline(s))
		} else {
			k.track(s, k.deadline(s))
		}
	case 'M':
		s := k.some(int(a))
		k.reschedule(s, k.deadline(s), k.now+deadline.Instant(int8(b)))
	case 'm':
		k.reschedule(k.some(int(a)), k.now-deadline.Instant(b), k.now)
	case 'J':
		s := k.held(int(a))
		k.reschedule(s, k.deadline(s), 0)
	case 'e':
		k.expire(k.some(int(a)), k.now-deadline.Instant(b))
	default:
		k.operateAll(op, a, b)
	}
}

func (k *machine) operateAll(op, a, b byte) {
	switch op {
	case 'B': // everything held comes back, newest first
		held := k.allHeld()
		slices.Reverse(held)
		k.requeue(b&1 != 0, held...)
	case 'C': // everything held is acknowledged, but for the first ones
		held := k.allHeld()
		k.ack(held[min(int(a), len(held)):]...)
	case 'b': // everything held comes back, and waits if the options say so
		k.giveBack(b&2 == 0, b&1 != 0, k.allHeld()...)
	case 'w':
		k.now += deadline.Instant(a&7) * 500
		k.wake()
	case 'n':
		s := k.waiting(int(a))
		k.wakeNow(s, k.deadline(s))
	case 'r':
		s := k.waiting(int(a))
		k.remove(s, k.deadline(s))
	case 'O':
		k.setOptions(readOptions(bytes.NewBuffer([]byte{0, a, b, a, b >> 4})))
	case 'W':
		k.walk(k.some(int(a)<<8|int(b)) + 1)
	case 't':
		k.trim()
	case 'U':
		k.purge()
	case 'D':
		k.clear()
	case 'S':
		k.shrink()
	}
}
