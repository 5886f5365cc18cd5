package pages_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/manage"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// api serves the JSON API of a product beside its dashboard.
func api(t *testing.T, product *webtest.Product) string {
	t.Helper()
	e := echo.New()
	manage.Register(e.Group("/api/v1"), manage.Config{
		Codecs: formats.ByFormat(),
		People: manage.People{Identity: product.People, Cookies: tenants.NewCookies(webtest.PublicURL), Keys: product.Keys, Operators: product.DB.Operators},
		Conversations: manage.Conversations{
			Sessions: product.Sessions.Browser(), Archive: product.Archive, Stars: product.DB.Stars, Comments: product.DB.Comments,
		},
		Traffic:        manage.Traffic{Exchanges: product.DB.Exchanges, Usage: product.DB.Usage},
		Administration: manage.Administration{Data: product.DB.Data, Audit: product.DB.Audit},
		Now:            time.Now,
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL + "/api/v1/sessions?"
}

// inAPI returns the ids that the API lists, or the field and the message of its problem.
func inAPI(t *testing.T, person *webtest.Person, address string) (ids, problem string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
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
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		Field  string `json:"field"`
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %s", address, body)
	}
	all := make([]string, len(answer.Data))
	for i, one := range answer.Data {
		all[i] = one.ID
	}
	if response.StatusCode != http.StatusOK {
		problem = answer.Field + " " + answer.Detail
	}
	return strings.Join(all, ", "), problem
}

// The page and the API narrow the list by the same names to the same sessions, and
// refuse the same with the same words.
func TestPageAndAPIListTheSameForEveryFilter(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	laptop, _ := newKey(t, person, "laptop")
	runner, _ := newKey(t, person, "runner")
	ids := keep(t, person,
		kept{title: "Fix the parser", key: laptop, client: "codex", model: "gpt-5", ago: time.Minute},
		kept{title: "Fix the mailer", key: runner, client: "codex", model: "gpt-5", ago: 2 * time.Minute, net: -7},
		kept{title: "Write docs", key: laptop, client: "claude-code", model: "claude-sonnet-4-5", ago: 3 * time.Minute, status: http.StatusTooManyRequests})
	change(t, person, "UPDATE sessions SET epochs = 2 WHERE id = $1", ids[0])
	change(t, person, `INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, text, tokens)
		SELECT workspace_id, id, 1, 0, '', 'compaction-bridge', '', 1 FROM lanes WHERE session_id = $1`, ids[2])
	sessions := api(t, product)
	viewer := person.Colleague(tenants.Viewer)

	for asked, want := range map[string]int{
		"": 3, "q=fix+the": 2, "q=arse": 1, "q=" + ids[1].String()[:23]: 1, "client=codex": 2, "model=claude-sonnet-4-5": 1,
		"key=" + laptop.String(): 2, "key=" + uuid.NewString(): 0, "show=compressed": 1, "show=bridged": 1, "show=problems": 2,
		"show=problems&key=" + laptop.String(): 1, "q=fix&client=codex&model=gpt-5&show=problems&key=" + runner.String(): 1,
		"from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00Z": 0, "from=2020-01-01T00:00:00Z&to=2999-01-01T00:00:00Z": 3,
	} {
		for _, who := range []*webtest.Person{person, viewer} {
			page := who.Get("/sessions?" + asked)
			listed := page.Find(`[data-testid="sessions"] a[data-row]`).Map(func(_ int, link *goquery.Selection) string { return path.Base(link.AttrOr("href", "")) })
			got, problem := inAPI(t, who, sessions+asked)
			if problem != "" || got != strings.Join(listed, ", ") || who == person && len(listed) != want {
				t.Errorf("%s: the page lists %v, the API %s %s, want %d", asked, listed, got, problem, want)
			}
		}
	}
	for _, asked := range []string{"key=laptop", "show=all", "key=x&show=compressed"} {
		page := person.Get("/sessions?" + asked)
		_, problem := inAPI(t, person, sessions+asked)
		said := strings.TrimSuffix(page.Text(`#list [data-testid="empty"] p`), ".")
		if page.Status != http.StatusUnprocessableEntity || problem == "" || !strings.EqualFold(said, problem) || page.Has(`[data-testid="sessions"]`) {
			t.Errorf("%s: the page answers %d %q, the API %q", asked, page.Status, said, problem)
		}
		if csv := person.Get("/sessions/csv?" + asked); csv.Status == http.StatusOK {
			t.Errorf("%s is downloaded", url.QueryEscape(asked))
		}
	}
}
