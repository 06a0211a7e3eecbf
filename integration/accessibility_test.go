package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe is Deque's accessibility checker, which .ci/deps installs.
const axe = "../.cache/node/node_modules/axe-core/axe.min.js"

// TestAccessibility has axe-core look at every page, in both themes and on a phone: no violation, and no page is wider than the screen.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	checker, err := os.ReadFile(axe)
	if err != nil {
		t.Fatalf("%v: make deps", err)
	}
	c := startCurfew(t)
	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(1400, 900))
	look := func(path, where string) {
		t.Helper()
		b.open(path)
		b.until("document.readyState === 'complete'")
		if evaluate[bool](b, "document.title.startsWith('Error')") {
			t.Errorf("%s: there is no such page", path)
		}
		b.do(chromedp.Evaluate[chromedp.Void](string(checker)))
		b.do(chromedp.Evaluate[chromedp.Void](`window.violations = undefined; axe.run(document, {resultTypes: ['violations']}).then(r => {
			window.violations = r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + n.any.map(c => c.message).join('; ')).join(' | ')).join('\n');
		})`))
		b.until("window.violations !== undefined")
		if found := evaluate[string](b, "window.violations"); found != "" {
			t.Errorf("%s, %s:\n%s", path, where, found)
		}
		if over := evaluate[int](b, "document.documentElement.scrollWidth - window.innerWidth"); over > 0 {
			t.Errorf("%s, %s: %d pixels wider than the screen", path, where, over)
		}
	}
	look("/login", "light")
	b.logIn()
	filled := fillEveryPage(t, c)
	pages := slices.Sorted(maps.Keys(everyPage))
	for _, theme := range []string{"light", "dark"} {
		b.open("/")
		b.click("button[name=theme][value=" + theme + "]")
		b.until(fmt.Sprintf("document.documentElement.dataset.theme === %q", theme))
		for _, path := range pages {
			look(filled.Replace(path), theme)
			b.screenshot(strings.Trim(strings.NewReplacer("/", "-", "?", "-", "&", "-").Replace(path), "-") + "-" + theme)
		}
	}
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	for _, path := range pages {
		look(filled.Replace(path), "a phone")
		b.screenshot("phone" + strings.NewReplacer("/", "-", "?", "-", "&", "-").Replace(path))
	}
}
