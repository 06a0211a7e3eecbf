package deadletters

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"

	"curfew/broker/policy"
	"curfew/broker/queue"
)

// maxPatterns is how many patterns an expression may have. The size of each is bounded, too.
const maxPatterns = 10

// predicates are the functions of expr's that a filter may use; all others are ours.
var predicates = []string{"any", "all", "none", "count"}

// options are the words of filters, for expr.
func options() []expr.Option {
	env := types.Map{}
	for _, f := range Fields {
		env[f.Name] = f.is
	}
	list := []expr.Option{expr.Env(env), expr.AsBool(), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins()}
	for _, name := range predicates {
		list = append(list, expr.EnableBuiltin(name))
	}
	for name, of := range map[string]func(any) any{"len": length, "lower": ofText(strings.ToLower), "upper": ofText(strings.ToUpper), "string": textOf, "number": numberOf, "elements": elements} {
		list = append(list, expr.Function(name, func(p ...any) (any, error) { return of(p[0]), nil }, new(func(any) any)))
	}
	at := new(func(string) time.Time)
	return append(list,
		expr.Function("ago", nil, at), expr.Function("date", nil, at), // their values are known when the expression is compiled
		expr.Function("member", func(p ...any) (any, error) { return member(p[0], p[1]), nil }, new(func(any, any) any)),
		expr.Function("compare", func(p ...any) (any, error) { return compare(p[0].(string), p[1], p[2]), nil }, new(func(string, any, any) bool)),
	)
}

func parse(text string) (*parser.Tree, error) {
	config := conf.CreateNew()
	for _, o := range options() {
		o(config)
	}
	return parser.ParseWithConfig(text, config)
}

// checker checks what expr does not: that the words are ours, and that the work is bounded. It notes the fields that are used.
type checker struct {
	*matcher
	now      time.Time
	patterns int
	err      *FilterError
}

func (c *checker) wrong(n ast.Node, format string, args ...any) {
	if c.err == nil {
		c.err = &FilterError{n.Location().From + 1, fmt.Sprintf(format, args...)}
	}
}

// check checks a part of the expression. inside: it is part of a predicate, which is computed for each element of a list.
func (c *checker) check(n ast.Node, inside bool) {
	switch n := n.(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.BytesNode, *ast.PointerNode:
	case *ast.IdentifierNode:
		c.field(n, inside)
		c.everyHeader = c.everyHeader || n.Value == headersField
	case *ast.UnaryNode:
		_, whole := n.Node.(*ast.IntegerNode)
		_, fraction := n.Node.(*ast.FloatNode)
		if n.Operator == "+" || n.Operator == "-" && !whole && !fraction {
			c.wrong(n, "a filter compares and does not calculate")
		}
		c.check(n.Node, inside)
	case *ast.BinaryNode:
		c.operator(n)
		c.check(n.Left, inside)
		c.check(n.Right, inside)
	case *ast.ChainNode:
		c.check(n.Node, inside)
	case *ast.MemberNode:
		if of, name, is := headerOf(n); is {
			c.field(of, inside)
			c.headers[name] = true
			return
		}
		c.check(n.Node, inside)
		c.check(n.Property, inside)
	case *ast.ArrayNode:
		for _, one := range n.Nodes {
			c.check(one, inside)
		}
	case *ast.BuiltinNode:
		c.predicate(n, inside)
	case *ast.CallNode:
		c.call(n, inside)
	default:
		c.wrong(n, "a filter cannot have this: it compares fields with values")
	}
}

// field checks the name of a field, and notes its use.
func (c *checker) field(n *ast.IdentifierNode, inside bool) {
	needsBody, isLarge := large[n.Value]
	i := slices.IndexFunc(Fields, func(f Field) bool { return f.Name == n.Value })
	switch {
	case i < 0:
		c.wrong(n, "there is no field %q%s", n.Value, near(n.Value))
	case inside && isLarge:
		c.wrong(n, "%s cannot be read again for each element of a list: use # for the element, and compare %s outside", n.Value, n.Value)
	case !slices.Contains(c.fields, &Fields[i]):
		c.fields, c.whole = append(c.fields, &Fields[i]), c.whole || needsBody
	}
}

