package house

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"curfew/integration/pages"
)

const (
	sentenceLimit = 40 // words
	averageLimit  = 20 // of a page's sentences
)

// turns are what pages do not say, each with what to write instead. The words of language_test.go are not on pages either.
var turns = []struct{ text, instead string }{
	// Another language's grammar.
	{`\b(allow|permit|enable)s? to\b`, "lets somebody ..."},
	{`\bit is possible to\b`, "can"},
	{`\bpossibility to\b`, "way to"},
	{`\bhow (it|this|that) looks like\b`, "what it looks like"},
	{`\bon the other side\b`, "on the other hand"},
	{`\bdepends? (from|of)\b`, "depend on"},
	{`\bdifferent than\b`, "different from"},
	{`\b(information|advice|software|equipment|data)s\b`, "the word has no plural"},
	{`\bsince (\d+|two|three|some|several) (seconds|minutes|hours|days)\b`, "for ..."},
	{`\bavoid to\b`, "avoid ...ing"},
	{`\bdiscuss about\b`, "discuss"},
	{`\bthe both\b`, "both"},
	{`\bonly then (the|it|a)\b`, "after that"},
	{`\bin the following\b`, "below"},
	{`\b(is|are) to be \w+(ed|en)\b`, "must be ..., or will be ..."},

	// Longer or older than it need be.
	{`\bin order to\b`, "to"},
	{`\butili[sz]e`, "use"},
	{`\bupon\b`, "on"},
	{`\bwhilst\b`, "while"},
	{`\bamongst\b`, "among"},
	{`\b(furthermore|moreover)\b`, "also, too"},
	{`\b(nevertheless|nonetheless)\b`, "but"},
	{`\bshall\b`, "must, will"},
	{`\be\.g\.`, "for example"},
	{`\bi\.e\.`, "that is"},
	{`\bresp(ectively|\.)`, "say which is whose"},

	// Words that help nobody.
	{`\b(obviously|basically|simply|of course|needless to say|please note)\b`, "nothing"},
	{`\b(seamless|effortless|blazing|robust|powerful|cutting-edge|state-of-the-art|best-in-class)(ly)?\b`, "what it does"},
}

var turnPatterns = func() (patterns []*regexp.Regexp) {
	for _, turn := range turns {
		patterns = append(patterns, regexp.MustCompile(`(?i)`+turn.text))
	}
	return patterns
}()

// unfinished is what a writer left for later: "TODO", or a name in capitals alone in its paragraph.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|TBD)\b|^[A-Z]+_[A-Z_]+$`)

// TestProse: sentences that can be read at once, and no turn of phrase that a native reader stops at.
func TestProse(t *testing.T) {
	all, err := pages.All(root)
	if err != nil {
		t.Fatal(err)
	}
	sum, count := 0, 0
	for _, page := range all {
		words, sentences := 0, 0
		for _, text := range page.Texts {
			for i, pattern := range turnPatterns {
				if found := pattern.FindString(text.Text); found != "" {
					t.Errorf("%s:%d: %q: write %q", page.Path, text.Line, found, turns[i].instead)
				}
			}
			if left := unfinished.FindString(text.Text); left != "" {
				t.Errorf("%s:%d: %q is still to be written", page.Path, text.Line, left)
			}
			if twice := repeated(text.Text); twice != "" {
				t.Errorf("%s:%d: %q is there twice", page.Path, text.Line, twice)
			}
			if text.Heading {
				if strings.HasSuffix(text.Text, ".") || strings.HasSuffix(text.Text, ":") {
					t.Errorf("%s:%d: a heading does not end in %q", page.Path, text.Line, text.Text[len(text.Text)-1:])
				}
				continue
			}
			for _, sentence := range sentencesOf(text.Text) {
				n := len(strings.Fields(sentence))
				if n > sentenceLimit {
					t.Errorf("%s:%d: a sentence of %d words; %d are the most: %s", page.Path, text.Line, n, sentenceLimit, sentence)
				}
				if n > 3 { // not the cell of a table
					words += n
					sentences++
				}
			}
		}
		if sentences > 0 && words > averageLimit*sentences {
			t.Errorf("%s: its sentences have %d words on average; %d are the most", page.Path, words/sentences, averageLimit)
		}
		sum += words
		count += sentences
	}
	t.Logf("%d sentences with %.1f words on average", count, float64(sum)/float64(max(1, count)))
}

// sentencesOf splits a text behind a full stop, question mark or exclamation mark that a capital or a code follows.
func sentencesOf(text string) (sentences []string) {
	words := strings.Fields(text)
	start := 0
	for i, word := range words {
		last := i+1 == len(words)
		if last || strings.ContainsAny(word[len(word)-1:], ".?!)") && strings.ContainsAny(word, ".?!") && startsSentence(words[i+1]) {
			sentences = append(sentences, strings.Join(words[start:i+1], " "))
			start = i + 1
		}
	}
	return sentences
}

func startsSentence(word string) bool {
	first := []rune(strings.TrimLeft(word, `("`))
	return len(first) > 0 && (unicode.IsUpper(first[0]) || unicode.IsDigit(first[0]))
}

// repeated is a word that stands twice in a row; "" if none does.
func repeated(text string) string {
	words := strings.Fields(text)
	for i := 1; i < len(words); i++ {
		if words[i] == words[i-1] && len(words[i]) > 1 && unicode.IsLower([]rune(words[i])[0]) && words[i] != "that" && words[i] != "had" {
			return words[i]
		}
	}
	return ""
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]int{
		"One. Two? X is three! And (this is four.) Five": 5,
		"Curfew 1.2 is at 127.0.0.1. See https://a.b/c.": 2,
		"It takes 3 ms, e.g. for one message.":           1,
	} {
		if got := sentencesOf(text); len(got) != want {
			t.Errorf("%q are the sentences of %q", got, text)
		}
	}
}
