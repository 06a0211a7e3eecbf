package store

// Pos is the position of a message's bytes: the number of a segment and an offset in it.
// Zero is not a position. Positions of one log grow in the order in which messages were put; a
// position is never given to a second message.
type Pos uint64

// volatileBit marks positions in the volatile log, which does not survive a restart.
const volatileBit Pos = 1 << 63

const offsetBits = 32

func makePos(volatile bool, segment uint64, offset int) Pos {
	p := Pos(segment)<<offsetBits | Pos(offset)
	if volatile {
		p |= volatileBit
	}
	return p
}

// Durable reports whether the message's bytes are in the journal.
func (p Pos) Durable() bool { return p != 0 && p&volatileBit == 0 }

func (p Pos) segment() uint64 { return uint64(p&^volatileBit) >> offsetBits }

func (p Pos) offset() int { return int(uint32(p)) }
