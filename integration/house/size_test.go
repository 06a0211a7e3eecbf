package house

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	methodLimit = 40    // of a type
	lineLimit   = 4_000 // of a package, tests aside
)

// exception is what is above a limit: up to which number, and why.
type exception struct {
	upTo   int
	reason string
}

// An exception that is no longer needed fails the test, so these tables can only shrink.
var (
	largeTypes = map[string]exception{
		"broker/operate.Operations":      {49, "all that an operation needs of a broker, and whoever asks for it"},
		"broker/internal/delivery.Queue": {44, "an operation and its step under one lock are a method each"},
		"monitor/rabbitmq.Primary":       {41, "all that the node asks of RabbitMQ: its queues, its deadlines and what is wrong there"},
	}
	largePackages = map[string]exception{
		"broker/internal/delivery": {4_290, "one queue at work under one lock, with waits for another try: locks outlive their receivers, a message is taken by its number, and gets other properties; batches are asked for whole"},
		"broker/internal/topology": {4_189, "what is declared in a virtual host, and its policies, under one lock: what is declared can be changed, too"},
		"broker/server":            {4_815, "two protocols share connections, channels, flow and limits; the second has a dialect; a publish is put together and confirmed here"},
		"monitor/incident":         {4_550, "one table of conditions, who judges by it and who is told, forecasts included, and what belongs together or is back: the reader of its file stands in the same room"},
		"broker/store":             {5_969, "the commit pipeline, recovery and compaction share the format of one journal, whose segments they keep in small sets"},
	}
)

// TestSizes: a package and a type can be kept in mind.
func TestSizes(t *testing.T) {
	lines, methods := packageLines(t), methodCounts(t)
	holdTo(t, "lines", lines, lineLimit, largePackages)
	holdTo(t, "methods", methods, methodLimit, largeTypes)
	if testing.Verbose() {
		printCounts(t, lines, methods)
	}
}

// holdTo compares sizes with a limit and the exceptions to it.
func holdTo(t *testing.T, unit string, sizes map[string]int, limit int, exceptions map[string]exception) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size := sizes[name]
		if allowed := max(limit, exceptions[name].upTo); size > allowed {
			t.Errorf("%s has %d %s; it may have %d", name, size, unit, allowed)
		}
	}
	for name, e := range exceptions {
		if e.reason == "" {
			t.Errorf("the exception for %s has no reason", name)
		}
		if sizes[name] <= limit {
			t.Errorf("%s has %d %s: take its exception out of the table", name, sizes[name], unit)
		}
	}
}

// packageLines counts the lines of each package, tests aside.
func packageLines(t *testing.T) map[string]int {
	lines := map[string]int{}
	for _, f := range allGoFiles(t) {
		if !f.test {
			lines[f.folder] += f.lines
		}
	}
	return lines
}

// methodCounts counts the methods of each type, as "folder.Type".
func methodCounts(t *testing.T) map[string]int {
	methods := map[string]int{}
	for _, f := range allGoFiles(t) {
		if f.test {
			continue
		}
		for _, name := range methodsOf(f.ast) {
			of, _, _ := strings.Cut(name, ".")
			methods[f.folder+"."+of]++
		}
	}
	return methods
}

// methodsOf lists the methods that a file declares, as "Type.Name".
func methodsOf(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		if fn, isFunc := decl.(*ast.FuncDecl); isFunc && fn.Recv != nil {
			names = append(names, receiver(fn.Recv.List[0].Type)+"."+fn.Name.Name)
		}
	}
	return names
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// printCounts writes down how large everything is, to be compared with another day.
func printCounts(t *testing.T, lines, methods map[string]int) {
	var product, harness, tests, longest int
	var longestFile string
	for _, f := range allGoFiles(t) {
		switch {
		case f.test:
			tests += f.lines
		case isHarness(f.folder):
			harness += f.lines
		default:
			product += f.lines
			if f.lines > longest {
				longest, longestFile = f.lines, f.path
			}
		}
	}
	exported, unused := exportedNames(t)
	var names, alone int
	for folder := range exported {
		names += exported[folder]
		alone += unused[folder]
	}
	fmt.Printf("lines of the product       %6d\n", product)
	fmt.Printf("lines of what tests need   %6d\n", harness)
	fmt.Printf("lines of tests             %6d\n", tests)
	fmt.Printf("packages                   %6d\n", len(lines))
	fmt.Printf("CURFEW_ variables          %6d\n", variables(t))
	fmt.Printf("exported names             %6d\n", names)
	fmt.Printf("  used in their own package only %d: %s\n", alone, largest(unused, 8))
	inCircle, arrows := circles(allGoFiles(t))
	fmt.Printf("files in a circle          %s\n", largest(inCircle, 8))
	fmt.Printf("uses within these circles  %s\n", largest(arrows, 8))
	fmt.Printf("longest file               %6d  %s\n", longest, longestFile)
	fmt.Printf("largest types by methods   %s\n", largest(methods, 12))
	fmt.Printf("largest packages by lines  %s\n", largest(lines, 12))
}

func isHarness(folder string) bool {
	return within(folder, "integration") || within(folder, "cmd/internal/reference")
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// largest lists the n largest of the sizes.
func largest(sizes map[string]int, n int) string {
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(n, len(names))] {
		parts = append(parts, name+" "+strconv.Itoa(sizes[name]))
	}
	return strings.Join(parts, ", ")
}

// exportedNames counts, by package, the functions, types, variables and constants that other packages could use, and those of them that
// none does, tests of other packages included. Methods and fields are not counted.
func exportedNames(t *testing.T) (all, unused map[string]int) {
	declared := map[string]bool{} // by "folder.Name"
	for _, f := range allGoFiles(t) {
		if f.test || isHarness(f.folder) || f.ast.Name.Name == "main" {
			continue
		}
		for _, name := range declaredNames(f.ast) {
			if ast.IsExported(name) {
				declared[f.folder+"."+name] = true
			}
		}
	}
	used := map[string]bool{}
	for _, f := range allGoFiles(t) {
		imports := ownImports(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if selector, is := n.(*ast.SelectorExpr); is {
				if x, is := selector.X.(*ast.Ident); is && imports[x.Name] != "" && imports[x.Name] != f.folder {
					used[imports[x.Name]+"."+selector.Sel.Name] = true
				}
			}
			return true
		})
	}
	all, unused = map[string]int{}, map[string]int{}
	for name := range declared {
		folder := name[:strings.LastIndex(name, ".")]
		all[folder]++
		if !used[name] {
			unused[folder]++
		}
	}
	return all, unused
}

func declaredNames(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				names = append(names, decl.Name.Name)
			}
		case *ast.GenDecl:
			if decl.Tok == token.IMPORT {
				continue
			}
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// ownImports are the packages of ours that a file imports, by the name it knows them under.
func ownImports(f *goFile) map[string]string {
	imports := map[string]string{}
	for _, spec := range f.ast.Imports {
		path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
		if !ours {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = path
	}
	return imports
}

// variables counts the CURFEW_ variables in the tables that `curfew config --markdown` prints.
func variables(t *testing.T) int {
	names := map[string]bool{}
	for _, path := range allPaths(t) {
		if !strings.HasSuffix(path, ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		_, tables, _ := strings.Cut(string(text), "<!-- config -->")
		tables, _, _ = strings.Cut(tables, "<!-- /config -->")
		for _, match := range regexp.MustCompile("(?m)^\\| `(CURFEW_\\w+)`").FindAllStringSubmatch(tables, -1) {
			names[match[1]] = true
		}
	}
	return len(names)
}
