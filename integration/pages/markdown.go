package pages

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensions "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Page is one Markdown file.
type Page struct {
	Path    string          // relative to the root, with slashes
	Anchors map[string]bool // what a link may have behind its #, as GitHub makes it of the headings
	Links   []Link
	Blocks  []Block
	Spans   []Span
	Texts   []Text
}

// Link is a link or a picture. Alt is the text of a picture.
type Link struct {
	Line    int
	Target  string
	Picture bool
	Alt     string
}

// Block is a code block, or a comment that begins with <!-- sh: commands that a page needs and its readers do not.
type Block struct {
	Line     int // of its first line of code
	Language string
	Text     string
	File     string // the file that the paragraph before says this is; "" if it does not say
	NotRun   string // the reason in a comment <!-- not run: ... --> before the block
}

// Span is `code` within a sentence.
type Span struct {
	Line int
	Text string
}

// Text is a paragraph, a heading, a point of a list or a cell of a table, with the letter X for each `code`.
type Text struct {
	Line    int
	Heading bool
	Text    string
}

// All reads the pages below a root: README.md, what is in docs and deploy, and GitHub's own.
func All(root string) (pages []*Page, err error) {
	paths := []string{"README.md"}
	for _, folder := range []string{"docs", "deploy", ".github"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".md" {
				return err
			}
			relative, err := filepath.Rel(root, file)
			paths = append(paths, filepath.ToSlash(relative))
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	for _, name := range paths {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		pages = append(pages, Parse(name, source))
	}
	return pages, nil
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))

// Parse reads one page.
func Parse(name string, source []byte) *Page {
	r := &reading{page: &Page{Path: path.Clean(name), Anchors: map[string]bool{}}, source: source, slugs: map[string]int{}}
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			r.visit(node)
		}
		return ast.WalkContinue, nil
	})
	return r.page
}

type reading struct {
	page   *Page
	source []byte
	slugs  map[string]int // how often each was there
	line   int            // of the block that is being read
}

func (r *reading) visit(node ast.Node) {
	if node.Type() == ast.TypeBlock && node.Lines().Len() > 0 {
		r.line = r.lineAt(node.Lines().At(0).Start)
	}
	switch node.Kind() {
	case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading, extensions.KindTableCell:
		r.page.Texts = append(r.page.Texts, Text{r.line, node.Kind() == ast.KindHeading, r.read(node, "X")})
	}
	switch n := node.(type) {
	case *ast.Heading:
		r.page.Anchors[r.slug(r.textOf(n))] = true
	case *ast.Link:
		r.page.Links = append(r.page.Links, Link{Line: r.line, Target: string(n.Destination)})
	case *ast.Image:
		r.page.Links = append(r.page.Links, Link{Line: r.line, Target: string(n.Destination), Picture: true, Alt: r.textOf(n)})
	case *ast.AutoLink:
		r.page.Links = append(r.page.Links, Link{Line: r.line, Target: string(n.URL(r.source))})
	case *ast.HTMLBlock:
		source := n.Lines().Value(r.source)
		if n.HasClosure() {
			source = append(source, n.ClosureLine.Value(r.source)...)
		}
		if match := unseen.FindSubmatch(source); match != nil {
			r.page.Blocks = append(r.page.Blocks, Block{Line: r.line + 1, Language: "sh", Text: string(match[1])})
		}
		r.html(source)
	case *ast.RawHTML:
		r.html(n.Segments.Value(r.source))
	case *ast.CodeSpan:
		r.page.Spans = append(r.page.Spans, Span{r.line, r.textOf(n)})
	case *ast.FencedCodeBlock:
		block := Block{Line: r.line, Language: string(n.Language(r.source)), Text: string(n.Lines().Value(r.source))}
		block.NotRun, block.File = r.before(n)
		r.page.Blocks = append(r.page.Blocks, block)
	case *ast.CodeBlock:
		r.page.Blocks = append(r.page.Blocks, Block{Line: r.line, Text: string(n.Lines().Value(r.source))})
	}
}

func (r *reading) lineAt(offset int) int { return 1 + bytes.Count(r.source[:offset], []byte("\n")) }

// textOf is what is left of a node without its markup.
func (r *reading) textOf(node ast.Node) string { return r.read(node, "") }

// read does it with something else in place of code, if it is not "".
func (r *reading) read(node ast.Node, code string) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.CodeSpan:
			if entering && code != "" {
				b.WriteString(code)
				return ast.WalkSkipChildren, nil
			}
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(r.source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// slug is the anchor that GitHub makes of a heading: the second of the same name ends in -1.
func (r *reading) slug(heading string) string {
	slug := strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-', c == '_', unicode.IsLetter(c), unicode.IsDigit(c):
			return unicode.ToLower(c)
		}
		return -1
	}, strings.TrimSpace(heading))
	n := r.slugs[slug]
	r.slugs[slug]++
	if n > 0 {
		slug = fmt.Sprintf("%s-%d", slug, n)
	}
	return slug
}

var (
	attribute  = regexp.MustCompile(`(?i)\b(href|src|srcset|id|name|alt)="([^"]*)"`)
	tag        = regexp.MustCompile(`(?is)<(a|img|source|h\d|div|p)\b[^>]*>`)
	unseen     = regexp.MustCompile(`(?s)^<!-- sh\n(.*\n)-->`)
	notRun     = regexp.MustCompile(`<!-- not run: (.+?) -->`)
	namesAFile = regexp.MustCompile("`([\\w./-]*\\w\\.\\w+)`:$")
)

// html takes links, pictures and anchors from HTML.
func (r *reading) html(source []byte) {
	for _, one := range tag.FindAllStringSubmatch(string(source), -1) {
		values := map[string]string{}
		for _, match := range attribute.FindAllStringSubmatch(one[0], -1) {
			values[strings.ToLower(match[1])] = match[2]
		}
		for _, name := range []string{"id", "name"} {
			if values[name] != "" {
				r.page.Anchors[values[name]] = true
			}
		}
		if values["href"] != "" {
			r.page.Links = append(r.page.Links, Link{Line: r.line, Target: values["href"]})
		}
		if one[1] == "img" {
			r.page.Links = append(r.page.Links, Link{Line: r.line, Target: values["src"], Picture: true, Alt: values["alt"]})
		}
		if values["srcset"] != "" { // the picture's text is that of the <img> beside it
			r.page.Links = append(r.page.Links, Link{Line: r.line, Target: values["srcset"]})
		}
	}
}

// before reads what stands before a code block: why it is not run, and which file it is.
func (r *reading) before(block ast.Node) (reason, file string) {
	previous := block.PreviousSibling()
	if comment, is := previous.(*ast.HTMLBlock); is {
		if match := notRun.FindSubmatch(comment.Lines().Value(r.source)); match != nil {
			reason = string(match[1])
			previous = previous.PreviousSibling()
		}
	}
	if previous == nil || !slices.Contains([]ast.NodeKind{ast.KindParagraph, ast.KindTextBlock}, previous.Kind()) {
		return reason, ""
	}
	if match := namesAFile.FindSubmatch(bytes.TrimSpace(previous.Lines().Value(r.source))); match != nil {
		file = string(match[1])
	}
	return reason, file
}
