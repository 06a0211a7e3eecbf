package house

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmeBytes is how long README.md may be: a first-time reader reads all of it.
const readmeBytes = 10_000

func TestReadmeIsShort(t *testing.T) {
	if n := len(document(t, "README.md")); n > readmeBytes {
		t.Errorf("README.md has %d bytes, not at most %d: what not every reader needs goes to a page in docs", n, readmeBytes)
	}
}

// glossaryWords is how many words the last table of docs/concepts.md may explain: more than these nobody keeps in mind.
const glossaryWords = 40

func TestGlossaryIsShort(t *testing.T) {
	words := 0
	_, table, _ := strings.Cut(document(t, "docs/concepts.md"), "## More words")
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| Word |") {
			words++
		}
	}
	if words > glossaryWords || words < glossaryWords/2 {
		t.Errorf("docs/concepts.md has %d more words, not at most %d: a word that one package uses belongs in its doc.go", words, glossaryWords)
	}
}

// TestGuarantees: each guarantee in docs/guarantees.md names tests that prove it, and they exist.
func TestGuarantees(t *testing.T) {
	const page = "docs/guarantees.md"
	exists := map[string]bool{}
	for _, f := range allGoFiles(t) {
		for _, name := range testsOf(f) {
			exists[f.folder+"."+name] = true
		}
	}
	named := regexp.MustCompile("`([\\w/-]+\\.Test\\w+)`")
	text := document(t, page)
	for _, match := range named.FindAllStringSubmatch(text, -1) {
		if !exists[match[1]] {
			t.Errorf("%s names %s, which does not exist", page, match[1])
		}
	}
	guarantees := 0
	for section := range strings.SplitSeq(text, "\n### ") {
		title, body, _ := strings.Cut(section, "\n")
		if !regexp.MustCompile(`^\d+\. `).MatchString(title) {
			continue
		}
		guarantees++
		if _, proof, has := strings.Cut(body, "\nProved by:"); !has || !named.MatchString(proof) {
			t.Errorf("%s: %q names no test that proves it", page, title)
		}
	}
	if guarantees < 10 {
		t.Errorf("%s has %d guarantees: the headings are not what this test looks for", page, guarantees)
	}
}

// pictureBytes bounds a picture: they are written by hand, and read as text in reviews.
const pictureBytes = 10_000

// TestPictures: each picture of the documentation is well-formed, small, says in its title what it shows, and stands on a page.
func TestPictures(t *testing.T) {
	var pages strings.Builder
	for _, path := range allPaths(t) {
		if strings.HasSuffix(path, ".md") {
			pages.WriteString(document(t, path))
		}
	}
	pictures, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.svg"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("docs/pictures has no pictures: %v", err)
	}
	for _, path := range pictures {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > pictureBytes {
			t.Errorf("%s has %d bytes, not at most %d", name, len(text), pictureBytes)
		}
		if title, err := titleOf(string(text)); err != nil || title == "" {
			t.Errorf("%s has no title that says what it shows: %v", name, err)
		}
		if !strings.Contains(pages.String(), "pictures/"+name+")") {
			t.Errorf("%s is on no page", name)
		}
	}
}

// titleOf reads a whole SVG and returns its title.
func titleOf(svg string) (title string, err error) {
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return title, nil
		}
		if err != nil {
			return "", err
		}
		if start, is := token.(xml.StartElement); is && start.Name.Local == "title" {
			if err := d.DecodeElement(&title, &start); err != nil {
				return "", err
			}
		}
	}
}
