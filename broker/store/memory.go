package store

import (
	"fmt"
	"os"
	"slices"
)

// spareMappings is how many unused mappings of the common size the maintainer leaves for
// the next segments. That is enough for steady traffic to map nothing, and so few that an
// idle broker holds hardly any memory.
const spareMappings = 4

// smallMappings is how many mappings of a store have small pages, which take memory only
// where they were written. A store that needs more mappings has many messages queued, and
// gets huge pages where the system has them: with small pages, faults took a sixth of the
// processor time of taking in messages of 1 KiB.
const smallMappings = 4

// readyMappings is how many huge mappings the maintainer keeps ready, with their memory.
// The first touch of a huge page can take milliseconds, and whoever adds a message may hold
// up all deadlines.
const readyMappings = 2

// mappings hands out anonymous memory outside the Go heap and takes it back. It is safe for
// concurrent use.
type mappings struct {
	size int // of a common mapping; a multiple of the page size

	mu       mutex
	spare    [][]byte // of size; the maintainer unmaps those beyond spareMappings
	made     int      // mappings with small pages so far, up to smallMappings
	large    [][]byte // of other sizes, unused; the maintainer unmaps those beyond spareMappings of the common size: new pages take longer than a copy; whoever maps more before that unmaps them
	unwanted [][]byte // pages of files; the maintainer unmaps them
}

func pageAlign(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}

// get returns size bytes. They contain whatever a former owner left there.
func (m *mappings) get(size int) ([]byte, error) {
	if size == m.size {
		if mem := m.takeSpare(); mem != nil {
			return mem, nil
		}
	}
	if size != m.size {
		if mem := m.takeLarge(size); mem != nil {
			return mem, nil
		}
		m.unmapLarge(size)
	}
	mem, err := mapAnonymous(size)
	if err != nil {
		return nil, fmt.Errorf("store: map %d bytes of memory: %w", size, err)
	}
	return mem, nil
}

// takeSpare returns a spare mapping, or nil.
func (m *mappings) takeSpare() []byte {
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

// unmapLarge unmaps large mappings of at least size bytes in total, if there are that many: the
// maintainer may be waiting for the disk, and memory must not grow until it has finished.
func (m *mappings) unmapLarge(size int) {
	for size > 0 {
		mem := m.takeLarge(0)
		if mem == nil {
			return
		}
		unmap(mem)
		size -= len(mem)
	}
}

// takeLarge takes a large mapping of that size, of any if it is 0, or nil.
func (m *mappings) takeLarge(size int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.large, func(mem []byte) bool { return size == 0 || len(mem) == size })
	if i < 0 {
		return nil
	}
	mem := m.large[i]
	m.large = slices.Delete(m.large, i, i+1)
	return mem
}

// dispose takes back the memory of a segment that is no longer read; s may be nil.
// Memory that is not worth keeping waits for the maintainer, because unmapping takes long.
// It takes longest for pages of a spilled segment: its file goes with its last
// mapping, after the system has finished writing to it.
func (m *mappings) dispose(s *segment) {
	if s == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case s.paged:
		m.unwanted = append(m.unwanted, s.mem)
	case len(s.mem) == m.size:
		m.spare = append(m.spare, s.mem)
	default:
		m.large = append(m.large, s.mem)
	}
}

// unmapUnused unmaps what is not worth keeping. Only the maintainer calls it.
func (m *mappings) unmapUnused() {
	m.mu.Lock()
	keep, keepLarge := min(len(m.spare), spareMappings), len(m.large)
	for size := 0; keepLarge > 0 && size+len(m.large[keepLarge-1]) <= spareMappings*m.size; keepLarge-- {
		size += len(m.large[keepLarge-1])
	}
	unwanted := slices.Concat(m.large[:keepLarge], m.spare[keep:], m.unwanted)
	m.spare, m.large, m.unwanted = slices.Clip(m.spare[:keep]), slices.Clone(m.large[keepLarge:]), nil
	m.mu.Unlock()
	for _, mem := range unwanted {
		unmap(mem)
	}
}

// makeReady prepares mappings for a store with many of them. It stops after a few even if
// they are taken at once, since others wait for the maintainer too. Only the maintainer
// calls it.
func (m *mappings) makeReady() {
	for range readyMappings {
		if !m.short() {
			return
		}
		mem, err := mapAnonymous(m.size)
		if err != nil {
			return // whoever needs one reports the error
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

// close unmaps everything that is unused.
func (m *mappings) close() {
	m.mu.Lock()
	m.unwanted = slices.Concat(m.unwanted, m.large, m.spare)
	m.large, m.spare = nil, nil
	m.mu.Unlock()
	m.unmapUnused()
}
