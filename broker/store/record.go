package store

import (
	"encoding/binary"
	"hash/crc32"

	"curfew/broker/deadline"
)

// Every record starts with a header of eight bytes, little-endian:
//
//	0  uint32  CRC32C of what follows it, starting from a value made of the
//	           store's id and the record's position
//	4  uint32  kind in the top four bits, length of the payload below
//
// Each record is padded to a multiple of eight. Its position is its log sequence number:
// since the checksum covers the position, a record is valid in one place only. The payload
// of a kind is described at its constant.
type kind uint8

const (
	// kindMessage: see message.go.
	kindMessage kind = 1 + iota
	// kindMark starts what one write appended to a segment: uint64 position up to which
	// everything was synced when it was written, uint32 bytes of this write that follow the
	// mark, uint32 zero.
	kindMark
	// kindEnqueue: entries.
	kindEnqueue
	// kindHold: entries of queues that do not survive a restart but hold messages of the
	// journal. Only compaction reads them.
	kindHold
	// kindSettle: uint64 position as of which it holds, runs.
	kindSettle
	// kindMove: uint64 position as of which it holds, one run, entries.
	kindMove
	// kindSegments starts a segment. It lists the older segments that exist, as pairs of
	// uint32 first number and count.
	kindSegments
	// kindDropped: uint32 numbers of segments that are no longer needed.
	kindDropped
	// kindEnd ends a segment. It has no payload.
	kindEnd
	// kindAmend: uint64 position as of which it holds, amendments.
	kindAmend
	// kindTransact: uint64 position as of which it holds, uint64 number of runs, runs,
	// entries.
	kindTransact

	lastKind = kindTransact
)

