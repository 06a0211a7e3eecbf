package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/internals/architecture.md"

// TestPicture holds the picture in docs/internals/architecture.md to the table of imports: each package stands in it once, above all that it may
// import.
func TestPicture(t *testing.T) {
	line := map[string]int{}
	for i, text := range strings.Split(picture(t), "\n") {
		packages, _, _ := strings.Cut(text, "|")
		for _, name := range strings.Fields(packages) {
			if _, known := rooms[name]; !known {
				t.Errorf("the picture has %s, which is not a package", name)
			}
			if _, twice := line[name]; twice {
				t.Errorf("the picture has %s twice", name)
			}
			line[name] = i
		}
	}
	for name, allowed := range rooms {
		own, drawn := line[name]
		if !drawn {
			t.Errorf("the picture lacks %s", name)
			continue
		}
		if name != ground && own >= line[ground] {
			t.Errorf("%s may import %s, which does not stand below it in the picture", name, ground)
		}
		for _, inner := range allowed {
			if inner != "*" && line[inner] <= own {
				t.Errorf("%s may import %s, which does not stand below it in the picture", name, inner)
			}
		}
		if slices.Contains(allowed, "*") && own != 0 {
			t.Errorf("%s may import everything, and is not on top of the picture", name)
		}
	}
}

func picture(t *testing.T) string {
	t.Helper()
	_, after, found := strings.Cut(document(t, architecture), "<!-- picture -->\n```text\n")
	text, _, ended := strings.Cut(after, "\n```")
	if !found || !ended {
		t.Fatalf("%s has no picture", architecture)
	}
	return text
}

// TestNamesInDocuments: the files, folders, functions and methods that the documents for developers name exist.
func TestNamesInDocuments(t *testing.T) {
	names := map[string]bool{} // of functions and types: "Name", "Type.Name", "package.Name"
	for _, f := range allGoFiles(t) {
		if f.test {
			continue
		}
		for name := range declarations(f) {
			names[name] = true
		}
	}
	all := allPaths(t)
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil || slices.ContainsFunc(all, func(p string) bool { return strings.HasSuffix(p, "/"+path) })
	}
	for _, path := range []string{architecture, "docs/internals/contributing.md"} {
		text := document(t, path)
		for _, match := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
			switch name := match[1]; {
			case regexp.MustCompile(`^[\w./-]+\.(go|md|txt|yml)$|^(broker|monitor|scheduler|cmd|integration)(/\w+)*$`).MatchString(name):
				if !exists(name) {
					t.Errorf("%s names %s, which does not exist", path, name)
				}
			case regexp.MustCompile(`^(\w+\.\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]\w+)$`).MatchString(name):
				if !names[name] {
					t.Errorf("%s names %s, which does not exist", path, name)
				}
			}
		}
		for _, match := range regexp.MustCompile(`\]\(([\w./-]+)\)`).FindAllStringSubmatch(text, -1) {
			if !exists(filepath.Join(filepath.Dir(path), match[1])) {
				t.Errorf("%s links to %s, which does not exist", path, match[1])
			}
		}
	}
}

// declarations are the functions and types of a file as documents name them.
func declarations(f *goFile) map[string]bool {
	names := map[string]bool{}
	for _, name := range declaredNames(f.ast) {
		names[name] = true
		names[f.ast.Name.Name+"."+name] = true
	}
	for _, fn := range methodsOf(f.ast) {
		names[fn] = true
	}
	return names
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
