package store

import (
	"fmt"
	"slices"
)

// spillPlaces is how many segments of the common size share a file.
const spillPlaces = 16

// spill is the disk that old segments of the volatile log move to: files without a
// name, which are gone with the process, of places of the size of a segment. A place is
// used again when its segment is dead: the system has its blocks and mostly still
// its pages, and to get new ones and give them back took as long as half of the
// writing. Only the keeper uses it, once the store has started.
type spill struct {
	fs    fileSystem
	size  int // of the places worth keeping
	files []*spillFile
}

// spillFile has places of one size; those of a large segment's file are one.
type spillFile struct {
	file
	size int // of a place
	used []bool
}

// spillPlace is where a segment is in a spillFile.
type spillPlace struct {
	file *spillFile
	at   int
}

// put writes b and puts the file's pages in place of mem, which it is the beginning of.
func (d *spill) put(mem, b []byte) (*spillPlace, error) {
	p, err := d.take(len(mem))
	if err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	at := int64(p.at) * int64(p.file.size)
	if _, err = p.file.WriteAt(b, at); err == nil {
		err = p.file.MapOver(mem, at, true)
	}
	if err != nil {
		d.free(p)
		return nil, fmt.Errorf("spill: %w", err)
	}
	return p, nil
}

// take returns the first free place of that size, in a new file if there is none.
func (d *spill) take(size int) (*spillPlace, error) {
	if size == d.size {
		for _, f := range d.files {
			if at := slices.Index(f.used, false); at >= 0 && f.size == size {
				f.used[at] = true
				return &spillPlace{f, at}, nil
			}
		}
		for _, f := range d.files {
			if at := len(f.used); at < spillPlaces && f.size == size {
				if err := f.Allocate(int64(at+1) * int64(size)); err != nil {
					return nil, err
				}
				f.used = append(f.used, true)
				return &spillPlace{f, at}, nil
			}
		}
	}
	f, err := d.create(size)
	if err != nil {
		return nil, err
	}
	d.files = append(d.files, f)
	return &spillPlace{f, 0}, nil
}

// create makes a file whose first place is taken.
func (d *spill) create(size int) (*spillFile, error) {
	f, err := d.fs.Create(spillTemp, int64(size))
	if err != nil {
		return nil, err
	}
	if err := d.fs.Remove(spillTemp); err != nil {
		f.Close()
		return nil, err
	}
	return &spillFile{file: f, size: size, used: []bool{true}}, nil
}

// free takes back a place that no memory shows any more; nil: none.
func (d *spill) free(p *spillPlace) {
	if p != nil {
		p.file.used[p.at] = false
	}
}

// tidy closes the files nothing is in: all but one, while there is something in others.
func (d *spill) tidy() {
	keep := slices.ContainsFunc(d.files, (*spillFile).holds)
	d.files = slices.DeleteFunc(d.files, func(f *spillFile) bool {
		if f.holds() {
			return false
		}
		if keep && f.size == d.size {
			keep = false
			return false
		}
		f.Close()
		return true
	})
}

// holds reports whether a segment is in the file.
func (f *spillFile) holds() bool { return slices.Contains(f.used, true) }

// close closes all files; what shows their pages can be read on.
func (d *spill) close() {
	for _, f := range d.files {
		f.Close()
	}
	d.files = nil
}