// headerOf returns the field and the name in the expression for one header, such as headers["tenant"].
func headerOf(n *ast.MemberNode) (of *ast.IdentifierNode, name string, is bool) {
	of, is = n.Node.(*ast.IdentifierNode)
	literal, named := n.Property.(*ast.StringNode)
	if is = is && named && of.Value == headersField; is {
		name = literal.Value
	}
	return of, name, is
}

// near is a question with the word that is written most alike.
func near(name string) string {
	best, least := "", 3
	try := func(word string) {
		if d := levenshtein.ComputeDistance(name, word); d < least || strings.HasPrefix(word, name) && len(name) > 1 && best == "" {
			best, least = word, d
		}
	}
	for _, f := range Fields {
		try(f.Name)
	}
	for _, f := range Functions {
		try(f.Name)
	}
	if best == "" {
		return "; see the fields in docs/reference/filters.md; a text is written in quotes"
	}
	return "; did you mean " + best + "?"
}

func (c *checker) operator(n *ast.BinaryNode) {
	field, _ := n.Left.(*ast.IdentifierNode)
	if why, ok := n.Right.(*ast.StringNode); ok && field != nil && field.Value == "reason" && (n.Operator == "==" || n.Operator == "!=") && why.Value != "" && !slices.Contains(Reasons, why.Value) {
		c.wrong(why, "there is no reason %q: want one of %s", why.Value, strings.Join(Reasons, ", "))
	}
	switch n.Operator {
	case "==", "!=", "<", "<=", ">", ">=", "&&", "||", "and", "or", "in", "contains", "startsWith", "endsWith":
	case "matches":
		c.pattern(n.Right)
	default:
		c.wrong(n, "there is no operator %s: a filter compares and does not calculate", n.Operator)
	}
}

// pattern checks the expression that text has to match.
func (c *checker) pattern(n ast.Node) {
	literal, ok := n.(*ast.StringNode)
	if !ok {
		c.wrong(n, "a pattern has to be written out, such as \"error \\\\d+\"")
		return
	}
	if _, err := policy.Linear(literal.Value); err != nil {
		c.wrong(n, "the pattern is not an RE2 expression: %v", err)
	}
	if c.patterns++; c.patterns > maxPatterns {
		c.wrong(n, "there are more than %d patterns", maxPatterns)
	}
}

// predicate checks a test of the elements of a list. The list of one inside another has to be a part of the outer one's element: then the work
// is in proportion to the size of the outer list, however deep they are.
func (c *checker) predicate(n *ast.BuiltinNode, inside bool) {
	if !slices.Contains(predicates, n.Name) || len(n.Arguments) != 2 {
		c.wrong(n, "there is no function %s%s", n.Name, near(n.Name))
		return
	}
	if inside && !ofElement(n.Arguments[0]) {
		c.wrong(n, "the list of %s inside another has to be a part of the element, such as .items", n.Name)
	}
	c.check(n.Arguments[0], inside)
	if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
		c.check(p.Node, true)
	}
}

// ofElement reports whether n is the element of a list, or a part of it.
func ofElement(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.MemberNode:
		return ofElement(n.Node)
	case *ast.ChainNode:
		return ofElement(n.Node)
	case *ast.PointerNode:
		return n.Name == ""
	}
	return false
}

func (c *checker) call(n *ast.CallNode, inside bool) {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || !slices.ContainsFunc(Functions, func(f Word) bool { return f.Name == name.Value }) {
		c.wrong(n, "there is no function %s%s", n.Callee, near(fmt.Sprint(n.Callee)))
		return
	}
	if name.Value == "ago" || name.Value == "date" {
		if _, err := timeOf(name.Value, n.Arguments, c.now); err != nil {
			c.wrong(n, "%v", err)
		}
	}
	for _, one := range n.Arguments {
		c.check(one, inside)
	}
}

