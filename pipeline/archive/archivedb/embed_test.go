package archivedb_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/tenants"
)

const (
	embeddingKey   = "sk-embeddings"
	embeddingModel = "text-embedding-3-small"
)

// provider embeds through the provider's double, for the workspaces that have set a
// model.
type provider struct {
	double *providerdouble.Double
	sender *upstream.Client

	mu     sync.Mutex
	url    string
	models map[tenants.WorkspaceID]string
	texts  []string // all that was sent
}

func newProvider(t *testing.T, on ...*fixture) *provider {
	t.Helper()
	double := providerdouble.NewHandler(providerdouble.Config{Key: embeddingKey})
	server := httptest.NewServer(double)
	t.Cleanup(server.Close)
	p := &provider{double: double, sender: upstream.New(true), url: server.URL, models: map[tenants.WorkspaceID]string{}}
	t.Cleanup(p.sender.Close)
	for _, f := range on {
		p.models[f.workspace] = embeddingModel
	}
	return p
}

// set changes what a workspace has set.
func (p *provider) set(f *fixture, model string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.models[f.workspace] = model
}

// point has the texts sent to another address.
func (p *provider) point(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.url = url
}

func (p *provider) EmbeddingModel(_ context.Context, workspace tenants.WorkspaceID) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.models[workspace], nil
}

func (p *provider) Embed(ctx context.Context, _ tenants.WorkspaceID, _ uuid.UUID, model string, texts []string) ([][]float32, error) {
	p.mu.Lock()
	url := p.url
	p.texts = append(p.texts, texts...)
	p.mu.Unlock()
	target := upstream.Target{Provider: tenants.ProviderOpenAI, BaseURL: url, Key: embeddingKey}
	embedded, err := upstream.Embed(ctx, p.sender, target, model, texts)
	return embedded.Vectors, err
}

func (p *provider) sent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.texts)
}

