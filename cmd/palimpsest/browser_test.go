package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/wire/wiregen"
)

// browserPatience bounds one wait for a page.
const browserPatience = 30 * time.Second

// The whole first visit in a real browser: sign up, store a provider key, create
// an API key, send a conversation past the window, read original and sent beside
// each other, move the slider, and see the next exchange use it.
func TestFirstVisitInTheBrowser(t *testing.T) {
	t.Parallel()
	i := start(t, providertest.Config{KeepBodies: 1})
	b := i.browse()

	b.open("/signup")
	b.fill("email", "ada@example.com")
	b.fill("password", "correct horse battery")
	b.fill("workspace", "Northbeam")
	b.press("Sign up")
	b.see("[data-testid=steps]")
	b.clean("overview, empty")

	b.open("/providers/new")
	b.fill("name", "Anthropic")
	b.fill("key", providerKey)
	b.fill("base_url", i.double.URL)
	b.press("Add key")
	b.see("[data-testid=providers]")
	b.clean("providers")

	b.open("/keys/new")
	b.fill("name", "laptop")
	b.press("Create key")
	b.see("[data-testid=secret]")
	b.clean("key created")
	w := &tenant{instance: i, key: b.text("[data-testid=secret]")}
	b.open("/keys")
	if strings.Contains(b.text("body"), w.key) {
		t.Error("the secret is shown a second time")
	}

	b.open("/overview")
	session := wiregen.Generate(2, wiregen.Options{Turns: 60, Parallel: true, TargetTokens: 190_000, CacheMarkers: true, Signer: i.double})
	header := map[string]string{"X-Session-Id": "visit", "User-Agent": "claude-cli/2.1.329 (external, cli)"}
	epochs := 0
	for step, body := range session.Bodies() {
		if step == session.Steps()-1 {
			break // kept for the changed setting
		}
		response, answer := w.post("/v1/messages", body, header)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("request %d: status %d: %s", step+1, response.StatusCode, answer)
		}
		if response.Header.Get("X-Palimpsest-Archived") != "0" {
			epochs++
		}
	}
	if epochs == 0 {
		t.Fatal("the conversation was never compressed")
	}
	b.see("#steps[data-done='3']") // the first request arrives on the open page
	b.open("/overview")
	b.clean("overview")

	b.open("/sessions")
	b.clean("sessions")
	b.follow("a[href^='/sessions/']")
	b.see("[data-testid=turns]")
	b.run(`Array.from(document.querySelectorAll("[data-testid=turns] a.turn")).find(turn => turn.querySelector(".tk").textContent.includes("→")).click()`)
	b.see(".s-orig")
	b.see(".s-sent")
	b.clean("session")

	b.open("/pipeline")
	b.clean("pipeline")
	b.slide("0.55")
	b.press("Save change")
	b.see("[data-testid=saved]")
	response, answer := w.post("/v1/messages", session.Body(session.Steps()-1), header)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", response.StatusCode, answer)
	}
	var config struct {
		Pipeline struct {
			IPC struct {
				TargetUtilization float64 `json:"targetUtilization"`
			} `json:"ipc"`
		} `json:"pipeline"`
	}
	w.get("/v1/pipeline", &config)
	if target := config.Pipeline.IPC.TargetUtilization; target != 0.55 {
		t.Errorf("the proxy works with targetUtilization %v, want the saved 0.55", target)
	}
}

// browser is a tab of a real browser with somebody in front of it.
type browser struct {
	*instance

	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the console, CSP violations included
}

// browse opens a browser.
func (i *instance) browse() *browser {
	i.t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("force-prefers-reduced-motion", true), chromedp.WindowSize(1440, 900))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	i.t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	i.t.Cleanup(cancel)
	b := &browser{instance: i, ctx: ctx}
	b.do("start (install the package chromium)", chromedp.Navigate("about:blank"))
	go b.listen() // ends with the tab
	return b
}

