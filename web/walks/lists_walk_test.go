package walks_test

import (
	"testing"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The list of requests is ordered by a click on a column's head, narrowed by a click on a cell, which
// a click on its chip takes off again.
func TestListIsOrderedAndNarrowedByClicks(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	dbtest.FillExchanges(t, product.Database.Owner(t), person.Workspace.ID, 600)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	head := func(label, state string) string {
		return `[...document.querySelectorAll('table.requests th')].some(head => head.textContent.trim() === '` + label + `' && head.ariaSort === '` + state + `')`
	}
	const rows = `document.querySelectorAll('table.requests tbody tr').length`

	tab.Go("/requests")
	tab.Until(head("Time", "descending") + ` && ` + head("Cost", "none"))
	tab.Click(`th a[title="Sort by Cost"]`)
	tab.Until(head("Cost", "descending") + ` && location.search === '?sort=cost'`)
	tab.Click(`th a[title="Sort by Cost"]`)
	tab.Until(head("Cost", "ascending") + ` && location.search === '?dir=asc&sort=cost'`)
	tab.Check("requests by cost")

	tab.Click(`table.requests tbody a[title="Only model-2"]`)
	tab.Until(`document.querySelector('.chip-text')?.textContent === 'model:model-2' && ` + head("Cost", "ascending"))
	if others := browsertest.Evaluate[int](tab, `[...document.querySelectorAll('table.requests tbody a[title^="Only model-"]')].filter(cell => cell.title !== 'Only model-2').length`); others != 0 {
		t.Errorf("%d rows are of other models", others)
	}
	tab.Click(`.chip a[aria-label="Remove the filter model"]`)
	tab.Until(`document.querySelector('.chip') === null && ` + rows + ` === 50`)
}