// broken is an address that refuses to embed.
func broken(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"down"}}`, http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// embedded indexes and embeds everything that waits.
func (f *fixture) embedded(t *testing.T, p *provider) *archivedb.Index {
	t.Helper()
	index, err := f.indexed(t).WithEmbeddings(p)
	if err != nil {
		t.Fatal(err)
	}
	archivedb.Wait(index, time.Minute)
	if _, err := index.EmbedPending(t.Context()); err != nil {
		t.Fatal(err)
	}
	return index
}

// answers returns the places of a query's hits.
func (f *fixture) answers(t *testing.T, index *archivedb.Index, text string) string {
	t.Helper()
	return span(f.search(t, index, archive.Query{Text: text}))
}

// paraphrase shares pieces of words with the fourth message of trip and no word.
const paraphrase = "authenticators, unauthenticated, preauthentication"

func trip() [][]byte {
	return [][]byte{
		say("user", "Book the blue ferry to Helgoland, please."),
		say("assistant", "The ferry leaves at nine."),
		say("user", "What broke yesterday?"),
		say("assistant", "Authentication: authenticating authenticated."),
		say("user", "Very good, paint it green."),
	}
}

func TestAParaphraseIsFoundOnlyWithEmbeddings(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(trip()...)...)
	p := newProvider(t, f)
	if got := f.answers(t, f.indexed(t), paraphrase); got != "" {
		t.Fatalf("the text alone finds %q: the test proves nothing", got)
	}
	index := f.embedded(t, p)
	hits := f.search(t, index, archive.Query{Text: paraphrase})
	if len(hits) == 0 || span(hits[:1]) != "3-4" || hits[0].Score < 0.2 || hits[0].Score > 1 || !strings.Contains(hits[0].Snippet, "authenticating") {
		t.Fatalf("with embeddings: %+v", hits)
	}
	for name, query := range map[string]archive.Query{
		"session": {Session: f.session}, "lane": {Lane: f.lane}, "lane before": {Lane: f.lane, Before: 4},
	} {
		query.Text = paraphrase
		if got := f.search(t, index, query); len(got) == 0 || span(got[:1]) != "3-4" {
			t.Errorf("%s: %s", name, span(got))
		}
	}
	for name, query := range map[string]archive.Query{
		"another session": {Session: uuid.New()}, "another lane": {Lane: uuid.New()}, "another key": {APIKey: uuid.New()},
		"another project": {Project: "bank"}, "another end user": {EndUser: new(string)},
		"lane before": {Lane: f.lane, Before: 3}, "a tool": {Tool: "Bash"},
	} {
		query.Text = paraphrase
		if got := span(f.search(t, index, query)); strings.Contains(got, "3-4") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestBothRankingsTogetherKeepTheirOrderAndTheBetterScore(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(trip()...)...)
	index := f.embedded(t, newProvider(t, f))
	const query = "which ferry to Helgoland"
	plain := f.search(t, f.index(), archive.Query{Text: query})
	first := f.search(t, index, archive.Query{Text: query})
	if span(first[:1]) != "0-1" || len(first) < len(plain) || first[0].Score < plain[0].Score || first[0].Score > 1 {
		t.Errorf("%+v, by the text alone %+v", first, plain)
	}
	for range 5 {
		if again := f.search(t, index, archive.Query{Text: query}); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("%+v, then %+v", first, again)
		}
	}
}

func TestNothingIsSentForAWorkspaceWithoutAModel(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(trip()...)...)
	p := newProvider(t)
	index := f.embedded(t, p)
	if got := f.answers(t, index, paraphrase); got != "" || p.sent() != 0 || f.count(t, "archive_vectors") != 0 {
		t.Fatalf("%q, %d texts sent, %d vectors", got, p.sent(), f.count(t, "archive_vectors"))
	}
	p.set(f, embeddingModel)
	if got := f.answers(t, index, paraphrase); got != "" || p.sent() != 0 {
		t.Errorf("%q, %d texts sent before anything is embedded", got, p.sent())
	}
	if done, err := index.EmbedPending(t.Context()); err != nil || done != 5 {
		t.Fatalf("%d documents (%v)", done, err)
	}
	before := p.sent()
	p.set(f, "")
	if got := f.answers(t, index, paraphrase); got != "" || p.sent() != before {
		t.Errorf("switched off again: %q, %d texts sent", got, p.sent()-before)
	}
}

func TestWithTheProviderDownTheTextIsSearched(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(trip()...)...)
	p := newProvider(t, f)
	index := f.embedded(t, p)
	p.point(broken(t))
	if got := f.answers(t, index, "ferry to Helgoland"); got != f.answers(t, f.index(), "ferry to Helgoland") || !strings.HasPrefix(got, "0-1") {
		t.Errorf("%q", got)
	}
	if got := f.answers(t, index, paraphrase); got != "" {
		t.Errorf("%q", got)
	}
}

func TestALateEmbeddingDoesNotHoldASearchUp(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(trip()...)...)
	p := newProvider(t, f)
	index := f.embedded(t, p)
	left := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { <-left }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(left) })
	p.point(server.URL)
	archivedb.Wait(index, time.Millisecond)
	if got := f.answers(t, index, "ferry to Helgoland"); !strings.HasPrefix(got, "0-1") {
		t.Errorf("%q", got)
	}
}

// S28: what failed is done by the next pass, and what is done is not paid for again.
func TestEmbeddingGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var messages [][]byte
	for i := range 70 {
		messages = append(messages, say([]string{"user", "assistant"}[i%2], fmt.Sprintf("Remark number %d about boats.", i)))
	}
	f.put(t, entries(messages...)...)
	p := newProvider(t, f)
	p.point(broken(t))
	index, err := f.indexed(t).WithEmbeddings(p)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := index.EmbedPending(t.Context()); !errors.Is(err, upstream.ErrNotEmbedded) || done != 0 || p.sent() != 32 {
		t.Fatalf("%d documents, %d texts sent (%v); want one request and its failure", done, p.sent(), err)
	}
	p.point(newProvider(t).url)
	if done, err := index.EmbedPending(t.Context()); err != nil || done != 70 || f.count(t, "archive_vectors") != 70 {
		t.Fatalf("%d documents, %d vectors (%v)", done, f.count(t, "archive_vectors"), err)
	}
	f.put(t, at(70, say("user", "One more boat."))...)
	before := p.sent()
	if done := f.embedded(t, p); done == nil || p.sent() != before+1 {
		t.Errorf("%d texts sent for one new document", p.sent()-before)
	}
	p.set(f, "text-embedding-3-large")
	if done, err := index.EmbedPending(t.Context()); err != nil || done != 71 || f.count(t, "archive_vectors") != 71 {
		t.Errorf("another model: %d documents, %d vectors (%v)", done, f.count(t, "archive_vectors"), err)
	}
}

func TestADocumentIsEmbeddedAsItIsIndexedAndBounded(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := talk()
	messages[4] = result("b", "BEGIN "+strings.Repeat("long output ", 5000)+" END")
	f.put(t, entries(messages...)...)
	p := newProvider(t, f)
	f.embedded(t, p)
	if p.sent() != 5 || f.count(t, "archive_vectors") != 5 {
		t.Fatalf("%d texts, %d vectors", p.sent(), f.count(t, "archive_vectors"))
	}
	for _, text := range p.texts {
		if len(text) > 8001 {
			t.Errorf("a text of %d bytes was sent", len(text))
		}
	}
	all := strings.Join(p.texts, "\n")
	for _, want := range []string{"retryBudget := 3", "BEGIN long", " END", "inserts a row twice"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q was sent %d times", want, strings.Count(all, want))
		}
	}
}

// S2: vectors are sealed, and another workspace's are not looked at.
func TestVectorsOfAWorkspaceAreItsOwn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.sibling(t)
	other.archive = f.archive
	f.put(t, entries(trip()...)...)
	other.put(t, entries(say("user", "Nothing of interest."))...)
	index := f.embedded(t, newProvider(t, f, other))
	if other.count(t, "archive_vectors") != 1 {
		t.Fatal("the other workspace has no vector: the test proves nothing")
	}
	for name, query := range map[string]archive.Query{"all": {}, "its session": {Session: f.session}, "its lane": {Lane: f.lane}} {
		query.Text = paraphrase
		for _, hit := range other.search(t, index, query) {
			if hit.Lane != other.lane {
				t.Errorf("%s: a foreign hit %+v", name, hit)
			}
		}
	}
	if other.count(t, "archive_vectors") != 1 || f.count(t, "archive_vectors") != 5 {
		t.Error("a row is another workspace's")
	}
	f.in(t, func(tx *gorm.DB) error { // the vector of one document passed off as another's
		return tx.Exec(`UPDATE archive_vectors SET vector = (SELECT vector FROM archive_vectors WHERE first = 3) WHERE first <> 3`).Error
	})
	fresh, err := f.index().WithEmbeddings(newProvider(t, f))
	if err != nil {
		t.Fatal(err)
	}
	archivedb.Wait(fresh, time.Minute)
	if got := f.answers(t, fresh, paraphrase); got != "3-4" {
		t.Errorf("%q, want the one whose vector opens", got)
	}
}

func TestWithoutAKeyNothingIsEmbedded(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(trip()...)...)
	p := newProvider(t, f)
	f.indexed(t)
	f.archive = archivedb.New(f.runner, archive.NewKeys(failingKeys{of: f.workspace}))
	index, err := f.index().WithEmbeddings(p)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := index.EmbedPending(t.Context()); err == nil || done != 0 || p.sent() != 0 {
		t.Errorf("%d documents, %d texts sent (%v)", done, p.sent(), err)
	}
}

func TestDeletedDocumentsAreNotFoundAndTheirVectorsGo(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(trip()...)...)
	index := f.embedded(t, newProvider(t, f))
	if got := f.answers(t, index, paraphrase); !strings.HasPrefix(got, "3-4") {
		t.Fatalf("%q", got) // its vectors are in memory now
	}
	f.deleteLane(t, f.lane)
	if got := f.answers(t, index, paraphrase); got != "" || f.count(t, "archive_vectors") != 0 {
		t.Errorf("%q, %d vectors", got, f.count(t, "archive_vectors"))
	}
}
