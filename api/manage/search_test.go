package manage_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// found is the answer of a search.
type found struct {
	Data []struct {
		Session, Lane uuid.UUID
		From, To      int
		Score         float64
		Tools, Paths  []string
		Snippet       string
	}
	Next *string `json:"next_cursor"`
}

// S6: a search finds the messages of its own workspace, and no one else's.
func TestSearchFindsWhatTheWorkspaceHasArchived(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "zebra")

	var hits found
	a.send(t, http.MethodGet, "/search?q=question+2+of+ant", "").decode(t, &hits)
	if len(hits.Data) == 0 || hits.Next != nil {
		t.Fatalf("%+v", hits)
	}
	best := hits.Data[0]
	if best.Session != a.session || best.Lane != a.lane || best.From != 4 || best.To != 5 || best.Score <= 0.5 || best.Score > 1 ||
		!strings.Contains(best.Snippet, "question 2 of ant") || best.Tools == nil || best.Paths == nil {
		t.Errorf("best hit: %+v", best)
	}
	for _, query := range []string{"zebra", "answer", "question"} {
		var hits found
		a.send(t, http.MethodGet, "/search?limit=100&q="+query, "").decode(t, &hits)
		for _, hit := range hits.Data {
			if hit.Session != a.session || strings.Contains(hit.Snippet, "zebra") {
				t.Errorf("%s finds %+v", query, hit)
			}
		}
	}
	a.send(t, http.MethodGet, "/search?q=question&session="+b.session.String(), "").want(t, http.StatusNotFound)

	var one found
	a.send(t, http.MethodGet, "/search?q=question&limit=1&session="+a.session.String(), "").decode(t, &one)
	if len(one.Data) != 1 {
		t.Errorf("limit 1 gives %d hits", len(one.Data))
	}
	var none found
	a.send(t, http.MethodGet, "/search?q=question&from=2099-01-01", "").decode(t, &none)
	if none.Data == nil || len(none.Data) != 0 {
		t.Errorf("from the future: %+v", none)
	}
	a.send(t, http.MethodDelete, "/sessions/"+a.session.String(), "").want(t, http.StatusNoContent)
	a.send(t, http.MethodGet, "/search?q=question", "").decode(t, &none)
	if len(none.Data) != 0 {
		t.Errorf("a deleted session is found: %+v", none)
	}
}

func TestSearchSaysWhatIsWrongWithAQuery(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	for query, field := range map[string]string{
		"": "q", "q=": "q", "q=" + strings.Repeat("x", 5000): "q", "q=a&session=no-id": "session", "q=a&limit=0": "limit", "q=a&limit=101": "limit",
		"q=a&limit=x": "limit", "q=a&from=yesterday": "from", "q=a&from=2026-02-01&to=2026-01-01": "to", "q=a&color=red": "color",
		"path=" + strings.Repeat("x", 2000): "path", "q=a&tool=" + strings.Repeat("x", 200): "tool",
	} {
		answer := a.send(t, http.MethodGet, "/search?"+query, "")
		answer.want(t, http.StatusUnprocessableEntity)
		var problem struct{ Field string }
		answer.decode(t, &problem)
		if problem.Field != field {
			t.Errorf("%.40s: the problem names %q, want %q", query, problem.Field, field)
		}
	}
	for _, odd := range []string{"\x00", "!", "'; DROP TABLE lanes; --", "{1,2}", "漢", strings.Repeat("a/", 300), "\xff\xfe"} {
		a.send(t, http.MethodGet, "/search?q="+url.QueryEscape(odd), "").want(t, http.StatusOK)
	}
}
