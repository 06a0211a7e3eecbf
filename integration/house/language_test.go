package house

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// ban is a word or a turn of phrase that is not used here, with what to write instead.
type ban struct {
	name    string
	text    string // a pattern for comments, texts and documents, in any case, where a space stands for any white space
	words   string // of names, in lower case: "bury" is in buryAll and in noteBury, not in buryable; "shown+": in longer names
	instead string
}

// nouns are what something is not: "is no queue". Others are fine after it, as "is no longer" and "is no better".
var nouns = []string{
	"address", "argument", "array", "binding", "boolean", "broker", "choice", "client", "confirm", "connection", "consumer", "context",
	"deadline", "death", "delay", "directory", "duration", "error", "event", "exchange", "expiration", "expiry", "expression", "field", "file",
	"folder", "header", "home", "instant", "integer", "json", "key", "kind", "letter", "limit", "list", "lock", "message", "metric", "name",
	"number", "object", "operation", "option", "package", "page", "path", "peak", "peer", "permission", "place", "policy", "position", "priority",
	"queue", "reason", "receipt", "record", "replay", "secret", "segment", "setting", "shadow", "sink", "snapshot", "span", "store", "stream",
	"string", "table", "tag", "test", "text", "time", "token", "type", "url", "use", "user", "utf-8", "value", "variable", "version",
	"virtual host",
}

