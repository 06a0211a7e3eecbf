package integration

import "github.com/chromedp/chromedp"

// axe is Deque's accessibility checker, which .ci/deps installs.
const axe = "../.cache/node/node_modules/axe-core/axe.min.js"

// accessible has axe-core look at the page on a desk, in both themes, and on a phone: there is no violation.
func (b *browser) accessible(path string) {
	b.Helper()
	b.until("document.readyState === 'complete'")
	b.do(chromedp.Evaluate[chromedp.Void](b.axe))
	for _, screen := range []struct {
		name   string
		window chromedp.Action[chromedp.Void]
		dark   bool
		rules  string // of axe; all where it is empty
	}{
		{"on a desk", chromedp.EmulateViewport(1400, 900), false, ""},
		{"on a desk, dark", chromedp.EmulateViewport(1400, 900), true, ", runOnly: ['color-contrast', 'link-in-text-block']"}, // the others do not look at colors
		{"on a phone", chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile), false, ""},
	} {
		b.do(screen.window)
		b.dark(screen.dark)
		b.do(chromedp.Evaluate[chromedp.Void](`window.violations = undefined; axe.run(document, {resultTypes: ['violations']` + screen.rules + `}).then(r => {
			window.violations = r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + n.any.map(c => c.message).join('; ')).join(' | ')).join('\n');
		})`))
		b.until("window.violations !== undefined")
		if found := evaluate[string](b, "window.violations"); found != "" {
			b.Errorf("%s %s:\n%s", path, screen.name, found)
		}
	}
}
