package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/web/webtest"
)

// zoned are the pages that show times, each of them with some.
func zoned(session string) []string {
	return []string{
		"/overview", "/spend", "/sessions", session, "/requests", "/keys", "/providers", "/members", "/audit", "/settings", "/billing", "/account", "/operator", "/jump?q=laptop",
	}
}

// timesOf returns the zones in which a page says its times, and how many times it has.
func timesOf(page webtest.Page) (zones map[string]bool, count int) {
	zones = map[string]bool{}
	name := regexp.MustCompile(`^\d{1,2} \w{3} \d{4}, \d\d:\d\d:\d\d (\S+)$`)
	page.Find("main time").Each(func(_ int, at *goquery.Selection) {
		title := name.FindStringSubmatch(at.AttrOr("title", ""))
		if title == nil {
			title = []string{"", "no exact time: " + at.Text()}
		}
		zones[title[1]] = true
		count++
	})
	return zones, count
}

// Every page is in one time zone: the reader's, else the workspace's, else UTC.
func TestEveryPageIsInTheReadersTimeZone(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the webhook answer 409?"}]}`, claudeCode)
	session := person.Get("/sessions?show=single").Find(`[data-testid="sessions"] tbody a`).AttrOr("href", "")
	check := func(zone string, header ...string) {
		t.Helper()
		total := 0
		for _, path := range zoned(session) {
			page := person.Get(path, header...)
			zones, count := timesOf(page)
			if total += count; page.Status != http.StatusOK || len(zones) > 1 || count > 0 && !zones[zone] {
				t.Errorf("%s: status %d, its %d times are in %v, want %s", path, page.Status, count, zones, zone)
			}
		}
		if total < 12 {
			t.Errorf("%d times on all pages", total)
		}
	}
	check("UTC")
	if page := person.Post("/settings", "time_zone", "Asia/Tokyo", "managers_read", "all", "members_read", "own", "viewers_read", "none"); page.Status != http.StatusOK {
		t.Fatalf("status %d", page.Status)
	}
	check("JST")
	check("IST", "Cookie", "zone=Asia%2FKolkata")

	// What names its zone in words says the same one.
	for path, where := range map[string]string{"/overview": "#card-tokens .sub", "/requests": "form[role=search]", "/audit": ".foot", "/billing": ".head"} {
		if said := person.Get(path, "Cookie", "zone=Asia%2FKolkata").Text(where); !strings.Contains(said, "Asia/Kolkata") {
			t.Errorf("%s says %q", path, said)
		}
	}
	if table := person.Get(session+"?table=1", "Cookie", "zone=Asia%2FKolkata").Text(`[data-testid="requests"] th`); !strings.Contains(table, "At (Asia/Kolkata)") {
		t.Errorf("the table of a session says %q", table)
	}
}

// Files are in UTC, for every reader.
func TestFilesAreInUTC(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the webhook answer 409?"}]}`, claudeCode)
	moment := regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	session := person.Get("/sessions?show=single").Find(`[data-testid="sessions"] tbody a`).AttrOr("href", "")
	for _, path := range []string{"/overview/data.csv?part=tokens", "/keys/csv", "/members/csv", "/sessions/csv?show=single", session + "/requests.csv"} {
		page := person.Get(path, "Cookie", "zone=Asia%2FKolkata")
		found := moment.FindAllStringSubmatch(page.HTML, -1)
		if page.Status != http.StatusOK || len(found) == 0 {
			t.Errorf("%s: status %d, %d times", path, page.Status, len(found))
		}
		for _, at := range found {
			if at[1] != "Z" {
				t.Errorf("%s: %s is not in UTC", path, at[0])
			}
			if _, err := time.Parse(time.RFC3339Nano, at[0]); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
