package store

import (
	"fmt"
	"slices"
)

const (
	// spillPlaces is how many segments share a file, and so a descriptor.
	spillPlaces = 64
	// spillSpare is how many free places are kept ready while others are in use.
	spillSpare = 16
)

// spill is the disk that old segments of the volatile log move to: files without a
// name, which are gone with the process, of places of the size of a segment. When the
// keeper has unmapped a dead segment its place is used again: the system has its
// blocks and mostly still its pages, and to get new ones and give them back took as long
// as half of the writing. Only the keeper uses it, once the store has started.
//
// Of the places at most as many are free as are in use, or spillSpare: what is in the
// emptiest file moves to others, which nobody notices either, and the file goes.
type spill struct {
	fs    fileSystem
	size  int // of a place, and of the segments that get one
	files []*spillFile
}

type spillFile struct {
	file
	holds []*segment // by place; nil: it is free
	used  int        // places that are not
}

// spillPlace is where a segment is; the zero place is none.
type spillPlace struct {
	file *spillFile
	at   int
}

// put puts a file's pages in place of the segment's memory.
func (d *spill) put(s *segment) error {
	err := d.place(s)
	if err != nil {
		d.tidy(true) // what was made for it
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
		defer f.Close() // it goes with the mapping
		return show(f, 0, s)
	}
	p, err := d.take()
	if err != nil {
		return err
	}
	return d.move(s, p)
}

// show writes the segment at an offset and puts the file's pages in place of its memory.
func show(f file, offset int64, s *segment) error {
	if _, err := f.WriteAt(s.mem[:s.used], offset); err != nil {
		return err
	}
	return f.MapOver(s.mem, offset, true)
}

// move has the segment at a free place from now on; after an error it is where it was.
func (d *spill) move(s *segment, to spillPlace) error {
	if err := show(to.file.file, int64(to.at)*int64(d.size), s); err != nil {
		return err
	}
	s.place.free()
	s.place = to
	to.file.holds[to.at] = s
	to.file.used++
	return nil
}

// free takes the place back, if it is one.
func (p spillPlace) free() {
	if p.file != nil {
		p.file.holds[p.at] = nil
		p.file.used--
	}
}

// take returns a free place, and makes one if need be.
func (d *spill) take() (spillPlace, error) {
	if p, ok := d.vacant(nil); ok {
		return p, nil
	}
	for _, f := range d.files {
		if n := len(f.holds); n < spillPlaces {
			err := f.Allocate(int64(n+1) * int64(d.size))
			if err == nil {
				f.holds = append(f.holds, nil)
			}
			return spillPlace{f, n}, err
		}
	}
	created, err := d.create(d.size)
	if err != nil {
		return spillPlace{}, err
	}
	f := &spillFile{file: created, holds: make([]*segment, 1, spillPlaces)}
	d.files = append(d.files, f)
	return spillPlace{f, 0}, nil
}

// vacant returns the first free place that is not in a certain file.
func (d *spill) vacant(but *spillFile) (spillPlace, bool) {
	for _, f := range d.files {
		if f != but && f.used < len(f.holds) {
			return spillPlace{f, slices.Index(f.holds, nil)}, true
		}
	}
	return spillPlace{}, false
}

// create makes a file and takes its name away.
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

// tidy gives back to the disk what is not worth keeping. pressed: nothing is, and
// space is worth the work of moving.
func (d *spill) tidy(pressed bool) {
	for len(d.files) > 0 {
		used, free := 0, 0
		emptiest := d.files[0]
		for _, f := range d.files {
			used, free = used+f.used, free+len(f.holds)-f.used
			if f.used < emptiest.used {
				emptiest = f
			}
		}
		keep := max(used, spillSpare)
		if pressed || used == 0 {
			keep = 0
		}
		elsewhere := free - (len(emptiest.holds) - emptiest.used)
		if free <= keep || elsewhere < emptiest.used || !d.leave(emptiest) {
			return
		}
	}
}

// leave moves what is in the file to free places of others, and closes it.
func (d *spill) leave(f *spillFile) bool {
	for _, s := range f.holds {
		if s == nil {
			continue
		}
		if to, ok := d.vacant(f); !ok || d.move(s, to) != nil {
			return false
		}
	}
	d.files = slices.DeleteFunc(d.files, func(other *spillFile) bool { return other == f })
	f.Close()
	return true
}

// close closes all files; what shows their pages can be read on.
func (d *spill) close() {
	for _, f := range d.files {
		f.Close()
	}
	d.files = nil
}
