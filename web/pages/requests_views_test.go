package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

func TestViewOfRequestsIsSavedOpenedAndDeleted(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, 8000), "laptop"), 8000, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"a question"}]}`, "curl/8")

	asked := person.Get(person.Get("/requests?status=5xx&tag=team%3Dsearch&open=x").Find(`[data-testid="views"]`).AttrOr("href", ""))
	action := asked.Find("#save-view").AttrOr("action", "")
	if words := asked.Text("#save-view"); !strings.Contains(words, "status: 5xx") || !strings.Contains(words, "tag: team=search") || strings.Contains(words, "open") {
		t.Fatalf("asked for %q", words)
	}
	long := strings.Repeat("a", 61)
	if refused := person.Post(action, "name", long); refused.Status != http.StatusUnprocessableEntity || refused.Find("#field-name").AttrOr("value", "") != long ||
		!strings.Contains(refused.TestID("error-name"), "it has 61") {
		t.Errorf("refused: %d, %q", refused.Status, refused.TestID("error-name"))
	}
	saved := person.Post(action, "name", "Failed")
	if saved.Path != "/requests?status=5xx&tag=team%3Dsearch&view=saved" || !strings.Contains(saved.TestID("view-done"), "View saved") {
		t.Fatalf("saved: %d, %s", saved.Status, saved.Path)
	}
	opened := person.Get(person.Get("/requests").Find("a.view").AttrOr("href", ""))
	if !opened.Has("a.view[aria-current]") || !strings.Contains(opened.Text(".chip"), "status:5xx") || !strings.Contains(opened.TestID("empty"), "Nothing matches") {
		t.Errorf("opened: %q", opened.Text("main"))
	}
	if deleted := person.Post(person.Get("/requests/views").Find(`form[action$="/delete"]`).AttrOr("action", "")); deleted.Path != "/requests?view=deleted" || deleted.Has("a.view") {
		t.Errorf("deleted: %d, %s", deleted.Status, deleted.Path)
	}
}

func TestViewOfRequestsWhoseFiltersAreGoneSaysSo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, 8000), "laptop"), 8000, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"a question"}]}`, "curl/8")
	for name, query := range map[string]string{"one": "status=9xx", "two": "from=yesterday", "three": "range=1y", "four": "color=red"} {
		if _, err := person.DB.Views.SaveView(t.Context(), person.Workspace.ID, person.User.ID, tenants.View{List: tenants.RequestViews, Name: name, Query: query}); err != nil {
			t.Fatal(err)
		}
	}
	page := person.Get("/requests")
	if page.Status != http.StatusOK || page.Find(".tabs .lost").Length() != 4 || page.TestID("requests") == "" {
		t.Errorf("%d: %q", page.Status, page.Text(".tabs"))
	}
	told := person.Get("/requests/views").TestID("saved-views")
	for _, want := range []string{"Status must be 2xx, 3xx, 4xx or 5xx.", "Range must have days", "Range must be one of those", "has not all of them any more"} {
		if !strings.Contains(told, want) {
			t.Errorf("it is not told %q: %s", want, told)
		}
	}
	wrong := person.Post("/requests/views?status=9xx", "name", "mine")
	if wrong.Status != http.StatusUnprocessableEntity || !strings.Contains(wrong.TestID("view-refused"), "Status must be") {
		t.Errorf("wrong filters: %d, %q", wrong.Status, wrong.TestID("view-refused"))
	}
}
