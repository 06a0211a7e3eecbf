package house

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// The budget of the whole: limits for each package and type only push size into more of them. When something is taken away, the
// figure goes down to what is then reached, rounded up a little. Whoever raises one says in the commit what the lines are for.
const (
	// productLines is of Go without tests, integration and deploy: what somebody who carries Curfew on has to read.
	productLines = 107_900 // of them 3,520 are AMQP 1.0: the codec (broker/amqp10), what speaks it (broker/server), and the conversion of messages; 3,590 Service Bus, of which 330 are the SQL filters
	// productPackages is how many rooms there are to know: a package that one other imports has to earn its page.
	productPackages = 59 // with four for AMQP 1.0: the codec, the conversion, and what had to leave broker/server to make room: one for what is declared over both protocols; three for Service Bus
	// methodSetLimit is of a type with all that it embeds: what an editor offers after the dot.
	methodSetLimit = 60
	// oneStatement is how many functions are a name for one statement: some are worth it, a layer of them is not.
	oneStatement = 697
)

// TestBudget: all of it together can be carried.
func TestBudget(t *testing.T) {
	var lines, small int
	packages := map[string]bool{}
	for _, f := range allGoFiles(t) {
		if !isProduct(f) {
			continue
		}
		lines += f.lines
		small += oneStatementFunctions(f.ast)
		packages[f.folder] = true
	}
	sets := methodSets(t)
	for _, figure := range []struct {
		what       string
		have, most int
	}{
		{"lines of Go", lines, productLines},
		{"packages", len(packages), productPackages},
		{"functions of one statement", small, oneStatement},
	} {
		if figure.have > figure.most {
			t.Errorf("the product has %d %s; the budget is %d", figure.have, figure.what, figure.most)
		}
		if testing.Verbose() {
			fmt.Printf("budget: %-27s %6d of %d\n", figure.what, figure.have, figure.most)
		}
	}
	holdTo(t, "methods with those of what it embeds", sets, methodSetLimit, nil)
	if testing.Verbose() {
		fmt.Printf("budget: largest method sets         %s\n", largest(sets, 16))
	}
}

func isProduct(f *goFile) bool {
	return !f.test && !within(f.folder, "integration") && !within(f.folder, "deploy")
}

// oneStatementFunctions counts the functions whose body is a single statement that is no block.
func oneStatementFunctions(file *ast.File) (n int) {
	for _, decl := range file.Decls {
		if fn, is := decl.(*ast.FuncDecl); is && fn.Body != nil && len(fn.Body.List) == 1 {
			switch fn.Body.List[0].(type) {
			case *ast.ReturnStmt, *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
				n++
			}
		}
	}
	return n
}

// methodSets counts the methods of each type, those of embedded types included, as "folder.Type".
func methodSets(t *testing.T) map[string]int {
	t.Helper()
	files := map[string][]*ast.File{} // by folder
	for _, f := range allGoFiles(t) {
		matches, err := build.Default.MatchFile(path.Join(root, f.folder), path.Base(f.path))
		if err != nil {
			t.Fatal(err)
		}
		if isProduct(f) && matches {
			files[f.folder] = append(files[f.folder], f.ast)
		}
	}
	compiled := importer.ForCompiler(fileSet, "gc", exportData(t))
	sets := map[string]int{}
	for folder, list := range files {
		config := types.Config{Importer: compiled}
		p, err := config.Check(module+"/"+folder, fileSet, list, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range p.Scope().Names() {
			if object, is := p.Scope().Lookup(name).(*types.TypeName); is && !object.IsAlias() && !types.IsInterface(object.Type()) {
				sets[folder+"."+name] = types.NewMethodSet(types.NewPointer(object.Type())).Len()
			}
		}
	}
	return sets
}

// exportData opens what the compiler has written about a package that ours import. `go test` has compiled most of them.
func exportData(t *testing.T) importer.Lookup {
	t.Helper()
	list := exec.Command("go", "list", "-trimpath", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}", "./...")
	list.Dir, list.Stderr, list.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0") // as the product is built, so that it is compiled once
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		at[name] = file
	}
	return func(name string) (io.ReadCloser, error) { return os.Open(at[name]) }
}
