package house

import (
	"go/ast"
	"maps"
	"slices"
)

// circles counts, by package, the files that use one another in a circle, and the uses within these circles (one for each pair of files).
// A method is taken for the one of that name; if a package has several of a name, their uses are not counted.
func circles(files []*goFile) (inCircle, arrows map[string]int) {
	byFolder := map[string][]*goFile{}
	for _, f := range files {
		if !f.test {
			byFolder[f.folder] = append(byFolder[f.folder], f)
		}
	}
	inCircle, arrows = map[string]int{}, map[string]int{}
	for folder, files := range byFolder {
		uses := usesOf(files)
		reach := map[int]map[int]bool{}
		for i := range files {
			reach[i] = reachable(uses, i)
		}
		for i := range files {
			if reach[i][i] {
				inCircle[folder]++
			}
			for j := range uses[i] {
				if reach[j][i] {
					arrows[folder]++
				}
			}
		}
	}
	return inCircle, arrows
}

// usesOf says which files of a package use which others.
func usesOf(files []*goFile) map[int]map[int]bool {
	const several = -1
	names, methods := map[string]int{}, map[string]int{}
	for i, f := range files {
		for _, name := range declaredNames(f.ast) {
			names[name] = i
		}
		for _, decl := range f.ast.Decls {
			if fn, is := decl.(*ast.FuncDecl); is && fn.Recv != nil {
				if _, known := methods[fn.Name.Name]; known {
					methods[fn.Name.Name] = several
				} else {
					methods[fn.Name.Name] = i
				}
			}
		}
	}
	uses := map[int]map[int]bool{}
	for i, f := range files {
		uses[i] = map[int]bool{}
		add := func(from map[string]int, name string) {
			if j, known := from[name]; known && j != several && j != i {
				uses[i][j] = true
			}
		}
		after := map[*ast.Ident]bool{}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				after[n.Sel] = true
				add(methods, n.Sel.Name)
			case *ast.Ident:
				if !after[n] {
					add(names, n.Name)
				}
			}
			return true
		})
	}
	return uses
}

// reachable are the files that one leads to, over at least one use.
func reachable(uses map[int]map[int]bool, from int) map[int]bool {
	seen := map[int]bool{}
	for queue := slices.Collect(maps.Keys(uses[from])); len(queue) > 0; queue = queue[1:] {
		if next := queue[0]; !seen[next] {
			seen[next] = true
			queue = slices.AppendSeq(queue, maps.Keys(uses[next]))
		}
	}
	return seen
}
