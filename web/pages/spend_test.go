package pages_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// spent is a row of spend as the page, the file and the API have it. Money is in dollars with six digits.
type spent struct{ Title, Cost, Saved, Kept, Requests, Failed string }

// march is a range of time that the requests of spendTraffic are in, and others are not.
func march() string {
	return "&from=" + url.QueryEscape("2026-03-01T00:00:00Z") + "&to=" + url.QueryEscape("2026-04-01T00:00:00Z")
}

// spendTraffic records requests of a person and a colleague: of two models, two clients, two projects and without one.
func spendTraffic(t *testing.T, person, colleague *webtest.Person) (own, theirs tenants.APIKey) {
	t.Helper()
	person.Post("/keys", "name", "laptop", "expiry", "30")
	colleague.Post("/keys", "name", "ci", "expiry", "30")
	keys, err := person.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), person.Workspace.ID)
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	own, theirs = keys[1], keys[0]
	at := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	for i, key := range []tenants.APIKey{own, theirs, own, theirs, own} {
		overviewRecord(t, person, exchange(at.Add(time.Duration(i)*26*time.Hour), func(e *tenants.Exchange) {
			e.Request.APIKey, e.Request.Model, e.Request.Client = key.ID, []string{"claude-opus-4-5", "gpt-5.6"}[i%2], []string{"codex", "claude-code", "codex"}[i%3]
			e.Cost.CostMicroUSD, e.Cost.NetMicroUSD = int64(1_234_567*(i+1)), int64(400_003-i*150_001)
			e.Request.Tags = []tenants.Tags{{"project": "shop", "team": "web"}, {"project": "search"}, {"project": "shop"}, {}, {"team": "=cmd"}}[i]
			e.Prompt.Reach = i == 1
			if i == 3 {
				e.Answer.Status = http.StatusBadGateway
			}
		}))
	}
	return own, theirs
}

// dollars reads what the hover of an amount says: "$1.234567", "−$0.420000", "" for nothing.
func dollars(cell *goquery.Selection) string {
	exact := strings.NewReplacer("$", "", "−", "-").Replace(cell.Find(".num").AttrOr("title", "$0.000000"))
	return exact
}

func pageRows(page webtest.Page, rows string) (shown []spent) {
	none := func(text string) string {
		if text = strings.TrimSpace(text); text == "–" {
			return "0"
		}
		return text
	}
	page.Find(rows).Each(func(_ int, row *goquery.Selection) {
		cell := func(i int) *goquery.Selection { return row.Find("td").Eq(i) }
		shown = append(shown, spent{
			strings.TrimSpace(cell(0).Text()), dollars(cell(1)), dollars(cell(3)), none(cell(4).Text()), none(cell(5).Text()), none(cell(6).Text()),
		})
	})
	return shown
}