func (b *browser) listen() {
	for message, err := range chromedp.Console(b.ctx) {
		if err != nil {
			return
		}
		if message.Type == "error" || message.Type == chromedp.ConsoleException {
			b.mu.Lock()
			b.complaints = append(b.complaints, message.Text)
			b.mu.Unlock()
		}
	}
}

// clean checks a page: no complaint of the console, no sideways scroll at 390 and
// 1440 px, no violation that axe finds.
func (b *browser) clean(page string) {
	b.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1440} {
			b.do("resize", chromedp.EmulateViewport(width, 900))
			b.run(`document.documentElement.dataset.theme = "` + theme + `"`)
			if over := evaluate[float64](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				b.t.Errorf("%s, %d px: scrolls %v px sideways", page, width, over)
			}
			b.picture(fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(page, ", ", "-"), theme, width))
			for _, violation := range b.axe() {
				b.t.Errorf("%s, %s, %d px: %s", page, theme, width, violation)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		b.t.Errorf("%s: console: %s", page, complaint)
	}
	b.complaints = nil
}

// axe returns what axe-core finds against WCAG 2.2 AA.
func (b *browser) axe() []string {
	b.t.Helper()
	files, err := filepath.Glob("../../web/testdata/axe-core-*/axe.min.js")
	if err != nil || len(files) != 1 {
		b.t.Fatalf("axe-core lies at %v, %v", files, err)
	}
	source, err := os.ReadFile(files[0])
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(string(source))
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	violations, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
		.then(result => result.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).join(" | ").slice(0, 400)))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("axe: %v", err)
	}
	return violations
}

// picture writes a screenshot where PALIMPSEST_TEST_PICTURES names a directory.
func (b *browser) picture(name string) {
	b.t.Helper()
	directory := os.Getenv("PALIMPSEST_TEST_PICTURES")
	if directory == "" {
		return
	}
	b.run(`scrollTo(0, 0)`)
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, name+".png"), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) open(path string) {
	b.t.Helper()
	b.do("open "+path, chromedp.Navigate(b.url(path)))
}

// fill types into the field of a name.
func (b *browser) fill(name, text string) {
	b.t.Helper()
	b.run(fmt.Sprintf(`document.querySelector("main [name=%s], dialog [name=%s]").focus()`, name, name))
	b.do("fill "+name, chromedp.KeyEvent(text))
}

// press presses the button with a text.
func (b *browser) press(text string) {
	b.t.Helper()
	b.run(fmt.Sprintf(`Array.from(document.querySelectorAll("main button, dialog button")).find(b => b.textContent.trim() === %q).click()`, text))
}

// follow clicks the first element that a selector finds.
func (b *browser) follow(selector string) {
	b.t.Helper()
	b.do("follow "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// see waits until an element is there to be seen.
func (b *browser) see(selector string) {
	b.t.Helper()
	b.do("see "+selector, chromedp.Query(chromedp.CSS(selector), chromedp.NodeVisible))
}

// slide moves the slider of the pipeline page.
func (b *browser) slide(to string) {
	b.t.Helper()
	b.run(fmt.Sprintf(`(() => { const slider = document.querySelector("[data-slider]"); slider.value = %q; slider.dispatchEvent(new Event("input", {bubbles: true})); })()`, to))
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return strings.TrimSpace(evaluate[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, selector)))
}

func (b *browser) run(script string) {
	b.t.Helper()
	evaluate[any](b, script+"; null")
}

func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx := b.ctx
	if what != "start (install the package chromium)" { // the first call's context is the browser's life
		bounded, cancel := context.WithTimeout(b.ctx, browserPatience)
		defer cancel()
		ctx = bounded
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
		b.t.Fatalf("%s: %v on %.2000s", what, err, page)
	}
}

func evaluate[T any](b *browser, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%.80s: %v", script, err)
	}
	return value
}
