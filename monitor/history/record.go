package history

import (
	"math/bits"
	"time"
)

// Point is what happened in one interval.
type Point struct {
	// Known is false if nothing was sampled in that interval.
	Known bool
	// Depth and WillExpire are the most messages that waited at once, unacked ones among them, and of those,
	// the most that were forecast to expire.
	Depth, WillExpire int64
	// Published, Delivered, Expired and Late count messages. Late ones are among the expired.
	Published, Delivered, Expired, Late int64
	// Lateness is how long after their deadlines 99 in 100 of the expired messages left, at most. Of a longer
	// interval it is that of its worst second.
	Lateness time.Duration
}

// add adds an interval that follows.
func (p *Point) add(o *Point) {
	if !o.Known {
		return
	}
	p.Known = true
	p.Depth, p.WillExpire = max(p.Depth, o.Depth), max(p.WillExpire, o.WillExpire)
	p.Published, p.Delivered = p.Published+o.Published, p.Delivered+o.Delivered
	p.Expired, p.Late = p.Expired+o.Expired, p.Late+o.Late
	p.Lateness = max(p.Lateness, o.Lateness)
}

// recordBytes is the size of a Point in a ring: six numbers of 12 bits, and the lateness in 8. A record whose
// first byte is nothing stands for no interval.
const (
	recordBytes = 10
	nothing     = 0xff
)

// A number of 12 bits has 5 of exponent and 7 of mantissa: up to 255 exactly, then in steps of less than 1%.
const (
	mantissa   = 7
	mostNumber = 0xfef // the first byte of a record is not that of nothing
	// A lateness of 8 bits has 4 of exponent and 4 of mantissa, in units of 0.1 ms, up to 50 s.
	latenessMantissa = 4
	latenessUnit     = 100 * time.Microsecond
)

// pack returns n, or most if n is greater, as a floating-point number with that many bits of mantissa, rounded.
func pack(n int64, mantissa int, most uint16) uint16 {
	n = max(n, 0)
	exponent := max(bits.Len64(uint64(n))-mantissa-1, 0)
	if exponent > 0 {
		if n += 1 << (exponent - 1); bits.Len64(uint64(n))-mantissa-1 > exponent { // rounded up to the next power of two
			exponent++
		}
	}
	n >>= exponent
	if n < 1<<mantissa {
		return uint16(n)
	}
	if exponent+1 > int(most>>mantissa) {
		return most
	}
	return min(uint16(exponent+1)<<mantissa|uint16(n&(1<<mantissa-1)), most)
}

// unpack is the inverse of pack.
func unpack(code uint16, mantissa int) int64 {
	exponent, rest := code>>mantissa, int64(code&(1<<mantissa-1))
	if exponent == 0 {
		return rest
	}
	return (rest | 1<<mantissa) << (exponent - 1)
}

// encode writes a record.
func (p *Point) encode(to []byte) {
	if !p.Known {
		clearRecords(to[:recordBytes])
		return
	}
	numbers := [6]int64{p.Depth, p.WillExpire, p.Published, p.Delivered, p.Expired, p.Late}
	for i := 0; i < len(numbers); i += 2 {
		a, b := pack(numbers[i], mantissa, mostNumber), pack(numbers[i+1], mantissa, mostNumber)
		at := i / 2 * 3
		to[at], to[at+1], to[at+2] = byte(a>>4), byte(a<<4)|byte(b>>8), byte(b)
	}
	to[9] = byte(pack(int64((p.Lateness+latenessUnit-1)/latenessUnit), latenessMantissa, 0xff))
}

func decode(from []byte) (p Point) {
	if from[0] == nothing {
		return Point{}
	}
	var numbers [6]int64
	for i := 0; i < len(numbers); i += 2 {
		at := i / 2 * 3
		numbers[i] = unpack(uint16(from[at])<<4|uint16(from[at+1])>>4, mantissa)
		numbers[i+1] = unpack(uint16(from[at+1]&0xf)<<8|uint16(from[at+2]), mantissa)
	}
	return Point{
		Known: true, Depth: numbers[0], WillExpire: numbers[1], Published: numbers[2], Delivered: numbers[3], Expired: numbers[4], Late: numbers[5],
		Lateness: time.Duration(unpack(uint16(from[9]), latenessMantissa)) * latenessUnit,
	}
}

func clearRecords(b []byte) {
	for i := range b {
		b[i] = nothing
	}
}
