package house

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// TestAliases: an alias of a type leads to the type, and not to another alias: whoever follows a name is there after one step.
func TestAliases(t *testing.T) {
	aliases := map[string]string{} // "folder.Name" to what it stands for, likewise
	for _, f := range allGoFiles(t) {
		if !isProduct(f) {
			continue
		}
		folders := map[string]string{}
		for _, spec := range f.ast.Imports {
			if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
				folders[path.Base(imported)] = strings.TrimPrefix(imported, module+"/")
			}
		}
		for _, decl := range f.ast.Decls {
			types, is := decl.(*ast.GenDecl)
			if !is || types.Tok != token.TYPE {
				continue
			}
			for _, spec := range types.Specs {
				declared := spec.(*ast.TypeSpec)
				if to, is := declared.Type.(*ast.SelectorExpr); is && declared.Assign.IsValid() {
					aliases[f.folder+"."+declared.Name.Name] = folders[to.X.(*ast.Ident).Name] + "." + to.Sel.Name
				}
			}
		}
	}
	for name, to := range aliases {
		if next, is := aliases[to]; is {
			t.Errorf("%s is %s, which is %s: use %s", name, to, next, to)
		}
	}
	if len(aliases) < 20 {
		t.Errorf("%d aliases were found: package broker alone has more", len(aliases))
	}
}
