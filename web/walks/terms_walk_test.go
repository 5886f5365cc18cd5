package walks_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The words that a person meets first are explained where they stand, with the names of the
// levels' colors and a way to the documentation.
func TestFirstWordsAreExplainedWhereTheyStand(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Talk(person.Connect(webtest.Provider(t, window), "laptop-mira"), window, webtest.LongTalk(), claudeCode)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "dark", Width: browsertest.Desktop, Cookies: person.Cookies()})
	paths := []string{"/overview", "/sessions", "/sessions/" + person.Newest().ID.String()}
	for number := range fulltest.Part(len(paths)) {
		path := paths[number]
		tab.Go(path)
		tab.Click(`[data-testid="terms"]`)
		tab.Until(`document.querySelector('[data-testid="terms-text"]').matches(':popover-open')`)
		text := tab.Text(`[data-testid="terms-text"]`)
		for _, word := range []string{"Compaction", "Thread", "L0", "L3", "One line for a block of turns."} {
			if !strings.Contains(text, word) {
				t.Errorf("%s: nothing is said of %s: %q", path, word, text)
			}
		}
		tab.CheckLooks("words explained on " + path)
		tab.Click(`[data-testid="terms-text"] a`)
		tab.Until(browsertest.At("/docs/compaction"))
	}
}
