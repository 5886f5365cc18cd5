package pages_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/render"
	"palimpsest/web/webtest"
)

// canary is what the payloads of the corpus call, if anything of them runs.
const canary = `window.ran = []; for (const name of ['alert', 'confirm', 'prompt', 'msgbox']) window[name] = (...said) => { window.ran.push(name + said); };`

// elsewhere is a server that the payloads lead to. It counts who comes.
type elsewhere struct {
	*httptest.Server

	mu    sync.Mutex
	asked []string
}

func listen(t *testing.T) *elsewhere {
	t.Helper()
	e := &elsewhere{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.asked = append(e.asked, r.URL.String())
	}))
	t.Cleanup(e.Close)
	return e
}

// corpus returns texts that try to be more than text. Those that would load something
// would load it from a server.
func corpus(t *testing.T, server string) []string {
	t.Helper()
	lines, err := os.ReadFile("../render/testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(lines), "https://evil.example", server)), "\n")
	return append(texts, "<img src='"+server+"/i' srcset='"+server+"/s 2x'>", "<svg><image href='"+server+"/image'/><use href='"+server+"/use#x'/></svg>",
		"<style>@font-face{font-family:x;src:url("+server+"/font)}*{font-family:x}</style>", "<link rel=prefetch href="+server+"/prefetch>", "<audio src="+server+"/a autoplay>",
		"<picture><source srcset="+server+"/p></picture>", "<a ping="+server+"/ping href="+server+">x</a>", "<iframe src="+server+"/frame></iframe>",
		"[x]("+server+"/\n![x]("+server+"/md.png)", "<table background="+server+"/table>", "<input type=image src="+server+"/input>",
		"user\u202egnp.exe \u2066x\u2069 zero\u200bwidth \U000E0041", "\x1b[2J\x1b]0;title\x07 \x1b]8;;javascript:alert(1)\x07link", "nul\x00byte",
		strings.Repeat("w", 20_000), strings.Repeat("é ", 6_000), strings.Repeat("- ", 10_000)+"deep", strings.Repeat("> ", 10_000)+"deep", strings.Repeat("  - x\n", 900),
		"```js\n"+strings.Repeat("/*", 5_000)+"\n```", "```html\n"+strings.Repeat("<", 10_000)+"\n```", "```yaml\n"+strings.Repeat("a: &a [*a,", 900)+"\n```", strings.Repeat("[", 9_000), strings.Repeat("*a_ ", 2_900))
}

// atOnce is how many texts of the corpus stand in one message.
const atOnce = 6

// bodies returns requests that hold the texts as what someone typed, what a model said,
// how a tool is called, and what it answered, in each of the three formats.
func bodies(texts []string) map[string]string {
	parts := func(format string, texts []string) string {
		list := make([]string, len(texts))
		for i, text := range texts {
			list[i] = fmt.Sprintf(format, quoted(text))
		}
		return strings.Join(list, ",")
	}
	var messages, chat, items []string
	results := ""
	call := 0
	for group := range slices.Chunk(texts, atOnce) {
		said, all := parts(`{"type":"text","text":%s}`, group), quoted(strings.Join(group, "\n\n"))
		messages = append(messages, `{"role":"user","content":[`+results+said+`]}`)
		var calls, answers strings.Builder
		for _, text := range group {
			call++
			fmt.Fprintf(&calls, `,{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/src/page.html","say":%s}}`, call, quoted(text))
			fmt.Fprintf(&answers, `{"type":"tool_result","tool_use_id":"toolu_%d","is_error":true,"content":%s},`, call, quoted(text))
		}
		messages = append(messages, `{"role":"assistant","content":[`+said+calls.String()+`]}`)
		results = answers.String()
		chat = append(chat, `{"role":"user","content":[`+said+`]}`,
			fmt.Sprintf(`{"role":"assistant","content":[%s],"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read","arguments":%s}}]}`, said, call, all),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, call, all))
		items = append(items, `{"type":"message","role":"user","content":[`+parts(`{"type":"input_text","text":%s}`, group)+`]}`,
			`{"type":"message","role":"assistant","content":[`+parts(`{"type":"output_text","text":%s}`, group)+`]}`,
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"read","arguments":%s}`, call, all),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%s}`, call, all))
	}
	messages = append(messages, `{"role":"user","content":[`+results+`{"type":"text","text":"the end"}]}`)
	return map[string]string{
		"/v1/messages":         `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[` + strings.Join(messages, ",") + `]}`,
		"/v1/chat/completions": `{"model":"gpt-4o","messages":[` + strings.Join(chat, ",") + `,{"role":"user","content":"the end"}]}`,
		"/v1/responses":        `{"model":"gpt-5","input":[` + strings.Join(items, ",") + `,{"type":"message","role":"user","content":[{"type":"input_text","text":"the end"}]}]}`,
	}
}