// bans: what a native reader stops at, and names that hide an ordinary thing behind a picture.
var bans = []ban{
	// Pictures.
	{name: "grave", text: `\bgraves?\b`, words: "grave graves", instead: "a batch of dead letters"},
	{name: "bury", text: `\bbur(y|ies|ied|ial)\b`, words: "bury buries buried burying", instead: "dead-letter"},
	{name: "inter", text: `\binter(s|red)?\b`, words: "inter inters interred", instead: "dead-letter"},
	{name: "lay", text: `\b(lays?|laid|laying)\b`, words: "lay lays laid", instead: "append, or what is done"},
	{name: "gate", text: `\bgate[ds]?\b`, words: "gate gates gated", instead: "blocked, stopped"},
	{name: "lineup", text: `\blineups?\b`, words: "lineup lineups", instead: "the queue's consumers"},
	{name: "stir", text: `\bstir(s|red)?\b`, words: "stir stirs stirred", instead: "mark as used"},
	{name: "firm", text: `\bfirm\b`, words: "firm", instead: "at least once"},
	{name: "ledger", text: `\bledgers?\b`, words: "ledger ledgers", instead: "history, counters"},
	{name: "books", text: `\bbooks?\b`, words: "book books", instead: "counters, table of bindings"},
	{name: "vitals", text: `\bvitals\b`, words: "vitals", instead: "health"},
	{name: "beside (name)", words: "beside", instead: "what it does: run in the background, ..."},
	{name: "lately", text: `\blately\b`, words: "lately", instead: "recently; the last minutes"},
	{name: "tidy", text: `\btid(y|ies|ied|ier)\b`, words: "tidy tidies tidied tidier", instead: "what is done: delete, trim, compact"},
	{name: "shown...", words: "shown+", instead: "view, backend"},
	{name: "soil", text: `\bsoil(s|ed)?\b`, words: "soil soiled", instead: "mark as dirty"},
	{name: "rouse", text: `\brouse[sd]?\b`, words: "rouse roused", instead: "wake"},
	{name: "poke", text: `\bpoke[sd]?\b`, words: "poke poked", instead: "wake, measure again"},
	{name: "apart (name)", words: "apart", instead: "split"},
	{name: "cramped", text: `\bcramped\b`, words: "cramped", instead: "short of space"},
	{name: "retroaction", text: `\bretroaction\b`, words: "retroaction", instead: "effect on what is queued"},

	// He.
	{name: "he", text: `\b(he|his|him|himself)\b`, instead: "they, it, the user"},

	// Words that are old or another language's.
	{name: "anew", text: `\banew\b`, words: "anew", instead: "again"},
	{name: "whence", text: `\b(whence|thence|hence|thereof|whereof|therein|wherein|herein|thereby|whereby|hereby|therefor)\b`, instead: "from which, so, in it, by it"},
	{name: "lest", text: `\blest\b`, instead: "so that ... not"},
	{name: "for ever", text: `\bfor ever\b`, instead: "forever"},
	{name: "says whether", text: `\b(says|tells) (whether|if)\b`, instead: "reports whether"},
	{name: "is none of", text: `\bis none of\b`, instead: "is not one of"},
	{name: "told", text: `\btold are\b|\b(expir(y|ies)|misses|incidents?|alerts?|changes?) (is|are|was|were) told\b`, instead: "reports, is reported"},
	{name: "to whom", text: `\bto whom\b`, instead: "a client that ..., whoever"},
	{name: "be it", text: `\bbe it (for|by|in|on|of|a|the)\b`, instead: "whether ... or ..., at least"},
	{name: "of its are", text: `\bof (its|theirs|ours) are\b`, instead: "its ... are"},
	{name: "is the whole", text: `\bis the whole on\b`, instead: "shows everything on"},
	{name: "that itself", text: `\bthat itself nobody\b`, instead: "nobody ... it"},
	{name: "who comes", text: `(^|[.:;] )who (comes|asks|waits|reads|writes|has|is|does|wants|sends|was)\b`, instead: "whoever ..., a caller that ..."},
	{name: "who is there not", text: `\bfor who (is|does|has|wants|comes)\b`, instead: "for a caller that"},
	{name: "so has it", text: `(^|[.:;] )so (has|have|does|do|is|are|can) (\w+ )?it\b`, instead: "it does, too"},
	{name: "is not for the", text: `\bis not for the \w+ before\b`, instead: "an older ... cannot read"},
	{name: "is there already", text: `\b(it )?is there already\b|\bwhat is there already\b`, instead: "exists already"},
	{name: "which there is not", text: `\b(which|that|as) there (is|are) (not|none)\b`, instead: "which does not exist"},
	{name: "in the place of", text: `\bin the place of\b`, instead: "in place of, instead of"},
	{name: "up to where", text: `\bup to where\b`, instead: "how far, the position up to which"},
	{name: "so many", text: `\b(acks|are|at|by|for|holds|is|of|opens|than|these|to|with) so many\b|\bso many (bytes|ms|messages|milliseconds|seconds)\b|\bso many( [\w-]+){0,5} as\b`, instead: "as many ... as; n; the given number of"},
	{name: "else at the start", text: `(^|[.;] )else\b`, instead: "Otherwise"},
	{name: "is yes or no", text: `\bis (yes or no|a yes or a no)\b`, instead: "is a boolean"},
	{name: "either is", text: `\beither is\b`, instead: "either of them is"},
	{name: "is no", text: `(^|[^e]|[^r]e|[^e]re) (is|are) no (` + strings.Join(nouns, "|") + `)s?\b`, instead: "is not a"},
	{name: "a nothing is nothing", text: `\bnothing is nothing\b`, instead: "an empty value counts as unset"},
	{name: "it is believed", text: `\bis believed\b`, instead: "is trusted"},
	{name: "by other means", text: `\bby other means\b`, instead: "in another way"},
	{name: "counts for nothing", text: `\bcounts? for nothing\b`, instead: "is not counted"},
	{name: "after a question", text: `\bafter a question\b`, instead: "after asking for confirmation"},
	{name: "falls silent", text: `\bfalls silent\b`, instead: "stops answering"},
	{name: "a RabbitMQ", text: `\ba (RabbitMQ|Redis)( (that|which|beside|whose|with|and|or|is|has|by|in|on|to|for|of)\b|[.,;:)]|$)`, instead: "RabbitMQ, the RabbitMQ that ..., a RabbitMQ cluster"},
	{name: "one too many", text: `\bis one too many\b`, instead: "is not needed"},
}

var (
	textPatterns = func() (patterns []*regexp.Regexp) {
		for _, b := range bans {
			if b.text == "" {
				patterns = append(patterns, nil)
				continue
			}
			patterns = append(patterns, regexp.MustCompile(`(?i)`+b.text))
		}
		return patterns
	}()
	anyText = func() *regexp.Regexp { // most texts have none: one look says so
		var patterns []string
		for _, b := range bans {
			if b.text != "" {
				patterns = append(patterns, b.text)
			}
		}
		return regexp.MustCompile(`(?i)` + strings.Join(patterns, "|"))
	}()
	bannedWords = func() map[string]int {
		words := map[string]int{}
		for i, b := range bans {
			for _, word := range strings.Fields(b.words) {
				words[word] = i
			}
		}
		return words
	}()
)

// documents are the files beside Go that people read.
var documents = []string{".md", ".yaml", ".yml", ".service", ".conf", ".sh", ".js", ".css", ".svg", ".c", ".java", ".py", ".rb", ".php", ".tpl", "Makefile", "Dockerfile"}

