package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe is Deque's accessibility checker, which .ci/deps installs.
const axe = "../.cache/node/node_modules/axe-core/axe.min.js"

// TestAccessibility has axe-core look at every page, in both themes and on a phone: there is no violation.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	checker, err := os.ReadFile(axe)
	if err != nil {
		t.Fatalf("%v: make deps", err)
	}
	c := startCurfew(t)
	filled := fillEveryPage(t, c)
	for _, screen := range []struct {
		name, theme string
		window      chromedp.Action[chromedp.Void]
		rules       string // of axe; all where it is empty
	}{
		{"light", "light", chromedp.EmulateViewport(1400, 900), ""},
		{"dark", "dark", chromedp.EmulateViewport(1400, 900), "'color-contrast', 'link-in-text-block'"}, // the others do not look at colors
		{"a phone", "light", chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile), ""},
	} {
		t.Run(screen.name, func(t *testing.T) {
			t.Parallel()
			b := openBrowser(t, c.http)
			b.do(screen.window)
			b.examine(string(checker), screen.rules, "/login")
			b.logIn()
			b.open("/")
			b.click("button[name=theme][value=" + screen.theme + "]")
			b.until(fmt.Sprintf("document.documentElement.dataset.theme === %q", screen.theme))
			for _, path := range slices.Sorted(maps.Keys(everyPage)) {
				b.examine(string(checker), screen.rules, filled.Replace(path))
			}
		})
	}
}

// examine opens a page and has axe-core look at it.
func (b *browser) examine(checker, rules, path string) {
	b.Helper()
	options := "resultTypes: ['violations']"
	if rules != "" {
		options += fmt.Sprintf(", runOnly: [%s]", rules)
	}
	b.open(path)
	b.until("document.readyState === 'complete'")
	if evaluate[bool](b, "document.title.startsWith('Error')") {
		b.Errorf("%s: there is no such page", path)
	}
	b.do(chromedp.Evaluate[chromedp.Void](checker))
	b.do(chromedp.Evaluate[chromedp.Void](`window.violations = undefined; axe.run(document, {` + options + `}).then(r => {
		window.violations = r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + n.any.map(c => c.message).join('; ')).join(' | ')).join('\n');
	})`))
	b.until("window.violations !== undefined")
	if found := evaluate[string](b, "window.violations"); found != "" {
		b.Errorf("%s:\n%s", path, found)
	}
}