// timeOf is the instant that ago or date stands for.
func timeOf(function string, arguments []ast.Node, now time.Time) (time.Time, error) {
	if len(arguments) == 1 {
		if literal, ok := arguments[0].(*ast.StringNode); ok {
			_, notSpan := time.ParseDuration(literal.Value)
			if at, err := ParseInstant(literal.Value, now); err == nil && !at.IsZero() && (notSpan == nil) == (function == "ago") {
				return at, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf(map[string]string{"ago": `%s wants how long ago, such as ago("2h")`, "date": `%s wants an instant, such as date("2030-01-31 08:00")`}[function], function)
}

// numbersIn returns the numbers of the messages that the expression is only about, in the order of delivery; nil: it is about all.
func numbersIn(n ast.Node) []queue.Seq {
	b, ok := n.(*ast.BinaryNode)
	if !ok {
		return nil
	}
	if b.Operator == "&&" || b.Operator == "and" {
		if seqs := numbersIn(b.Left); seqs != nil {
			return seqs
		}
		return numbersIn(b.Right)
	}
	if name, is := b.Left.(*ast.IdentifierNode); !is || name.Value != "seq" {
		return nil
	}
	nodes := []ast.Node{b.Right}
	if list, is := b.Right.(*ast.ArrayNode); is && b.Operator == "in" {
		nodes = list.Nodes
	} else if b.Operator != "==" {
		return nil
	}
	seqs := []queue.Seq{}
	for _, one := range nodes {
		sign := 1
		if u, is := one.(*ast.UnaryNode); is {
			one, sign = u.Node, -1
		}
		number, is := one.(*ast.IntegerNode)
		if !is {
			return nil
		}
		seqs = append(seqs, queue.Seq(sign*number.Value))
	}
	return inOrder(seqs)
}

// patcher makes an expression lenient: a member that does not exist is nil, a comparison with it is false, and text is found in a body also as
// JSON escapes it.
type patcher struct{ now time.Time }

// Visit implements ast.Visitor.
func (p *patcher) Visit(node *ast.Node) {
	call := func(function string, arguments ...ast.Node) {
		ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: arguments})
	}
	switch n := (*node).(type) {
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && (name.Value == "ago" || name.Value == "date") {
			at, _ := timeOf(name.Value, n.Arguments, p.now) // it was checked
			ast.Patch(node, &ast.ConstantNode{Value: at})
			(*node).SetType(clockType)
		}
	case *ast.BytesNode: // text that is not UTF-8
		ast.Patch(node, &ast.StringNode{Value: string(n.Value)})
	case *ast.MemberNode:
		if unknown(n.Node) {
			call("member", n.Node, n.Property)
		}
	case *ast.BuiltinNode:
		if unknown(n.Arguments[0]) {
			n.Arguments[0] = &ast.CallNode{Callee: &ast.IdentifierNode{Value: "elements"}, Arguments: []ast.Node{n.Arguments[0]}}
		}
	case *ast.BinaryNode:
		p.comparison(node, n, call)
	}
}

func (p *patcher) comparison(node *ast.Node, n *ast.BinaryNode, call func(string, ...ast.Node)) {
	field, _ := n.Left.(*ast.IdentifierNode)
	literal, _ := n.Right.(*ast.StringNode)
	switch {
	case comparisons[n.Operator] == nil:
	case n.Operator == "contains" && literal != nil && field != nil && field.Value == "body":
		for _, form := range escaped(literal.Value) {
			ast.Patch(node, &ast.BinaryNode{Operator: "||", Left: *node, Right: &ast.BinaryNode{Operator: "contains", Left: field, Right: &ast.StringNode{Value: form}}})
		}
	case unknown(n.Left) || unknown(n.Right) || n.Left.Type() == clockType && n.Right.Type() == clockType:
		right := n.Right
		if n.Operator == "matches" && literal != nil {
			if re, err := regexp.Compile(literal.Value); err == nil {
				right = &ast.ConstantNode{Value: re}
			}
		}
		call("compare", &ast.StringNode{Value: n.Operator}, n.Left, right)
	}
}
