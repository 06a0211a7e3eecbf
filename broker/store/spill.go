package store

import (
	"fmt"
	"slices"
)

const (
	// spillPlaces is how many segments share a file, and so a file descriptor.
	spillPlaces = 64
	// spillSpare is how many free places are kept while other places are in use.
	spillSpare = 16
)

// spill manages the disk space that old segments of the volatile log move to: files without
// a name, which disappear with the process, divided into places of the size of a segment.
// When the maintainer has unmapped a dead segment its place is reused: the system still has
// its blocks, and mostly its pages. Allocating new ones and freeing them took half as long
// as the writing. After the start of the store only the maintainer uses it.
//
// At most as many places are free as are in use, or spillSpare. Beyond that, the segments
// in the emptiest file move to other files, which readers do not notice either, and the
// file is closed.
type spill struct {
	fs    fileSystem
	size  int // of a place, and of the segments that get a place
	files []*spillFile
}

type spillFile struct {
	file
	segments []*segment // by place; nil: the place is free
	used     int        // places in use
}

// spillPlace is the location of a segment. The zero value is no place.
type spillPlace struct {
	file *spillFile
	at   int
}

// put replaces the segment's memory by a file's pages.
func (d *spill) put(s *segment) error {
	err := d.place(s)
	if err != nil {
		d.shrink(true) // what was created for it
		return fmt.Errorf("spill: %w", err)
	}
	return nil
}

func (d *spill) place(s *segment) error {
	if len(s.mem) != d.size {
		f, err := d.create(len(s.mem))
		if err != nil {
			return err
		}
		defer f.Close() // the file disappears with the mapping
		return writeAndMap(f, 0, s)
	}
	p, err := d.takePlace()
	if err != nil {
		return err
	}
	return d.move(s, p)
}

// writeAndMap writes the segment at an offset and replaces its memory by the file's pages.
func writeAndMap(f file, offset int64, s *segment) error {
	if _, err := f.WriteAt(s.mem[:s.used], offset); err != nil {
		return err
	}
	return f.MapOver(s.mem, offset, true)
}

// move moves the segment to a free place. After an error the segment is where it was.
func (d *spill) move(s *segment, to spillPlace) error {
	if err := writeAndMap(to.file.file, int64(to.at)*int64(d.size), s); err != nil {
		return err
	}
	s.place.free()
	s.place = to
	to.file.segments[to.at] = s
	to.file.used++
	return nil
}

// free frees the place, if it is one.
func (p spillPlace) free() {
	if p.file != nil {
		p.file.segments[p.at] = nil
		p.file.used--
	}
}

// takePlace returns a free place. If necessary it creates one.
func (d *spill) takePlace() (spillPlace, error) {
	if p, ok := d.freePlace(nil); ok {
		return p, nil
	}
	for _, f := range d.files {
		if n := len(f.segments); n < spillPlaces {
			err := f.Allocate(int64(n+1) * int64(d.size))
			if err == nil {
				f.segments = append(f.segments, nil)
			}
			return spillPlace{f, n}, err
		}
	}
	created, err := d.create(d.size)
	if err != nil {
		return spillPlace{}, err
	}
	f := &spillFile{file: created, segments: make([]*segment, 1, spillPlaces)}
	d.files = append(d.files, f)
	return spillPlace{f, 0}, nil
}

// freePlace returns the first free place in a file other than except.
func (d *spill) freePlace(except *spillFile) (spillPlace, bool) {
	for _, f := range d.files {
		if f != except && f.used < len(f.segments) {
			return spillPlace{f, slices.Index(f.segments, nil)}, true
		}
	}
	return spillPlace{}, false
}

// create makes a file and removes its name.
func (d *spill) create(size int) (file, error) {
	f, err := d.fs.Create(spillTemp, int64(size))
	if err != nil {
		return nil, err
	}
	if err := d.fs.Remove(spillTemp); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// shrink returns places to the disk that are not worth keeping. lowSpace: none is, and space
// is worth the work of moving segments.
func (d *spill) shrink(lowSpace bool) {
	for len(d.files) > 0 {
		used, free := 0, 0
		emptiest := d.files[0]
		for _, f := range d.files {
			used, free = used+f.used, free+len(f.segments)-f.used
			if f.used < emptiest.used {
				emptiest = f
			}
		}
		keep := max(used, spillSpare)
		if lowSpace || used == 0 {
			keep = 0
		}
		elsewhere := free - (len(emptiest.segments) - emptiest.used)
		if free <= keep || elsewhere < emptiest.used || !d.vacate(emptiest) {
			return
		}
	}
}

// vacate moves the segments of the file to free places of other files, and closes it.
func (d *spill) vacate(f *spillFile) bool {
	for _, s := range f.segments {
		if s == nil {
			continue
		}
		if to, ok := d.freePlace(f); !ok || d.move(s, to) != nil {
			return false
		}
	}
	d.files = slices.DeleteFunc(d.files, func(other *spillFile) bool { return other == f })
	f.Close()
	return true
}

// close closes all files. Segments that map their pages stay readable.
func (d *spill) close() {
	for _, f := range d.files {
		f.Close()
	}
	d.files = nil
}
