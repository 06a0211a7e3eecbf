package store

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// errNoDisk: Windows replaces no pages of mapped memory, syncs no directory, and renames no open file. The store relies on all three.
var errNoDisk = errors.New("store: on Windows messages are kept in memory only")

func openDir(string) (fileSystem, error) { return nil, errNoDisk }

func existingDir(string) (fileSystem, error) { return nil, errNoDisk }

func useHugePages([]byte) {}

func mapAnonymous(size int) ([]byte, error) {
	at, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size), nil // vet wants no uintptr to become a pointer; this memory is not Go's
}

// unmap returns memory to the system. It fails only for an address that was never mapped.
func unmap(mem []byte) {
	if err := windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), 0, windows.MEM_RELEASE); err != nil {
		panic(fmt.Sprintf("store: unmap %d bytes: %v", len(mem), err))
	}
}
