package pages

import (
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

var read = sync.OnceValues(func() ([]*Page, error) { return All(root) })

func all(t testing.TB) []*Page {
	t.Helper()
	pages, err := read()
	require.NoError(t, err)
	return pages
}

// TestLinks: every link leads somewhere. Those to other sites are only well formed, since tests do not reach them.
func TestLinks(t *testing.T) {
	byPath := map[string]*Page{}
	for _, page := range all(t) {
		byPath[page.Path] = page
	}
	links, pictures := 0, 0
	for _, page := range all(t) {
		for _, link := range page.Links {
			links++
			if link.Picture {
				pictures++
				assert.NotEmpty(t, strings.TrimSpace(link.Alt), "%s:%d: the picture %s has no text for those who do not see it", page.Path, link.Line, link.Target)
			}
			if problem := broken(byPath, page, link.Target); problem != "" {
				t.Errorf("%s:%d: %s: %s", page.Path, link.Line, link.Target, problem)
			}
		}
	}
	t.Logf("%d links, %d of them pictures, on %d pages", links, pictures, len(byPath))
	require.Greater(t, links, 100)
}

// broken is what is wrong with a link; "" if nothing is.
func broken(pages map[string]*Page, from *Page, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	switch {
	case u.Scheme == "mailto":
		return ""
	case u.Scheme != "":
		if u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return "this is not an address on the web"
		}
		return ""
	case strings.HasPrefix(u.Path, "/"):
		return "it leads out of the repository: make it relative"
	}
	to := from.Path
	if u.Path != "" {
		to = path.Join(path.Dir(from.Path), u.Path)
	}
	if to == ".." || strings.HasPrefix(to, "../") {
		return "it leads out of the repository"
	}
	info, err := os.Stat(filepath.Join(root, to))
	if err != nil {
		return "there is no such file"
	}
	if info.IsDir() {
		to = path.Join(to, "README.md")
	}
	if page := pages[to]; u.Fragment != "" && (page == nil || !page.Anchors[u.Fragment]) {
		return "that page has no such heading"
	}
	return ""
}

// TestEveryPageCanBeReached: whoever starts at README.md finds each page by links. A link to a folder without a README.md shows its pages.
func TestEveryPageCanBeReached(t *testing.T) {
	byPath := map[string]*Page{}
	for _, page := range all(t) {
		byPath[page.Path] = page
	}
	reached := map[string]bool{}
	next := []string{"README.md", ".github/SECURITY.md"} // GitHub links to the latter itself
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if reached[name] || byPath[name] == nil {
			continue
		}
		reached[name] = true
		for _, link := range byPath[name].Links {
			u, err := url.Parse(link.Target)
			if err != nil || u.Scheme != "" || u.Path == "" {
				continue
			}
			to := path.Join(path.Dir(name), u.Path)
			next = append(next, to, path.Join(to, "README.md"))
			if byPath[path.Join(to, "README.md")] == nil {
				for other := range byPath {
					if path.Dir(other) == to {
						next = append(next, other)
					}
				}
			}
		}
	}
	for name := range byPath {
		assert.True(t, reached[name], "no link leads from README.md to %s", name)
	}
}

// TestPictures: a drawing is well formed and has a title, which a screen reader says.
func TestPictures(t *testing.T) {
	pictures, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.svg"))
	require.NoError(t, err)
	for _, name := range pictures {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		names, err := elements(string(text))
		assert.NoError(t, err, name)
		assert.Contains(t, names, "title", name)
	}
}

// elements lists the names of the elements of an XML document.
func elements(text string) (names []string, err error) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		if start, is := token.(xml.StartElement); is && !slices.Contains(names, start.Name.Local) {
			names = append(names, start.Name.Local)
		}
	}
}

func TestParse(t *testing.T) {
	page := Parse("docs/x.md", []byte("# A `b` & c!\n\n## Same\n\n## Same\n\n<a name=\"here\"></a> See [x](y.md#z),\n<img src=\"p.svg\" alt=\"P\"> and `curfew status`.\n\n"+
		"Save this as `a.py`:\n\n```python\nprint(1)\n```\n\n- In a list, in `b.yaml`:\n\n  <!-- not run: because -->\n  ```yaml\n  a: 1\n  ```\n\n<!-- sh\ncurfew declare queue q\n\ntrue\n-->\n"))
	assert.Equal(t, map[string]bool{"a-b--c": true, "same": true, "same-1": true, "here": true}, page.Anchors)
	assert.Equal(t, []Link{{7, "y.md#z", false, ""}, {7, "p.svg", true, "P"}}, page.Links)
	assert.Equal(t, []Span{{1, "b"}, {7, "curfew status"}, {10, "a.py"}, {16, "b.yaml"}}, page.Spans)
	assert.Equal(t, Text{7, false, " See x,  and X."}, page.Texts[3])
	assert.Equal(t, []Block{{13, "python", "print(1)\n", "a.py", ""}, {20, "yaml", "a: 1\n", "b.yaml", "because"}, {24, "sh", "curfew declare queue q\n\ntrue\n", "", ""}}, page.Blocks)
}

func TestParseScript(t *testing.T) {
	variables := map[string]string{}
	script, err := ParseScript("export A=1\nplan=\"curfew rabbitmq plan\"\n$plan --emit x > setup.sh # a comment\n"+
		"B=2 curfew dlq search 'a b' --x \"$A\" | jq -r .x\nf() { curl $(echo hi); }\nf \"$nothing\"", variables)
	require.NoError(t, err)
	var lines []string
	for _, c := range script.Commands {
		lines = append(lines, strings.Join(append(c.Assigns, c.Words...), " "))
	}
	assert.Equal(t, []string{"export A=1", "plan", "tee setup.sh", "curfew rabbitmq plan --emit x", "B curfew dlq search a b --x 1", "jq -r .x", "curl 1", "echo hi", "f 1"}, lines)
	assert.Equal(t, map[string]string{"A": "1", "plan": "curfew rabbitmq plan"}, variables)
	assert.True(t, script.Functions["f"])
}
