package store

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spareMappings bounds how many unused mappings of the common size are kept for
// the next segments: enough that steady traffic maps nothing, few enough that
// an idle broker holds no memory to speak of.
const spareMappings = 4

// smallMappings is how many mappings a store gets in small pages, of which memory takes
// what was written. Who needs more has many messages queued and gets huge ones where the
// system has them: a sixth of the processor time of taking in messages of 1 KiB was spent
// in faults for small ones.
const smallMappings = 4

// mappings hands out anonymous memory outside the Go heap and takes it back.
// Safe for concurrent use.
type mappings struct {
	size int // of the mappings worth keeping; a multiple of the page

	mu    sync.Mutex
	spare [][]byte
	made  int // mappings of size, up to smallMappings
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
	mem, err := mapAnonymous(size)
	if err != nil {
		return nil, fmt.Errorf("store: map %d bytes of memory: %w", size, err)
	}
	if size == m.size && m.many() {
		useHugePages(mem)
	}
	return mem, nil
}

// many says whether this is more than the mappings in small pages.
func (m *mappings) many() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == smallMappings {
		return true
	}
	m.made++
	return false
}

func (m *mappings) take() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.spare)
	if n == 0 {
		return nil
	}
	mem := m.spare[n-1]
	m.spare = m.spare[:n-1]
	return mem
}

// dispose takes back the memory of a segment that nobody reads any more; nil: none.
func (m *mappings) dispose(s *segment) {
	if s == nil || !s.paged && len(s.mem) == m.size && m.keep(s.mem) {
		return
	}
	unmap(s.mem)
}

func (m *mappings) keep(mem []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.spare) >= spareMappings {
		return false
	}
	m.spare = append(m.spare, mem)
	return true
}

func (m *mappings) close() {
	for mem := m.take(); mem != nil; mem = m.take() {
		unmap(mem)
	}
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
