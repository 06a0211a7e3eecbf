package store

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spareMappings is how many unused mappings of the common size the keeper leaves for
// the next segments: enough that steady traffic maps nothing, few enough that
// an idle broker holds no memory to speak of.
const spareMappings = 4

// smallMappings is how many mappings a store gets in small pages, of which memory takes
// what was written. Who needs more has many messages queued and gets huge ones where the
// system has them: a sixth of the processor time of taking in messages of 1 KiB was spent
// in faults for small ones.
const smallMappings = 4

// readyMappings is how many of those the keeper has ready, with their memory: the first
// touch of a huge page can take milliseconds, and whoever adds a message may hold
// up all deadlines.
const readyMappings = 2

// mappings hands out anonymous memory outside the Go heap and takes it back.
// Safe for concurrent use.
type mappings struct {
	size int // of the mappings worth keeping; a multiple of the page

	mu       sync.Mutex
	spare    [][]byte   // of size; the keeper unmaps those beyond spareMappings
	made     int        // mappings of size in small pages, up to smallMappings
	large    [][]byte   // of other sizes, unused: for the keeper to unmap, or whoever maps more before he does
	unwanted []*segment // that show pages of files: for the keeper to unmap
}

func pageAlign(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}

// get returns size bytes. Their content is whatever a former owner left.
func (m *mappings) get(size int) ([]byte, error) {
	if size == m.size {
		if mem := m.take(); mem != nil {
			return mem, nil
		}
	}
	if size != m.size {
		m.makeUp(size)
	}
	mem, err := mapAnonymous(size)
	if err != nil {
		return nil, fmt.Errorf("store: map %d bytes of memory: %w", size, err)
	}
	return mem, nil
}

// take returns a spare mapping, or nil.
func (m *mappings) take() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.spare)
	if n == 0 {
		m.made = min(m.made+1, smallMappings)
		return nil
	}
	mem := m.spare[n-1]
	m.spare = m.spare[:n-1]
	return mem
}

// makeUp unmaps large mappings of at least size bytes together, if there are so many:
// the keeper may be waiting for the disk, and memory must not grow meanwhile.
func (m *mappings) makeUp(size int) {
	for size > 0 {
		mem := m.takeLarge()
		if mem == nil {
			return
		}
		unmap(mem)
		size -= len(mem)
	}
}

func (m *mappings) takeLarge() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.large)
	if n == 0 {
		return nil
	}
	mem := m.large[n-1]
	m.large = m.large[:n-1]
	return mem
}

// dispose takes back the memory of a segment that nobody reads any more; nil: none.
// What is not worth keeping waits for the keeper: to unmap takes long, longest for
// pages of a file without a name that is closed, which goes with its last mapping when
// the system has written what it is writing of it.
func (m *mappings) dispose(s *segment) {
	if s == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case s.paged:
		m.unwanted = append(m.unwanted, s)
	case len(s.mem) == m.size:
		m.spare = append(m.spare, s.mem)
	default:
		m.large = append(m.large, s.mem)
	}
}

// tidy unmaps what is not worth keeping, and returns the segments that showed pages of
// files. Only the keeper calls it.
func (m *mappings) tidy() (paged []*segment) {
	m.mu.Lock()
	keep := min(len(m.spare), spareMappings)
	unwanted := slices.Concat(m.large, m.spare[keep:])
	paged = m.unwanted
	m.spare, m.large, m.unwanted = slices.Clip(m.spare[:keep]), nil, nil
	m.mu.Unlock()
	for _, s := range paged {
		unwanted = append(unwanted, s.mem)
	}
	for _, mem := range unwanted {
		unmap(mem)
	}
	return paged
}

// provide has mappings ready for a store with many; it does not go on for as long as
// they are taken, since others wait for the keeper too. Only he calls it.
func (m *mappings) provide() {
	for range readyMappings {
		if !m.short() {
			return
		}
		mem, err := mapAnonymous(m.size)
		if err != nil {
			return // who needs one will say
		}
		useHugePages(mem)
		m.mu.Lock()
		m.spare = append(m.spare, mem)
		m.mu.Unlock()
	}
}

func (m *mappings) short() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made == smallMappings && len(m.spare) < readyMappings
}

// close unmaps everything that nobody uses.
func (m *mappings) close() {
	m.mu.Lock()
	m.large, m.spare = append(m.large, m.spare...), nil
	m.mu.Unlock()
	m.tidy()
}

func mapAnonymous(size int) ([]byte, error) {
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(at), size), nil
}

// unmap gives memory back to the system. It can only fail for an address that
// was never mapped.
func unmap(mem []byte) {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))); err != nil {
		panic(fmt.Sprintf("store: unmap %d bytes: %v", len(mem), err))
	}
}
