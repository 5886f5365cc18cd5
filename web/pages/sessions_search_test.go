package pages_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// ask sends one request with a question through the real proxy.
func ask(person *webtest.Person, secret, question string) {
	person.TalkOnce(secret, 100_000, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"`+question+`"}]}`, "claude-cli/2.0")
}

// indexed indexes what is archived.
func indexed(t *testing.T, person *webtest.Person) {
	t.Helper()
	if n, err := person.Index.IndexPending(t.Context(), 100); err != nil || n == 0 {
		t.Fatalf("%d indexed: %v", n, err)
	}
}

// Who may not read a session does not find it by its text either, and nothing that
// they may not read takes the place of what they may.
func TestSearchOfTheArchiveFindsOnlyWhatTheReaderMayRead(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner, stranger := product.SignUp(t, "northbeam"), product.SignUp(t, "zebra")
	double := webtest.Provider(t, 100_000)
	secret := owner.Connect(double, "laptop")
	member := owner.Colleague(tenants.Regular)
	own, ownSecret := newKey(t, member, "own")
	ask(owner, secret, "Begin. The marmots whistle at dawn near the quarry")
	ask(member, ownSecret, "Start. Count the marmots below the glacier")
	ask(stranger, stranger.Connect(double, "laptop"), "Go. The marmots of another valley")
	ask(owner, secret, strings.Repeat("A title ends before what is said. ", 8)+"The otters swim in the bay")
	indexed(t, owner)

	for name, try := range map[string]struct {
		who  *webtest.Person
		path string
		want []string
		not  []string
	}{
		"owner":              {owner, "/sessions?q=marmots", []string{"near the quarry", "below the glacier"}, []string{"another valley"}},
		"owner, one key":     {owner, "/sessions?q=marmots&key=" + own.String(), []string{"below the glacier"}, []string{"quarry"}},
		"owner, another":     {owner, "/sessions?q=marmots&client=none", nil, []string{"quarry", "glacier"}},
		"member":             {member, "/sessions?q=marmots", []string{"below the glacier"}, []string{"quarry", "another valley"}},
		"member, other key":  {member, "/sessions?q=marmots&key=" + uuid.NewString(), nil, []string{"quarry", "glacier"}},
		"text, but no title": {owner, "/sessions?q=otters", []string{"swim in the bay"}, nil},
		"viewer":             {owner.Colleague(tenants.Viewer), "/sessions?q=marmots", nil, []string{"quarry", "glacier"}},
		"another workspace":  {stranger, "/sessions?q=marmots", []string{"another valley"}, []string{"quarry", "glacier"}}, // S3
		"two letters":        {owner, "/sessions?q=ma", nil, nil},
		"what nobody wrote":  {owner, "/sessions?q=xylophones", nil, []string{"quarry"}},
		"range that has all": {owner, "/sessions?q=marmots&range=1h", []string{"near the quarry"}, nil},
	} {
		page := try.who.Get(try.path)
		word, _, _ := strings.Cut(strings.TrimPrefix(try.path, "/sessions?q="), "&")
		hits := page.TestID("hits")
		if page.Status != http.StatusOK || len(try.want) == 0 && hits != "" {
			t.Errorf("%s: status %d, found %q", name, page.Status, hits)
		}
		if isEmpty := strings.Contains(page.Text("#list"), "No matches"); isEmpty && hits != "" {
			t.Errorf("%s: nothing matches above %q", name, hits)
		}
		for _, want := range try.want {
			if !strings.Contains(hits, want) || !strings.Contains(hits, "Matches "+strings.TrimSuffix(word, "s")) {
				t.Errorf("%s does not find %q: %q", name, want, hits)
			}
		}
		for _, not := range try.not {
			if strings.Contains(page.Text("#list"), not) {
				t.Errorf("%s sees %q: %q", name, not, page.Text("#list"))
			}
		}
	}
	for query, want := range map[string]string{"otters": "1 session, 1 message ", "quarry": "1 session, 1 message By title or id: 1"} {
		page := owner.Get("/sessions?show=single&q=" + query)
		if said := page.TestID("matches") + " " + page.TestID("by-title"); said != want {
			t.Errorf("%s: it says %q, want %q", query, said, want)
		}
	}
	link := owner.Get("/sessions?q=glacier").Find(`[data-testid="hits"] a`).AttrOr("href", "")
	if page := owner.Get(link); page.Status != http.StatusOK || !strings.Contains(page.Text("main"), "Count the marmots below the glacier") {
		t.Errorf("%s answers %d and does not show what was found", link, page.Status)
	}
}

// searcher is an archive's search that does not work.
type searcher func(ctx context.Context) error

// Search implements archive.Searcher.
func (s searcher) Search(ctx context.Context, _ tenants.WorkspaceID, _ archive.Query) ([]archive.Hit, error) {
	return nil, s(ctx)
}

// Messages implements archive.Searcher.
func (s searcher) Messages(ctx context.Context, _ tenants.WorkspaceID, _ *archive.Hit) ([]conversation.Message, error) {
	return nil, s(ctx)
}

func TestListStandsWithoutTheSearchOfTheArchive(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused to 10.0.0.7")
	for name, try := range map[string]struct {
		search searcher
		says   string
	}{
		"down": {func(context.Context) error { return down }, "The archive could not be searched"},
		"slow": {func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, "took longer than two seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person := webtest.Start(t, func(_ *webtest.Product, deps *web.Deps) { deps.Conversations.Searcher = try.search }).SignUp(t, "northbeam")
			keep(t, person, kept{title: "Port the importer"})
			page := person.Get("/sessions?q=importer")
			if page.Status != http.StatusOK || titles(page) != "Port the importer" || !strings.Contains(page.Text("#list .callout"), try.says) || strings.Contains(page.HTML, "10.0.0.7") {
				t.Errorf("status %d: %q", page.Status, page.Text("main"))
			}
			if quiet := person.Get("/sessions"); quiet.Has(".callout") {
				t.Errorf("without a search the page says %q", quiet.Text(".callout"))
			}
		})
	}
}