// usageIn returns the rows of GET /usage by their labels.
func usageIn(t *testing.T, person *webtest.Person, base, query string) map[string]spent {
	t.Helper()
	var answer struct {
		Data []struct {
			Label, Name                       string
			Cost                              int64 `json:"cost_micro_usd"`
			Net                               int64 `json:"net_micro_usd"`
			Reach, Requests, Failures, Epochs int64
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(base, "sessions?")+"usage?"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range person.Cookies() {
		request.AddCookie(cookie)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", query, response.StatusCode, err)
	}
	rows := map[string]spent{}
	for _, row := range answer.Data {
		usd := func(micro int64) string { return fmt.Sprintf("%.6f", float64(micro)/1e6) }
		rows[row.Label] = spent{"", usd(row.Cost), usd(row.Net), strconv.FormatInt(row.Reach, 10), strconv.FormatInt(row.Requests, 10), strconv.FormatInt(row.Failures, 10)}
	}
	return rows
}

// Every figure of the page is that of its file and of the API, to the last digit, by every dimension; so is the
// statement of the month.
func TestSpendIsTheSameOnThePageInTheFileAndInTheAPI(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	spendTraffic(t, person, person.Colleague(tenants.Regular))
	base := api(t, product)
	statement := person.Get("/spend/statement?month=2026-03")
	for by, want := range map[string]int{"member": 2, "project": 3, "model": 2, "client": 2, "key": 2, "tag:team": 3} {
		page := person.Get("/spend?by=" + by + march())
		link := page.Find(`#spend a[download]`).AttrOr("href", "")
		file, inAPI, shown := lines(t, person.Get(link)), usageIn(t, person, base, "by="+by+march()), pageRows(page, `[data-testid="spend"] tbody tr`)
		if len(shown) != want || len(file) != want+1 || len(inAPI) != want {
			t.Fatalf("by %s the page has %d rows, the file %d and the API %d, want %d", by, len(shown), len(file)-1, len(inAPI), want)
		}
		for i, row := range shown {
			line := file[i+1]
			if filed := (spent{strings.TrimPrefix(line[0], "'"), line[2], line[4], line[5], line[6], line[7]}); filed != row {
				t.Errorf("by %s the page has %+v and the file %+v", by, row, filed)
			}
			answered := inAPI[strings.TrimPrefix(line[1], "'")]
			if answered.Title = row.Title; answered != row {
				t.Errorf("by %s the page has %+v and the API %+v", by, row, answered)
			}
		}
		all := spent{"All", "18.518505", "0.500005", "1", "5", "1"}
		if total := pageRows(page, `[data-testid="spend"] tfoot tr`); len(total) != 1 || total[0] != all {
			t.Errorf("by %s all is %+v, want %+v", by, total, all)
		}
		if rows := `[data-testid="statement-` + by + `"] `; statement.Has(rows + "tr") {
			if printed := pageRows(statement, rows+"tbody tr"); fmt.Sprint(printed) != fmt.Sprint(shown) {
				t.Errorf("by %s the statement has %+v, the page %+v", by, printed, shown)
			}
		} else if by != "client" && by != "tag:team" {
			t.Errorf("the statement has no table by %s", by)
		}
	}
}

// S3: a member and a viewer see what they spent themselves, whatever they ask for; owner, admin and billing see all.
func TestSpendIsSeenByThoseWhomItConcerns(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	colleague := person.Colleague(tenants.Regular)
	spendTraffic(t, person, colleague)
	base, asked := api(t, product), "by=member&member="+person.User.ID.String()+march()
	for _, by := range []string{"member", "project", "model", "client", "key", "tag:team"} {
		page := colleague.Get("/spend?by=" + by + march())
		if total := pageRows(page, `[data-testid="spend"] tfoot tr`); len(total) != 1 || total[0].Cost != "7.407402" {
			t.Errorf("by %s a member sees %+v", by, total)
		}
		if strings.Contains(page.Text("main"), person.Email) || strings.Contains(page.Text("main"), "laptop") {
			t.Errorf("by %s a member reads of another", by)
		}
	}
	if rows := usageIn(t, colleague, base, asked); len(rows) != 1 || rows[colleague.User.ID.String()].Cost != "7.407402" {
		t.Errorf("the API tells a member %+v", rows)
	}
	for by, want := range map[string]map[string]string{
		"tag:team": {"": "7.407402"}, "model": {"gpt-5.6": "7.407402"},
		"client": {"claude-code": "2.469134", "codex": "4.938268"}, "day": {"2026-03-10": "2.469134", "2026-03-12": "4.938268"},
	} {
		told := map[string]string{}
		for label, row := range usageIn(t, colleague, base, "by="+by+march()) {
			told[label] = row.Cost
		}
		if !maps.Equal(told, want) {
			t.Errorf("by %s the API tells a member %v, want %v", by, told, want)
		}
	}
	if text := colleague.Get("/spend/statement?month=2026-03").Text("main"); strings.Contains(text, person.Email) || !strings.Contains(text, "Spend of "+colleague.Email+".") {
		t.Errorf("a member's statement says %q", text)
	}
	for role, all := range map[tenants.Role]bool{tenants.Admin: true, tenants.Billing: true, tenants.Viewer: false} {
		page := person.Colleague(role).Get("/spend?by=member" + march())
		if page.Has(`[data-testid="spend"]`) != all {
			t.Errorf("%s sees what others spent: %t", role, !all)
		}
	}
}

// A row leads to its sessions, and shows its budget with what of it is spent this month.
func TestSpendLeadsToSessionsAndShowsBudgets(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	own, _ := spendTraffic(t, person, person.Colleague(tenants.Regular))
	overviewRecord(t, person, exchange(time.Now(), func(e *tenants.Exchange) {
		e.Request.APIKey, e.Cost.CostMicroUSD, e.Request.Tags = own.ID, 2_500_000, tenants.Tags{"project": "shop"}
	}))
	person.Post("/settings/budgets", "whose", "member:"+person.User.ID.String(), "budget_month_usd", "10")
	person.Post("/settings/budgets", "whose", "project", "project", "shop", "budget_month_usd", "5")
	person.Post("/settings/budgets", "whose", "workspace", "budget_day_usd", "3")
	for by, want := range map[string]struct{ budget, links string }{
		"member":  {"$2.50 of $10.00", "/sessions?from=2026-03-01T00%3A00%3A00Z&member=" + person.User.ID.String() + "&to=2026-04-01T00%3A00%3A00Z"},
		"project": {"$2.50 of $5.00", "/sessions?from=2026-03-01T00%3A00%3A00Z&project=shop&to=2026-04-01T00%3A00%3A00Z"},
	} {
		page := person.Get("/spend?by=" + by + march())
		row := page.Find(`[data-testid="spend"] tbody tr`).First()
		if text := strings.TrimSpace(row.Find(".spend-budget > span").First().Text()); text != want.budget {
			t.Errorf("by %s the budget is %q, want %q", by, text, want.budget)
		}
		if link := row.Find("td a.ttl").AttrOr("href", ""); link != want.links || person.Get(link).Status != http.StatusOK {
			t.Errorf("by %s the row leads to %s", by, link)
		}
		if total := page.Find(`[data-testid="spend"] tfoot .spend-budget`).Text(); !strings.Contains(total, "$3.00 a day") {
			t.Errorf("by %s the workspace's budget is %q", by, total)
		}
	}
	requests := person.Get("/requests?tag=project%3Dshop").Find(`[data-testid="page-cost"]`)
	if requests.Text() != "$7.44" || requests.AttrOr("title", "") != "$7.438268" { // 1.234567 + 3.703701 + 2.500000
		t.Errorf("the list says %q", requests.Text())
	}
	if page := person.Get("/spend/statement?month=2026-13"); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Text("main"), "Write the month as 2026-01") {
		t.Errorf("an invalid month: status %d", page.Status)
	}
	if page := person.Get("/spend?from=2026-05-01&to=2026-04-01"); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("an invalid range: status %d", page.Status)
	}
}

