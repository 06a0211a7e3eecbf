package faults

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	storedCount = 1600
	storedBytes = 8 << 10 // so that they take several files
)

// stored is the data folder of a process that has ended, and what was in it.
type stored struct {
	dir   string
	sums  map[string]string // by message id
	files []string          // of the journal, those with messages, oldest first
}

// store makes one.
func store(t *testing.T) *stored {
	t.Helper()
	s := &stored{dir: t.TempDir(), sums: map[string]string{}}
	p := launch(t, s.dir)
	p.ready()
	conn, err := amqp091.Dial(p.url())
	check(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	check(t, err)
	_, err = ch.QueueDeclare(work, true, false, false, false, nil)
	check(t, err)
	check(t, ch.Confirm(false))
	var last *amqp091.DeferredConfirmation
	for i := range storedCount {
		id, body := fmt.Sprint("m", i), noise[i*100:][:storedBytes]
		s.sums[id] = sum(id, "", "", nil, body)
		last, err = ch.PublishWithDeferredConfirm("", work, true, false, amqp091.Publishing{MessageId: id, DeliveryMode: amqp091.Persistent, Body: body})
		check(t, err)
	}
	if !last.Wait() {
		t.Fatal("not all was confirmed")
	}
	pause(1000) // the journal notes the position up to which all is synced a moment after the last write
	if code := p.stop(); code != 0 {
		t.Fatalf("curfew ended with code %d", code)
	}
	s.files = journals(t, s.dir)
	return s
}

// journals lists the files of the journal that hold something.
func journals(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".journal") && written(t, filepath.Join(dir, e.Name())) > 0 {
			names = append(names, e.Name())
		}
	}
	if len(names) < 3 {
		t.Fatalf("the journal has only the files %v", names)
	}
	return names
}

// written is how much of a file is not the zeros it was made of.
func written(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return len(strings.TrimRight(string(b), "\x00"))
}

// copied is a copy of the folder, to be damaged.
func (s *stored) copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(s.dir)))
	return dir
}

// change changes bytes of a file in place.
func change(t *testing.T, path string, at int64, fn func([]byte), n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	defer f.Close()
	b := make([]byte, n)
	_, err = f.ReadAt(b, at)
	check(t, err)
	fn(b)
	_, err = f.WriteAt(b, at)
	check(t, err)
}

// opened is the one damage that shows only when the journal has been read and its
// end marked. broker.TestMessagesWithoutDefinitionsAreNotDropped looks at what is
// left.
const opened = "definitions missing"

// TestDamagedFilesAreRefused: what is missing, of another version or damaged keeps
// Curfew from starting, with a text that names the file, and nothing is changed.
func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	s := store(t)
	first, second, last := s.files[0], s.files[1], s.files[len(s.files)-1]
	remove := func(names ...string) func(string) {
		return func(dir string) {
			for _, name := range names {
				check(t, os.Remove(filepath.Join(dir, name)))
			}
		}
	}
	version := func(name string) func(string) {
		return func(dir string) {
			change(t, filepath.Join(dir, name), 8, func(b []byte) { binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)+1) }, 4)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(dir string)
		texts  []string
	}{
		{"first file missing", remove(first), []string{first, "missing"}},
		{"file in the middle missing", remove(second), []string{second, "missing"}},
		{"last file missing", remove(last), []string{last, "missing"}},
		{"all files missing", remove(s.files...), []string{"journal"}},
		{opened, remove("definitions"), []string{"definitions"}},
		{"file cut short", func(dir string) { check(t, os.Truncate(filepath.Join(dir, first), 1<<20)) }, []string{first, "offset"}},
		{"file of a later version", version(second), []string{second, "version"}},
		{"definitions of a later version", version("definitions"), []string{"definitions", "version"}},
		{"definitions damaged", func(dir string) { flip(t, filepath.Join(dir, "definitions"), 40) }, []string{"definitions", "offset"}},
		{"file of another name", func(dir string) {
			check(t, os.Rename(filepath.Join(dir, first), filepath.Join(dir, "x")))
			check(t, os.Rename(filepath.Join(dir, second), filepath.Join(dir, first)))
			check(t, os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, second)))
		}, []string{first, "another name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := s.copied(t)
			c.damage(dir)
			before := listing(t, dir)
			p := launch(t, dir)
			if p.startsOrEnds() {
				t.Fatalf("curfew has started:\n%s", p.out.String())
			}
			if p.wait() == 0 {
				t.Error("it ended with code 0")
			}
			for _, text := range c.texts {
				if !strings.Contains(p.out.String(), text) {
					t.Errorf("the output does not name %q:\n%s", text, p.out.String())
				}
			}
			if after := listing(t, dir); c.name != opened && !slices.Equal(before, after) {
				t.Errorf("the folder was\n%v\nand is\n%v", before, after)
			}
		})
	}
}

// listing is names, sizes and times of a folder's files.
func listing(t *testing.T, dir string) (lines []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		info, err := e.Info()
		check(t, err)
		if e.Name() != "lock" {
			lines = append(lines, fmt.Sprint(e.Name(), " ", info.Size(), " ", info.ModTime()))
		}
	}
	return lines
}

// startsOrEnds says which.
func (p *process) startsOrEnds() (started bool) {
	p.t.Helper()
	eventually(p.t, startLimit, "curfew to start, or to end", func() bool {
		select {
		case <-p.exited:
			return true
		default:
		}
		started = strings.Contains(p.out.String(), "Server startup complete")
		return started
	})
	return started
}

func flip(t *testing.T, path string, bit int64) {
	t.Helper()
	change(t, path, bit/8, func(b []byte) { b[0] ^= 1 << (bit % 8) }, 1)
}

const flips = 24

// TestFlippedBits flips one bit of what was synced, at random places. Either Curfew
// refuses to start and says where, or the bit did not matter and every message is what
// it was.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	s := store(t)
	seed := environment(t, "FAULTS_SEED", rand.Uint64())
	t.Logf("FAULTS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	refused := 0
	for range flips {
		name := s.files[random.IntN(len(s.files))]
		dir := s.copied(t)
		path := filepath.Join(dir, name)
		bit := random.Int64N(8 * int64(written(t, path)))
		flip(t, path, bit)
		p := launch(t, dir)
		if p.startsOrEnds() {
			s.intact(t, p, fmt.Sprintf("bit %d of %s", bit, name))
			continue
		}
		refused++
		if code, out := p.wait(), p.out.String(); code == 0 || !strings.Contains(out, name) || !strings.Contains(out, "offset") {
			t.Errorf("bit %d of %s: code %d, %s", bit, name, code, out)
		}
		check(t, os.RemoveAll(dir))
	}
	t.Logf("%d of %d refused", refused, flips)
	if refused == 0 {
		t.Error("nothing was ever noticed")
	}
}

// intact gets every message.
func (s *stored) intact(t *testing.T, p *process, what string) {
	t.Helper()
	conn, err := amqp091.Dial(p.url())
	check(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	check(t, err)
	n := 0
	for ; ; n++ {
		d, ok, err := ch.Get(work, true)
		check(t, err)
		if !ok {
			break
		}
		if got := sum(d.MessageId, d.ContentType, d.Type, d.Headers, d.Body); got != s.sums[d.MessageId] {
			t.Errorf("%s: message %s is not what it was", what, d.MessageId)
		}
	}
	if n != len(s.sums) {
		t.Errorf("%s: %d messages, not %d:\n%s", what, n, len(s.sums), p.out.String())
	}
	p.kill()
}