// TestLanguage: no text has a word or a turn of phrase that a reader would stop at.
func TestLanguage(t *testing.T) {
	found := map[int][]string{} // by ban: where
	for _, f := range allGoFiles(t) {
		if f.path != "integration/house/language_test.go" {
			readGo(f, func(ban int, pos token.Pos) { found[ban] = append(found[ban], fileSet.Position(pos).String()) })
		}
	}
	for _, path := range allPaths(t) {
		if slices.ContainsFunc(documents, func(suffix string) bool { return strings.HasSuffix(path, suffix) }) && !strings.Contains(path, "/uPlot") { // a library
			readText(t, path, func(ban, line int) { found[ban] = append(found[ban], path+":"+strconv.Itoa(line)) })
		}
	}

	for _, i := range slices.Sorted(maps.Keys(found)) {
		where := found[i]
		t.Errorf("%s (%d in all): %q: write %q", strings.Join(where[:min(5, len(where))], ", "), len(where), bans[i].name, bans[i].instead)
	}
}

// readGo looks at the comments, texts and names of a Go file.
func readGo(f *goFile, note func(ban int, pos token.Pos)) {
	for _, group := range f.ast.Comments {
		for _, ban := range inText(group.Text()) {
			note(ban, group.Pos())
		}
	}
	elsewhere := map[*ast.Ident]bool{} // what stands after a dot is another declaration's
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				for _, ban := range inText(text) {
					note(ban, n.Pos())
				}
			}
		case *ast.SelectorExpr:
			elsewhere[n.Sel] = true
		case *ast.Ident:
			if elsewhere[n] {
				break
			}
			words := wordsOf(n.Name)
			for _, word := range words {
				ban, banned := bannedWords[word]
				if !banned && len(words) > 1 {
					ban, banned = bannedWords[word+"+"]
				}
				if banned {
					note(ban, n.Pos())
				}
			}
		}
		return true
	})
}

// readText looks at a document. A sentence may go over two lines.
func readText(t *testing.T, path string, note func(ban, line int)) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		two := lines[i]
		if i+1 < len(lines) {
			two += " " + strings.TrimLeft(lines[i+1], " \t/#*-")
		}
		next := map[int]bool{} // of the second line alone: found with it
		if i+1 < len(lines) {
			for _, ban := range inText(lines[i+1]) {
				next[ban] = true
			}
		}
		own := inText(lines[i])
		for _, ban := range inText(two) {
			if slices.Contains(own, ban) || !next[ban] {
				note(ban, i+1)
			}
		}
	}
}

// inText lists the bans that a text is against.
func inText(text string) (found []int) {
	text = strings.Join(strings.Fields(text), " ")
	if !anyText.MatchString(text) {
		return nil
	}
	for i, pattern := range textPatterns {
		if pattern != nil && pattern.MatchString(text) {
			found = append(found, i)
		}
	}
	return found
}

// wordsOf takes a name apart: "layFreshDLQ" is lay, fresh and dlq.
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		ends := i == len(runes) || runes[i] == '_' || unicode.IsUpper(runes[i]) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if ends {
			words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
			start = i
		}
	}
	return words
}

// TestHolders: at most one exported type is called Holder, or a reader takes one for another.
func TestHolders(t *testing.T) {
	var where []string
	for _, f := range allGoFiles(t) {
		for _, name := range declaredNames(f.ast) {
			if name == "Holder" {
				where = append(where, f.path)
			}
		}
	}
	if len(where) > 1 {
		t.Errorf("types called Holder: %s: say what is held", strings.Join(where, ", "))
	}
}

// TestNamedFiles: a file of Go that a comment sends its reader to is there.
func TestNamedFiles(t *testing.T) {
	there := map[string]bool{}
	for _, f := range allGoFiles(t) {
		there[path.Base(f.path)] = true
	}
	for _, f := range allGoFiles(t) {
		for _, comment := range f.ast.Comments {
			for _, match := range namedFile.FindAllStringSubmatch(comment.Text(), -1) {
				if !there[match[1]] {
					t.Errorf("%s: %q names %s, and no file is called that", f.path, firstLine(comment.Text()), match[1])
				}
			}
		}
	}
}

// namedFile matches the name of a Go file that is not a path, as those of other projects are, nor an ending such as _test.go.
var namedFile = regexp.MustCompile(`(?:^|[^/\w])([a-z0-9]\w*\.go)\b`)

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func TestWordsOfANameAreFound(t *testing.T) {
	for name, want := range map[string]string{"bury": "bury", "buryAll": "bury all", "HTTPServer": "http server", "layFreshDLQ": "lay fresh dlq", "a_b": "a b", "x": "x"} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}