// What a session cost is what its requests cost, in the list, on its page and in the file.
func TestSessionCostsWhatItsRequestsDo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	talk := sessiontest.Generate(7, sessiontest.Options{Format: conversation.Anthropic, Turns: 3, TargetTokens: 3_000})
	person.Talk(person.Connect(webtest.Provider(t, 200_000), "laptop"), 200_000, talk, claudeCode)
	var cost, requests int64
	session := person.Newest().ID
	if err := person.Database.Owner(t).QueryRow(t.Context(), "SELECT sum(cost_microusd)::bigint, count(*) FROM exchanges WHERE session_id = $1", session).Scan(&cost, &requests); err != nil || cost == 0 || requests < 2 {
		t.Fatalf("%d requests cost %d, %v", requests, cost, err)
	}
	exact := fmt.Sprintf("$%d.%06d", cost/1_000_000, cost%1_000_000)
	for path, cell := range map[string]string{"/sessions": `[data-testid="sessions"] .num[title="` + exact + `"]`, "/sessions/" + session.String(): `[data-testid="cost"] .num[title="` + exact + `"]`} {
		if !person.Get(path).Has(cell) {
			t.Errorf("%s does not say that it cost %s", path, exact)
		}
	}
	if file := lines(t, person.Get("/sessions/csv")); len(file) != 2 || file[1][slices.Index(file[0], "cost_micro_usd")] != strconv.FormatInt(cost, 10) {
		t.Errorf("the file says %v, want %d", file, cost)
	}
}