// markupOf is what of the page's archived text is an element that may not be there, or
// has an attribute that may not.
const markupOf = `[...document.querySelectorAll('.said *, .turns .pv, .turns .pv *, .turns b, h1 *')].flatMap(e => {
	const known = /^(a|p|br|hr|h4|h5|h6|ul|ol|li|blockquote|em|strong|del|pre|code|table|thead|tbody|tr|th|td|span|div|ins|b)$/.test(e.localName);
	const bad = [...e.attributes].filter(a => !/^(class|href|rel|start|align|tabindex|role|aria-label|id|hx-.*|data-.*)$/.test(a.name) || a.name === 'href' && !/^(https?:|mailto:|\/sessions\/)/.test(a.value));
	return known && !bad.length ? [] : [e.outerHTML.slice(0, 200)];
})`

// What was archived is text on the page, whatever it would rather be: nothing of it runs,
// loads, styles or leads anywhere by itself, in any format, in a real browser.
func TestHostileCorpusIsTextInABrowser(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person, evil := product.SignUp(t, "northbeam"), listen(t)
	const wide = 100_000_000
	secret, texts := person.Connect(webtest.Provider(t, wide), "laptop"), corpus(t, evil.URL)
	url := withAPI(t, product)
	browser := browsertest.Start(t)
	for path, body := range bodies(texts) {
		person.TalkOnce(secret, wide, path, body, claudeCode)
		address := "/sessions/" + person.Newest().ID.String()
		tab := browser.Open(t, browsertest.View{URL: url, Width: browsertest.Phone, Theme: "light", Cookies: person.Cookies()})
		tab.OnEveryPage(canary)
		lane := laneOf(t, person, person.Newest().ID)
		entries, err := person.Archive.Entries(t.Context(), person.Workspace.ID, lane, 0, 10_000)
		if err != nil || len(entries) < 2*len(texts)/atOnce {
			t.Fatalf("%s: %d messages, %v", path, len(entries), err)
		}
		tab.Go(address)
		tab.Check("hostile " + strings.ReplaceAll(path[1:], "/", "-"))
		for _, page := range []string{"?all=1", "?all=1&text=exact", "?all=1&view=raw"} {
			if strings.HasSuffix(page, "raw") && path != "/v1/messages" {
				continue // bytes are bytes in each format
			}
			// Every turn, as htmx would bring it, one below the other: the page's own policy
			// and its scripts see each.
			tab.Go(address + page)
			tab.Run(fmt.Sprintf(`(async () => {
				const list = [];
				for (let m = 0; m < %d; m++) {
					const address = new URL(location.href); address.searchParams.set('m', m);
					const answer = await fetch(address, {headers: {'HX-Request': 'true', 'HX-Request-Type': 'partial', 'HX-Target': 'div#pane'}});
					const holder = document.createElement('div'); holder.innerHTML = await answer.text(); list.push(holder.firstElementChild);
				}
				document.querySelector('#pane').replaceChildren(...list);
				window.allThere = true;
			})()`, len(entries)))
			tab.Until(`window.allThere === true`)
			checkText(t, tab, path+page, texts, strings.HasSuffix(page, "exact"))
		}
	}
	evil.mu.Lock()
	defer evil.mu.Unlock()
	if len(evil.asked) > 0 {
		t.Errorf("the browser asked elsewhere for %q", evil.asked)
	}
}

