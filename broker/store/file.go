package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// version is the version of the segments that are written, and the only one that is read: those
// before it were never released. A later version has records that this Curfew would take for the
// end of the log.
const version = 7

const (
	journalMagic = "CURFEWJ\n"
	lockName     = "lock"

	// Files that are about to get another name, or none.
	spareTemp = "spare.tmp"
	spillTemp = "spill.tmp"
)

// A segment file starts with a header, little-endian:
//
//	 0  magic
//	 8  uint32  version
//	16  uint64  id of the store
//	24  uint64  number of the segment
//	60  uint32  CRC32C of the above
//
// A file without a header is a spare one.
func putFileHeader(b []byte, id, number uint64) {
	clear(b[:fileHeader])
	copy(b, journalMagic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint64(b[16:], id)
	binary.LittleEndian.PutUint64(b[24:], number)
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

var (
	errNoHeader = errors.New("no header")
	// errVersion is wrapped by Open's error about a file of another version.
	errVersion = errors.New("written by another version of Curfew")
)

// getFileHeader reads a header. Before the checksum is verified only the magic and the
// version are read: a later version may put the checksum elsewhere.
func getFileHeader(b []byte) (h segmentHeader, err error) {
	if len(b) < fileHeader || string(b[:8]) != journalMagic {
		return h, errNoHeader
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		if v > 0 && v < 1<<16 {
			return h, fmt.Errorf("format %d, this Curfew reads %d: %w", v, version, errVersion)
		}
		return h, errNoHeader
	}
	if binary.LittleEndian.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli) {
		return h, errNoHeader
	}
	return segmentHeader{binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])}, nil
}

// segmentHeader is the content of a segment file's header.
type segmentHeader struct{ id, number uint64 }

const journalSuffix = ".journal"

func fileName(number uint64) string { return fmt.Sprintf("%010d%s", number, journalSuffix) }

// fileNumber is the inverse of fileName.
func fileNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, journalSuffix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return n, err == nil && n > 0 && fileName(n) == name
}
