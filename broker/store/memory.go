package store

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spareMappings bounds how many unused mappings of the common size are kept for
// the next segments: enough that steady traffic maps nothing, few enough that
// an idle broker holds no memory to speak of.
const spareMappings = 4

// mappings hands out anonymous memory outside the Go heap and takes it back.
// Safe for concurrent use.
type mappings struct {
	size int // of the mappings worth keeping

	mu    sync.Mutex
	spare [][]byte
}

// get returns at least size bytes. Their content is whatever a former owner left.
func (m *mappings) get(size int) ([]byte, error) {
	if size == m.size {
		if mem := m.take(); mem != nil {
			return mem, nil
		}
	}
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("store: map %d bytes of memory: %w", size, err)
	}
	return mem, nil
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

// put takes back anonymous memory that nobody reads any more.
func (m *mappings) put(mem []byte) {
	if len(mem) == m.size && m.keep(mem) {
		return
	}
	unmap(mem)
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

// unmap gives memory back to the system. It can only fail for an address that
// was never mapped.
func unmap(mem []byte) {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))); err != nil {
		panic(fmt.Sprintf("store: unmap %d bytes: %v", len(mem), err))
	}
}
