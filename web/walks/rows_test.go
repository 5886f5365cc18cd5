package walks_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The list of requests without a mouse: j and k walk, o and Enter open, Escape closes to
// the same page, and a key that is typed into a field is text.
func TestRequestsAreWalkedWithTheKeyboard(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	dbtest.FillExchanges(t, product.Database.Owner(t), person.Workspace.ID, 3)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	focused := func(n string) string {
		return `document.activeElement === document.querySelectorAll('[data-rows] [data-row]')[` + n + `]`
	}

	tab.Go("/requests")
	for _, step := range []struct{ key, then string }{
		{"j", focused("0")}, {"j", focused("1")}, {"j", focused("2")}, {"j", focused("2")}, {"k", focused("1")}, {"k", focused("0")}, {"k", focused("0")},
		{"j", focused("1")}, {"o", opened}, {"\x1b", `location.search === '' && document.querySelector('dialog[open]') === null && document.activeElement.matches('h1')`},
		{"j", focused("0")}, {"\r", opened},
	} {
		tab.Do(chromedp.KeyEvent(step.key))
		t.Logf("%q", step.key)
		tab.Until(step.then)
	}
	tab.Check("opened with the keyboard")
	tab.Go("/requests")
	tab.Type("#field-id", "jko")
	tab.Until(`document.activeElement.value === 'jko'`)
}

// Sessions are ticked one by one or all of the page at once, and the foot says how many.
func TestSessionsAreTickedAllAtOnce(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, window), "laptop")
	for _, said := range []string{"one", "two"} {
		person.TalkOnce(secret, window, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"`+said+`"}]}`, claudeCode)
	}
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	said := func(words, box string) string {
		return `document.querySelector('[data-chosen]').textContent === '` + words + `' && document.querySelector('[data-choose-all]').` + box
	}

	tab.Go("/sessions?show=single")
	tab.Until(said("", "checked === false"))
	tab.Click(`[data-choose-all]`)
	tab.Until(said("2 selected", "checked"))
	tab.Check("sessions selected")
	tab.Click(`tbody input[name="id"]`)
	tab.Until(said("1 selected", "indeterminate"))
	if sent := browsertest.Evaluate[int](tab, `new FormData(document.querySelector('#chosen')).getAll('id').length`); sent != 1 {
		t.Errorf("%d sessions would be exported", sent)
	}
}