const (
	recordHeader = 8
	kindShift    = 28
	maxRecord    = 1<<kindShift - 1

	markBytes = recordHeader + 16
	endBytes  = recordHeader
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func align(n int) int { return (n + 7) &^ 7 }

// putHeader writes a record's header except for the checksum, and clears the padding.
func putHeader(b []byte, k kind, payload int) {
	end := align(recordHeader + payload)
	clear(b[end-8 : end])
	binary.LittleEndian.PutUint64(b, uint64(k)<<(kindShift+32)|uint64(payload)<<32)
}

// header reads a record's kind and length without padding.
func header(b []byte) (kind, int) {
	w := binary.LittleEndian.Uint32(b[4:])
	return kind(w >> kindShift), recordHeader + int(w&maxRecord)
}

// checksum returns the checksum of the whole record rec at p in the store id.
func checksum(id uint64, p Pos, rec []byte) uint32 {
	seed := uint32((id ^ uint64(p)) * 0x9e3779b97f4a7c15 >> 32)
	return crc32.Update(seed, castagnoli, rec[4:])
}

// validAt returns the record at an offset of mem, if its checksum is valid.
func validAt(id, segment uint64, mem []byte, at int) (k kind, rec []byte, ok bool) {
	if at+recordHeader > len(mem) {
		return 0, nil, false
	}
	k, n := header(mem[at:])
	if k < kindMessage || k > lastKind || at+n > len(mem) {
		return 0, nil, false
	}
	rec = mem[at : at+n]
	sum := binary.LittleEndian.Uint32(rec)
	return k, rec, sum == checksum(id, makePos(false, segment, at), rec)
}

// entryBytes is the length of an entry: uint64 queue, seq, position; flags in the top byte
// of the last, expiry in Unix µs in the other bytes.
const (
	entryBytes  = 32
	expiryBits  = 56
	maxExpiryAt = 1<<expiryBits - 1
)

func putEntry(b []byte, e *Enqueue) {
	binary.LittleEndian.PutUint64(b[0:], e.Queue)
	binary.LittleEndian.PutUint64(b[8:], e.Seq)
	binary.LittleEndian.PutUint64(b[16:], uint64(e.Pos))
	binary.LittleEndian.PutUint64(b[24:], uint64(e.Flags)<<expiryBits|uint64(min(e.ExpiresAt, maxExpiryAt)))
}

// size returns the length of an entry in a record. An entry with an enqueue time is
// followed by as many bytes again: a queue of zero, which no queue has, and a uint64
// instant in Unix µs.
func (e *Enqueue) size() int {
	if e.EnqueuedAt != 0 {
		return 2 * entryBytes
	}
	return entryBytes
}

func putSince(b []byte, at deadline.Instant) {
	clear(b[:entryBytes])
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
}

// getSince returns 0 if b does not begin with an enqueue time.
func getSince(b []byte) (at deadline.Instant) {
	if len(b) < entryBytes || binary.LittleEndian.Uint64(b) != 0 {
		return 0
	}
	return deadline.Instant(binary.LittleEndian.Uint64(b[8:]))
}

func getEntry(b []byte) Enqueue {
	last := binary.LittleEndian.Uint64(b[24:])
	return Enqueue{
		Queue:     binary.LittleEndian.Uint64(b[0:]),
		Seq:       binary.LittleEndian.Uint64(b[8:]),
		Pos:       Pos(binary.LittleEndian.Uint64(b[16:])),
		ExpiresAt: deadline.Instant(last & maxExpiryAt),
		Flags:     uint8(last >> expiryBits),
		Durable:   true,
	}
}

// amendBytes is the length of an amendment: uint64 queue, seq, uint32 segment of the
// message, uint16 deliveries, uint8 flags, zero, uint64 expiry as in an entry. An amendment of
// a message that waits is followed by as many bytes again: a queue of zero, and until when, as with
// the enqueue time of an entry.
const amendBytes = entryBytes

// amendment holds the new terms of an entry.
type amendment struct {
	queue, seq uint64
	segment    uint32
	Terms
}

func (a *amendment) size() int {
	if a.WaitsUntil != 0 {
		return 2 * amendBytes
	}
	return amendBytes
}

func putAmend(b []byte, a *amendment) {
	if a.WaitsUntil != 0 {
		putSince(b[amendBytes:], a.WaitsUntil)
	}
	binary.LittleEndian.PutUint64(b[0:], a.queue)
	binary.LittleEndian.PutUint64(b[8:], a.seq)
	binary.LittleEndian.PutUint32(b[16:], a.segment)
	binary.LittleEndian.PutUint32(b[20:], uint32(a.Deliveries)|uint32(a.Flags)<<16)
	binary.LittleEndian.PutUint64(b[24:], uint64(a.ExpiresAt))
}

func getAmend(b []byte) amendment {
	counts := binary.LittleEndian.Uint32(b[20:])
	return amendment{
		queue:   binary.LittleEndian.Uint64(b[0:]),
		seq:     binary.LittleEndian.Uint64(b[8:]),
		segment: binary.LittleEndian.Uint32(b[16:]),
		Terms: Terms{
			deadline.Instant(binary.LittleEndian.Uint64(b[24:])), uint16(counts), uint8(counts >> 16), getSince(b[amendBytes:]),
		},
	}
}

// run is a settlement of count entries with consecutive sequence numbers, whose messages
// are in one segment: uint64 queue, first seq, uint32 count, segment.
type run struct {
	queue, first uint64
	count        uint32
	segment      uint32
}

const runBytes = 24

func putRun(b []byte, r *run) {
	binary.LittleEndian.PutUint64(b[0:], r.queue)
	binary.LittleEndian.PutUint64(b[8:], r.first)
	binary.LittleEndian.PutUint32(b[16:], r.count)
	binary.LittleEndian.PutUint32(b[20:], r.segment)
}

// runOf returns the run of a single settlement.
func runOf(s *Settle) run {
	return run{queue: s.Queue, first: s.Seq, count: 1, segment: uint32(s.Pos.segment())}
}

// extends reports whether s continues r, so that one run covers both.
func (r *run) extends(s *Settle) bool {
	next := runOf(s)
	return next.queue == r.queue && next.segment == r.segment && next.first == r.first+uint64(r.count) && r.count < 1<<32-1
}

// facts are the parts of a record that say where messages are; they alias the record.
type facts struct {
	kind    kind
	asOf    Pos // of the runs and amendments
	runs    []byte
	entries []byte
	amends  []byte
}

// factsOf splits the payload of a record that says where messages are; states: the record is of such
// a kind. A record with a valid checksum has the right lengths.
func factsOf(k kind, payload []byte) (f facts, states bool) {
	f.kind = k
	switch k {
	case kindSettle, kindMove, kindAmend, kindTransact:
		f.asOf, payload = Pos(binary.LittleEndian.Uint64(payload)), payload[8:]
	}
	switch k {
	case kindEnqueue, kindHold:
		f.entries = payload
	case kindSettle:
		f.runs = payload
	case kindMove:
		f.runs, f.entries = payload[:runBytes], payload[runBytes:]
	case kindAmend:
		f.amends = payload
	case kindTransact:
		n := binary.LittleEndian.Uint64(payload) * runBytes
		f.runs, f.entries = payload[8:8+n], payload[8+n:]
	default:
		return f, false
	}
	return f, true
}

func (f *facts) eachRun(fn func(run)) {
	for b := f.runs; len(b) >= runBytes; b = b[runBytes:] {
		fn(run{
			queue: binary.LittleEndian.Uint64(b[0:]),
			first: binary.LittleEndian.Uint64(b[8:]),
			count: binary.LittleEndian.Uint32(b[16:]), segment: binary.LittleEndian.Uint32(b[20:]),
		})
	}
}

func (f *facts) eachEntry(fn func(Enqueue)) {
	for b := f.entries; len(b) >= entryBytes; {
		e := getEntry(b)
		e.EnqueuedAt = getSince(b[entryBytes:])
		b = b[e.size():]
		e.Durable = f.kind != kindHold
		fn(e)
	}
}

func (f *facts) eachAmend(fn func(amendment)) {
	for b := f.amends; len(b) >= amendBytes; {
		a := getAmend(b)
		b = b[a.size():]
		fn(a)
	}
}
