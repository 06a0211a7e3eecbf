package fields

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the file and each file that it names, in bytes.
const maxFile = 1 << 20

// Reader reads one file.
type Reader struct {
	Path string
	Errs []error // every mistake
	Seen string  // all that was read: the file, and those that it names
}

// Document reads the fields of the whole file, in the order of known.
func (r *Reader) Document(known []Field) {
	text, err := r.readFile(r.Path)
	if err != nil {
		r.Errs = append(r.Errs, fmt.Errorf("alert: %w", err))
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		r.Errs = append(r.Errs, fmt.Errorf("%s: %w", r.Path, err))
		return
	}
	if len(doc.Content) == 0 {
		return // nothing but comments
	}
	r.Mapping(doc.Content[0], "", known)
}

// Secret returns a field of that name, and another whose name ends in File for a file that holds its value.
func (r *Reader) Secret(name string, out *string) []Field {
	return []Field{
		{Name: name, Read: func(n *yaml.Node, where string) { *out = r.Text(n, where) }},
		{Name: name + "File", Read: func(n *yaml.Node, where string) {
			path := r.Text(n, where)
			if *out != "" {
				r.Refuse(n, where, "%s is given as well; keep one", name)
			}
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(r.Path), path)
			}
			content, err := r.readFile(path)
			if err != nil {
				r.Refuse(n, where, "%v", err)
			}
			*out = strings.TrimSpace(content)
		}},
	}
}

// Field is one that a mapping may have.
type Field struct {
	Name string
	Read func(n *yaml.Node, where string)
	// Gone is what replaces a field that is no longer read; empty: it is read.
	Gone string
}

// Mapping reads the fields that n has, in the order of known.
func (r *Reader) Mapping(n *yaml.Node, where string, known []Field) {
	var names []string
	gone := make(map[string]string)
	for _, f := range known {
		if gone[f.Name] = f.Gone; f.Gone == "" {
			names = append(names, f.Name)
		}
	}
	if n.Kind != yaml.MappingNode {
		r.Refuse(n, where, "want a mapping with the fields %s", strings.Join(names, ", "))
		return
	}
	values := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		switch {
		case values[key.Value] != nil:
			r.Refuse(key, join(where, key.Value), "it is given twice")
		case gone[key.Value] != "":
			r.Refuse(key, join(where, key.Value), "this field is gone, leave it out: %s", gone[key.Value])
		case !slices.Contains(names, key.Value):
			r.Refuse(key, join(where, key.Value), "unknown field: want one of %s", strings.Join(names, ", "))
		}
		values[key.Value] = value
	}
	for _, f := range known {
		if value := values[f.Name]; value != nil && f.Gone == "" {
			f.Read(value, join(where, f.Name))
			delete(values, f.Name) // once
		}
	}
}

func join(where, field string) string {
	if where == "" {
		return field
	}
	return where + "." + field
}

// Refuse notes a mistake.
func (r *Reader) Refuse(n *yaml.Node, where, format string, args ...any) {
	if where != "" {
		where += ": "
	}
	r.Errs = append(r.Errs, fmt.Errorf("%s:%d: %s%s", r.Path, n.Line, where, fmt.Sprintf(format, args...)))
}

// Text reads text that is not empty.
func (r *Reader) Text(n *yaml.Node, where string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.Refuse(n, where, "want text")
	}
	return n.Value
}

// List reads a list of texts, or one text.
func (r *Reader) List(n *yaml.Node, where string) []string {
	if n.Kind == yaml.ScalarNode {
		return []string{r.Text(n, where)}
	}
	if n.Kind != yaml.SequenceNode {
		r.Refuse(n, where, "want a list")
		return nil
	}
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		list = append(list, r.Text(item, where))
	}
	return list
}

// OneOf reads one of the words allowed.
func (r *Reader) OneOf(n *yaml.Node, where string, allowed []string) string {
	if n.Kind != yaml.ScalarNode || !slices.Contains(allowed, n.Value) {
		r.Refuse(n, where, "%q is invalid: want %s", n.Value, strings.Join(allowed, " or "))
	}
	return n.Value
}

// Number reads a number from 1.
func (r *Reader) Number(n *yaml.Node, where string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		r.Refuse(n, where, "%q is invalid: want a number from 1", n.Value)
	}
	return v
}

// Duration reads a duration, least at least.
func (r *Reader) Duration(n *yaml.Node, where string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < least {
		r.Refuse(n, where, "%q is invalid: want a duration such as 500ms, 10s or 4h, at least %s", n.Value, least)
	}
	return d
}

// readFile reads a file whole, and notes what it read.
func (r *Reader) readFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	r.Seen += path + "\x00" + string(content) + "\x00"
	return string(content), nil
}
