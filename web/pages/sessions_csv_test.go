package pages_test

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// lines reads a file of sessions.
func lines(t *testing.T, page webtest.Page) [][]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(page.HTML)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestFileHoldsAllSessionsThatMatchAndNotJustAPage(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	var many []kept
	for i := range 230 {
		many = append(many, kept{title: fmt.Sprintf("session %03d", i), client: []string{"codex", "curl"}[i%2], ago: time.Duration(i) * time.Minute, net: -i})
	}
	ids := keep(t, person, many...)

	page := person.Get("/sessions/csv")
	if kind, as := page.Header.Get("Content-Type"), page.Header.Get("Content-Disposition"); kind != "text/csv; charset=utf-8" ||
		as != `attachment; filename="palimpsest-sessions.csv"` {
		t.Errorf("it is %s, %s", kind, as)
	}
	records := lines(t, page)
	if len(records) != 231 || records[0][0] != "id" || records[0][11] != "net_micro_usd" {
		t.Fatalf("%d lines under %v", len(records), records[0])
	}
	for i, record := range records[1:] {
		if record[0] != ids[i].String() || record[1] != many[i].title || record[7] != "1" || record[9] != "1000" || record[10] != "600" || record[11] != strconv.Itoa(-i) {
			t.Fatalf("line %d is %v", i+1, record)
		}
		if _, err := time.Parse(time.RFC3339, record[6]); err != nil || !strings.HasSuffix(record[6], "Z") {
			t.Fatalf("line %d was active at %s", i+1, record[6])
		}
	}
	link := person.Get("/sessions?client=codex&range=1h&cursor=").Find(`a[download]`).AttrOr("href", "")
	if link != "/sessions/csv?client=codex&range=1h" {
		t.Errorf("the page links to %s", link)
	}
	if narrowed := lines(t, person.Get(link)); len(narrowed) != 31 || narrowed[1][2] != "codex" {
		t.Errorf("%d lines of one client in the last hour", len(narrowed))
	}
}

// A spreadsheet must not compute what a stranger wrote.
func TestFileHoldsNoFormulas(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	hostile := []string{`=HYPERLINK("https://evil.example","x")`, "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1"}
	var all []kept
	for i, text := range hostile {
		all = append(all, kept{title: text, client: text, model: text, ago: time.Duration(i) * time.Minute})
	}
	keep(t, person, append(all, kept{title: "a - b = c, \"quoted\"", ago: time.Hour})...)
	records := lines(t, person.Get("/sessions/csv"))
	if len(records) != len(hostile)+2 {
		t.Fatalf("%d lines", len(records))
	}
	for _, record := range records[1:] {
		for column, text := range record[:4] {
			if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r\n") {
				t.Errorf("column %d begins as a formula does: %q", column, text)
			}
		}
	}
	if plain := records[len(records)-1][1]; plain != `a - b = c, "quoted"` {
		t.Errorf("a plain title became %q", plain)
	}
	if got := records[1][1]; got != "'"+hostile[0] {
		t.Errorf("a formula became %q", got)
	}
}

// Titles are what was said: the file has those that the list shows, and no others.
func TestFileHoldsTitlesOnlyForWhoMayReadThem(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	member := person.Colleague(tenants.Regular)
	own, _ := newKey(t, member, "own")
	keep(t, person, kept{title: "of the member", key: own}, kept{title: "of the owner", ago: time.Minute})
	holds := func(who *webtest.Person, want ...string) {
		t.Helper()
		var titles []string
		for _, record := range lines(t, who.Get("/sessions/csv"))[1:] {
			titles = append(titles, record[1])
		}
		if !slices.Equal(titles, want) {
			t.Errorf("the file has %q, want %q", titles, want)
		}
	}
	holds(person, "of the member", "of the owner")
	holds(member, "of the member")
	holds(person.Colleague(tenants.Viewer))
	holds(blind(person), "", "")
	// Nor does it find them by words that they may not read.
	if found := lines(t, member.Get("/sessions/csv?q=owner")); len(found) != 1 {
		t.Errorf("the member finds %v", found)
	}
}