// checkText holds a page with all turns to what may be there.
func checkText(t *testing.T, tab *browsertest.Tab, name string, texts []string, isExact bool) {
	t.Helper()
	if ran := browsertest.Evaluate[[]string](tab, `window.ran`); len(ran) > 0 {
		t.Errorf("%s: ran %q", name, ran)
	}
	if found := browsertest.Evaluate[[]string](tab, markupOf); len(found) > 0 {
		t.Errorf("%s: %d elements that may not be there: %q", name, len(found), found[:min(5, len(found))])
	}
	if over := browsertest.Evaluate[int](tab, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		t.Errorf("%s: scrolls %d px sideways", name, over)
	}
	if foreign := browsertest.Evaluate[[]string](tab, `performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin + '/'))`); len(foreign) > 0 {
		t.Errorf("%s: requests elsewhere %q", name, foreign)
	}
	if refused := browsertest.Evaluate[[]string](tab, `window.refused`); len(refused) > 0 {
		t.Errorf("%s: the policy refused %q", name, refused)
	}
	if !isExact {
		return
	}
	shown := browsertest.Evaluate[[]string](tab, `[...document.querySelectorAll('.said pre')].map(e => e.textContent)`)
	for _, text := range texts {
		want := render.Visible(strings.ToValidUTF8(text[:min(len(text), 4_000)], ""))
		if !slices.ContainsFunc(shown, func(said string) bool { return strings.HasPrefix(said, want) }) {
			t.Errorf("%s: %.80q is not shown as it was sent", name, text)
		}
	}
}

// Titles are the first words of a conversation, and as hostile: in lists, in the search
// from everywhere, in the list of requests and in the name of the browser's tab.
func TestHostileTitlesAreTextEverywhere(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person, evil := product.SignUp(t, "northbeam"), listen(t)
	const wide = 1_000_000
	secret := person.Connect(webtest.Provider(t, wide), "laptop")
	titles := []string{
		"</title><script>alert(1)</script><img src=" + evil.URL + "/title onerror=alert(1)>", "\" onmouseover=alert(1) autofocus onfocus=alert(1) x=\"", "javascript:alert(1)//\u202egnp.exe",
		"{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= alert(1) %>", "![x](" + evil.URL + "/t.png) " + strings.Repeat("w", 300),
	}
	for _, title := range titles {
		person.TalkOnce(secret, wide, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":`+quoted(title)+`}]}`, title)
	}
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: withAPI(t, product), Width: browsertest.Phone, Theme: "light", Cookies: person.Cookies()})
	tab.OnEveryPage(canary)
	page, err := person.Sessions.Browser().Sessions(tenants.OwnWork(t.Context()), person.Workspace.ID, session.Filter{Limit: 50})
	if err != nil || len(page.Sessions) != len(titles) {
		t.Fatalf("%d sessions, %v", len(page.Sessions), err)
	}
	addresses := []string{"/sessions?q=alert", "/sessions", "/requests", "/jump?q=alert", "/overview", "/sessions/" + page.Sessions[0].ID.String() + "/delete"}
	for _, one := range page.Sessions {
		addresses = append(addresses, "/sessions/"+one.ID.String())
	}
	for _, address := range addresses {
		tab.Go(address)
		for _, fault := range tab.Faults() {
			t.Errorf("%s: %s", address, fault)
		}
		if ran := browsertest.Evaluate[[]string](tab, `window.ran`); len(ran) > 0 {
			t.Errorf("%s: ran %q", address, ran)
		}
		if found := browsertest.Evaluate[[]string](tab, `[...document.querySelectorAll('main script, main img, main iframe, main style, [onerror], [onmouseover], [onfocus]')].map(e => e.outerHTML)`); len(found) > 0 {
			t.Errorf("%s: there is %q", address, found)
		}
		if strings.ContainsRune(browsertest.Evaluate[string](tab, `document.title + document.querySelector('main').textContent`), '\u202e') {
			t.Errorf("%s: a title turns the direction of what follows", address)
		}
	}
	tab.Go("/sessions/" + page.Sessions[0].ID.String())
	tab.Click(`[data-testid="export"] summary`)
	tab.Check("session export")
	evil.mu.Lock()
	defer evil.mu.Unlock()
	if len(evil.asked) > 0 {
		t.Errorf("the browser asked elsewhere for %q", evil.asked)
	}
}
