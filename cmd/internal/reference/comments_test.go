package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// comments reads what the code says about types and their fields.
type comments struct {
	t      *testing.T
	read   map[string]bool   // import paths
	types  map[string]string // by import path and name
	fields map[string]string // by import path, name of the type, and field
}

func newComments(t *testing.T) *comments {
	return &comments{t, map[string]bool{}, map[string]string{}, map[string]string{}}
}

// ofType is the comment of a type; "" of a type that is not ours.
func (c *comments) ofType(of reflect.Type) string {
	c.readPackage(of.PkgPath())
	return c.types[of.PkgPath()+"."+of.Name()]
}

// ofField is the comment above a field, or behind it.
func (c *comments) ofField(of reflect.Type, field string) string {
	c.readPackage(of.PkgPath())
	return c.fields[of.PkgPath()+"."+of.Name()+"."+field]
}

func (c *comments) readPackage(path string) {
	folder, ours := strings.CutPrefix(path, "curfew/")
	if !ours || c.read[path] {
		return
	}
	c.read[path] = true
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	require.NoError(c.t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(c.t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		require.NoError(c.t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if decl, is := n.(*ast.GenDecl); is && decl.Tok == token.TYPE {
				for _, spec := range decl.Specs {
					c.readType(path, decl, spec.(*ast.TypeSpec))
				}
			}
			return true
		})
	}
}

func (c *comments) readType(path string, decl *ast.GenDecl, spec *ast.TypeSpec) {
	comment := spec.Doc
	if comment == nil {
		comment = decl.Doc
	}
	c.types[path+"."+spec.Name.Name] = textOf(comment)
	body, is := spec.Type.(*ast.StructType)
	if !is {
		return
	}
	for _, field := range body.Fields.List {
		text := textOf(field.Doc)
		if text == "" {
			text = textOf(field.Comment)
		}
		for _, name := range field.Names {
			c.fields[path+"."+spec.Name.Name+"."+name.Name] = text
		}
	}
}

// textOf is a comment in one line.
func textOf(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}
