package browsertest_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'"

func TestMain(m *testing.M) {
	code := m.Run()
	browsertest.Stop()
	os.Exit(code)
}

// site serves a page at /, with a policy, and its script.
func site(t *testing.T, body, script string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /script.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, script)
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		theme := html.EscapeString(r.Header.Get("Cookie"))
		fmt.Fprintf(w, `<!doctype html><html lang="en"><head><title>Page</title><meta name="viewport" content="width=device-width"></head>
			<body><main><h1>Page</h1><p id="cookies">%s</p>%s</main><script src="/script.js"></script></body></html>`, theme, body)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestFaultsOfAPageAreFound(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)

	for name, test := range map[string]struct{ body, script, want string }{
		"a picture without words":   {`<img src="/none.png">`, "", "image-alt"},
		"an inline style":           {`<p style="color: red">x</p>`, "", "the policy refused style-src"},
		"an error on the console":   {"", `console.error('it broke')`, "it broke"},
		"an exception":              {"", `throw new Error('thrown')`, "thrown"},
		"something that is so wide": {`<svg width="2000" height="4" aria-hidden="true"></svg>`, "", "px sideways"},
	} {
		tab := browser.Open(t, browsertest.View{URL: site(t, test.body, test.script), Width: browsertest.Phone})
		tab.Go("/")
		if faults := tab.Faults(); !slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, test.want) }) {
			t.Errorf("%s: %q lack %q", name, faults, test.want)
		}
	}
}

func TestPageThatIsHeavyOrMovesIsFound(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	heavy := "<!-- " + strings.Repeat("x", 110<<10) + " -->"

	for name, test := range map[string]struct{ body, script, want string }{
		"a page that is light and still": {"<p>text</p>", "", ""},
		"a heavy page":                   {heavy, "", "bytes without fonts"},
		"what moves as it loads": {`<pre id="last">` + strings.Repeat("text\n", 20) + `</pre>`, `new PerformanceObserver(() => {
			const late = document.createElement('div'); late.innerHTML = '<h2>Late</h2>'.repeat(5); document.querySelector('#last').before(late); document.body.dataset.late = 'yes'; }).observe({type: 'paint', buffered: true})`, "as it loaded: pre#last"},
	} {
		tab := browser.Open(t, browsertest.View{URL: site(t, test.body, test.script)})
		tab.Go("/")
		if test.script != "" {
			tab.Until(`document.body.dataset.late === 'yes'`)
		}
		faults := strings.Join(tab.LoadFaults(), "; ")
		if test.want == "" && faults != "" || !strings.Contains(faults, test.want) {
			t.Errorf("%s: %q", name, faults)
		}
	}
}

func TestPersonIsFollowedOnAPageWithoutFaults(t *testing.T) {
	pictures := t.TempDir()
	t.Setenv("SCREENSHOTS", pictures)
	url := site(t, `<form><label>Name <input name="name"></label></form><button>Say it</button><p id="said"></p>`,
		`document.querySelector('button').onclick = () => document.querySelector('#said').textContent = document.querySelector('input').value`)
	cookie := &http.Cookie{Name: "other", Value: "1"} //nolint:gosec // the browser gets name and value of it
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: url, Theme: "dark", Cookies: []*http.Cookie{cookie}})

	tab.Go("/")
	if cookies := tab.Text("#cookies"); cookies != "theme=dark; other=1" {
		t.Errorf("the page was asked for with the cookies %q", cookies)
	}
	tab.Fill("name", "Mira")
	tab.Press("Say it")
	tab.Until(`document.querySelector('#said').textContent === 'Mira'`)
	tab.Set("input", "Ada")
	tab.Click("button")
	tab.See("#said")
	if said := tab.Text("#said"); said != "Ada" || tab.Text("#nothing") != "" {
		t.Errorf("it says %q", said)
	}
	for everything, count := range map[string]int{"": 2, fulltest.All: 4} {
		t.Setenv(fulltest.Variable, everything)
		name := fmt.Sprintf("page in %d looks", count)
		tab.CheckLooks(name)
		if kept, err := filepath.Glob(filepath.Join(pictures, strings.ReplaceAll(name, " ", "-")+"-*.png")); err != nil || len(kept) != count {
			t.Errorf("%d pictures, want %d, %v", len(kept), count, err)
		}
	}
	if info, err := os.Stat(filepath.Join(pictures, "page-in-4-looks-dark-390.png")); err != nil || info.Size() == 0 {
		t.Errorf("a picture: %v", err)
	}
}

// Nobody acts on what is about to be swapped, and what is not there yet is waited for.
func TestPageIsWaitedForUntilItIsWhole(t *testing.T) {
	t.Parallel()
	url := site(t, `<div id="part"></div>`, `const say = what => dispatchEvent(new Event('htmx:' + what));
		const after = (frames, work) => frames > 0 ? requestAnimationFrame(() => after(frames - 1, work)) : work();
		window.swap = () => {
			say('before:request'); say('before:swap');
			document.querySelector('#part').innerHTML = '<button>Go on</button>';
			after(30, () => { document.querySelector('button').onclick = event => { event.target.textContent = 'Gone on'; }; say('finally:swap');
				after(30, () => { document.querySelector('#part').insertAdjacentHTML('beforeend', '<p id="late">late</p><img src="/none.png">'); say('finally:request'); }); });
		};`)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: url})
	tab.Go("/")
	tab.Run(`swap()`)
	tab.Press("Go on")
	tab.Until(`document.querySelector('button').textContent === 'Gone on'`)
	if faults := tab.Faults(); !slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, "image-alt") }) {
		t.Errorf("what came last was not looked at: %q", faults)
	}

	tab.Run(`document.querySelector('#part').replaceChildren(); swap()`)
	tab.Until(`document.querySelector('#late').textContent === 'late'`)
	tab.Go("/?again")
	tab.Until(browsertest.At("/?again"))
}

// A button that moves between the look at it and the click is clicked all the same.
func TestElementThatMovesIsClicked(t *testing.T) {
	t.Parallel()
	url := site(t, `<button>Go on</button>`, `const button = document.querySelector('button'), real = button.getClientRects.bind(button);
		button.onclick = () => { button.textContent = 'Gone on'; };
		button.getClientRects = () => { const at = real(); button.getClientRects = real; button.before(document.createElement('hr'), 'late', document.createElement('hr')); return at; };`)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: url})
	tab.Go("/")
	tab.Click("button")
	if said := tab.Text("button"); said != "Gone on" {
		t.Errorf("the button says %q", said)
	}
}
