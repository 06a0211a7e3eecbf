package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// TestFleet: the overview names what is broken, what lost most and what has the traffic, and each queue has a cell that says the same, leads to the
// queue, and is reached by the keyboard.
func TestFleet(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	ch := openChannel(t, dial(t, c.url))
	for _, name := range []string{"busy", "idle", "losing", "risky"} {
		_, err := ch.QueueDeclare(name, true, false, false, false, nil)
		check(t, err)
	}
	publish := func(queue, expiration string) {
		check(t, ch.PublishWithContext(t.Context(), "", queue, false, false, amqp091.Publishing{Expiration: expiration}))
	}
	for range 12 {
		publish("losing", "1")
		publish("risky", "3000000")
	}
	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(1400, 1000))
	b.logIn()
	cell := func(class, name string) string {
		return fmt.Sprintf("document.querySelector('.cells a.%s[title^=\"%s:\"]')", class, name)
	}
	traffic := time.NewTicker(50 * time.Millisecond)
	defer traffic.Stop()
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case <-traffic.C:
				_ = ch.PublishWithContext(t.Context(), "", "busy", false, false, amqp091.Publishing{}) // it fails when the test is over
			}
		}
	}()
	for name, class := range map[string]string{"idle": "idle", "busy": "busy", "losing": "broken", "risky": "risk"} {
		b.until(cell(class, name) + " !== null")
	}
	fact := func(name string) string {
		return fmt.Sprintf("[...document.querySelectorAll('dt')].find(e => e.innerText === %q).nextSibling.innerText", name)
	}
	for name, shows := range map[string]string{"Broken now": "losing in a critical incident", "Lost most, last hour": "losing 12", "Most traffic": "busy "} {
		b.until(fact(name) + fmt.Sprintf(".startsWith(%q)", shows))
	}
	b.until(cell("broken", "losing") + ".title.includes('12 lost in the last hour')")
	b.bothSchemes("fleet", "/")
	b.fleetByKeyboard()
	b.fleetIsLegible()
	b.quiet()
}

// fleetByKeyboard goes from cell to cell, and to a queue.
func (b *browser) fleetByKeyboard() {
	b.Helper()
	b.until("document.readyState === 'complete'")
	if !evaluate[bool](b, "[...document.querySelectorAll('div.cells')].every(group => group.querySelectorAll('a:not([tabindex])').length === 1)") {
		b.Error("not one cell of each group is in the order of the tab key")
	}
	focused := func(name string) {
		b.Helper()
		b.until(fmt.Sprintf("document.activeElement.title.startsWith(%q)", name+":"))
	}
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('.cells a').focus()"))
	for _, step := range []struct{ key, to string }{
		{kb.ArrowRight, "idle"}, {kb.End, "risky"}, {kb.ArrowRight, "risky"}, {kb.ArrowLeft, "losing"}, {kb.ArrowDown, "losing"}, {kb.Home, "busy"}, {kb.ArrowRight, "idle"},
	} {
		b.do(chromedp.KeyEvent(step.key))
		focused(step.to)
	}
	if says := evaluate[string](b, "getComputedStyle(document.activeElement, '::after').content"); says == "none" {
		b.Error("the cell with the focus does not show what it says")
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("document.readyState === 'complete' && document.querySelector('h1') !== null && document.querySelector('h1').innerText === 'idle'")
}

// fleetIsLegible holds the colors of the cells against WCAG's contrasts: 3 for an outline on the card, 4.5 for the sign in it. No two states look the
// same without colors, except traffic, which is a filled cell, and none.
func (b *browser) fleetIsLegible() {
	b.Helper()
	b.open("/")
	b.until("document.querySelector('.cells') !== null")
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		b.do(chromedp.Sleep(100 * time.Millisecond))
		if wrong := evaluate[string](b, `(() => {
			const light = color => color.match(/[\d.]+/g).slice(0, 3).map(n => n / 255).map(n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4).reduce((sum, n, i) => sum + n * [0.2126, 0.7152, 0.0722][i], 0);
			const contrast = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
			const card = document.querySelector('.card'), on = getComputedStyle(card).backgroundColor, wrong = [], signs = new Set();
			for (const state of ['idle', 'busy', 'risk', 'lost', 'warned', 'broken']) {
				const row = document.createElement('p'), cell = document.createElement('i');
				row.className = 'cells'; cell.className = state; row.append(cell); card.append(row);
				const style = getComputedStyle(cell), sign = getComputedStyle(cell, '::before').content;
				const fill = /, 0\)$|transparent/.test(style.backgroundColor) ? on : style.backgroundColor;
				if (contrast(style.borderTopColor, on) < 3) wrong.push(state + ' has an outline with a contrast of ' + contrast(style.borderTopColor, on));
				if (sign !== 'none' && contrast(style.color, fill) < 4.5) wrong.push(state + ' has a sign with a contrast of ' + contrast(style.color, fill));
				signs.add(sign + (sign === 'none' && fill !== on));
				row.remove();
			}
			if (signs.size !== 6) wrong.push('only ' + signs.size + ' states differ without colors');
			return wrong.join('\n');
		})()`); wrong != "" {
			b.Errorf("dark %v:\n%s", dark, wrong)
		}
	}
	b.dark(false)
}
