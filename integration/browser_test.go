package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	chromium = "/usr/bin/chromium-headless-shell" // without windows: it takes less than half of the processor time
	// browserLimit is for one test: five browsers that look at every page take three minutes of two processors, and others compete for them.
	browserLimit = 10 * time.Minute
)

// browser is a headless Chromium with one page of a Curfew.
type browser struct {
	*testing.T
	ctx  context.Context
	base string
	axe  string // the checker that looks at each page, if it shall

	mu       sync.Mutex
	messages []string // of the console, among them what the Content-Security-Policy refused
}

// noMistake is what the console says of a page that a user may not see and of a form with mistakes, which the page itself says, too, and of a page in
// which a test was quicker than the browser with its focus.
var noMistake = regexp.MustCompile(`status of (400 \(Bad Request\)|403 \(Forbidden\))$|^info: Autofocus processing was blocked`)

// openBrowser starts Chromium; the test fails for anything that shows on the console.
func openBrowser(t *testing.T, base string) *browser {
	t.Helper()
	if _, err := os.Stat(chromium); err != nil {
		t.Fatalf("%v: apt-get install -y --no-install-recommends chromium-headless-shell", err)
	}
	limited, cancel := context.WithTimeout(t.Context(), browserLimit)
	t.Cleanup(cancel)
	options := append(append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...),
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-background-networking", true))
	allocator, stop := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(stop)
	ctx, closePage := chromedp.NewContext(allocator)
	t.Cleanup(closePage)
	b := &browser{T: t, ctx: ctx, base: base}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			if text := fmt.Sprint(m); !noMistake.MatchString(text) {
				b.messages = append(b.messages, text)
			}
			b.mu.Unlock()
		}
	}()
	return b
}

// quiet fails for what the console had to say.
func (b *browser) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.messages) > 0 {
		b.Errorf("the console says:\n%s", strings.Join(b.messages, "\n"))
	}
	b.messages = nil
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// evaluate is the value of an expression in the page.
func evaluate[T any](b *browser, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression in the page to be true; a page that is being left has none.
func (b *browser) until(expression string) {
	b.Helper()
	eventually(b.T, startLimit, expression, func() bool {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if b.ctx.Err() != nil {
			b.Fatalf("%s: %v", expression, err)
		}
		return err == nil && is
	})
}

// shows waits for a text.
func (b *browser) shows(text string) {
	b.Helper()
	b.until(fmt.Sprintf("document.body !== null && document.body.innerText.includes(%q)", text))
}

// open goes to a path.
func (b *browser) open(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// follow clicks a link by its text and waits for the page it leads to.
func (b *browser) follow(link, heading string) {
	b.Helper()
	b.press(link)
	b.until(fmt.Sprintf("document.readyState === 'complete' && document.querySelector('h1') !== null && document.querySelector('h1').innerText.includes(%q)", heading))
}

// press clicks a link by its text.
func (b *browser) press(link string) {
	b.Helper()
	found := fmt.Sprintf("[...document.links].find(a => a.innerText.trim() === %q)", link)
	b.until("document.readyState === 'complete' && " + found + " !== undefined")
	b.do(chromedp.Evaluate[chromedp.Void](found + ".click()"))
}

// click clicks what a selector finds, in the page: it may replace what it shows at any time, and then what was found from here is gone.
func (b *browser) click(selector string) {
	b.Helper()
	found := fmt.Sprintf("document.querySelector(%q)", selector)
	b.until("document.readyState === 'complete' && " + found + " !== null")
	b.do(chromedp.Evaluate[chromedp.Void](found + ".click()"))
}

func (b *browser) logIn() {
	b.Helper()
	b.open("/")
	b.until("document.activeElement !== null && document.activeElement.name === 'name'") // by itself; the console tells who is faster
	b.do(chromedp.SendKeys("input[name=name]", "guest"), chromedp.SendKeys("input[name=password]", "guest\r"), chromedp.WaitVisible("header nav"))
}

// dark turns the dark scheme on or off.
func (b *browser) dark(on bool) {
	b.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[on]
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	check(b.T, err)
}

// screenshot keeps a picture of the page, where BROWSER_SCREENSHOTS names a folder.
func (b *browser) screenshot(name string) {
	b.Helper()
	folder := os.Getenv("BROWSER_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	check(b.T, err)
	check(b.T, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600))
}

// withoutScripts opens further pages as a browser does that runs none.
func (b *browser) withoutScripts() {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	check(b.T, err)
}
