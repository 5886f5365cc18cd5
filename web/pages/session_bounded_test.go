package pages_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// sessionCounted is an archive that counts what is read of it.
type sessionCounted struct {
	archive.Reader

	mu              sync.Mutex
	listed, fetched int // entries without and with their bytes
}

func (c *sessionCounted) add(listed, fetched int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed, c.fetched = c.listed+listed, c.fetched+fetched
}

// take returns the counts and begins again.
func (c *sessionCounted) take() (listed, fetched int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	listed, fetched = c.listed, c.fetched
	c.listed, c.fetched = 0, 0
	return listed, fetched
}

func (c *sessionCounted) Entries(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, limit int) ([]archive.Entry, error) {
	entries, err := c.Reader.Entries(ctx, workspace, lane, from, limit)
	c.add(len(entries), 0)
	return entries, err
}

func (c *sessionCounted) Originals(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, to int) ([]archive.Entry, error) {
	entries, err := c.Reader.Originals(ctx, workspace, lane, from, to)
	c.add(0, len(entries))
	return entries, err
}

func (c *sessionCounted) Original(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, index int) (archive.Entry, error) {
	c.add(0, 1)
	return c.Reader.Original(ctx, workspace, lane, index)
}

// However long a session is, its page reads one page of its turns and the bodies that
// it shows.
func TestPageOfALongSessionReadsABoundedNumberOfTurns(t *testing.T) {
	t.Parallel()
	const rows, shown, moments = 100, 12, 200
	var reads *sessionCounted
	product := webtest.Start(t, func(_ *webtest.Product, deps *web.Deps) {
		reads = &sessionCounted{Reader: deps.Conversations.Archive}
		deps.Conversations.Archive = reads
	})
	person := product.SignUp(t, "northbeam")
	const wide = 1_000_000 // tokens: nothing is compressed, so that each message is a row
	talk := sessiontest.Generate(3, sessiontest.Options{Format: conversation.Anthropic, Turns: 400, TargetTokens: 60_000, SessionID: "long"})
	messages := len(talk.Messages(talk.Steps() - 1))
	if messages < 5*rows {
		t.Fatalf("%d messages are no long session", messages)
	}
	person.TalkOnce(person.Connect(webtest.Provider(t, wide), "laptop"), wide, "/v1/messages", string(talk.Body(talk.Steps()-1)), claudeCode)
	address := "/sessions/" + person.Newest().ID.String()

	for _, query := range []string{"", "?m=" + itoa(messages/2), "?m=" + itoa(messages-1), "?from=" + itoa(rows), "?m=3&view=raw", "?m=3&view=diff"} {
		reads.take()
		page := person.Get(address + query)
		listed, fetched := reads.take()
		if page.Status != http.StatusOK || listed == 0 || listed > rows || fetched == 0 || fetched > rows+shown {
			t.Errorf("%q: status %d, %d of %d turns were listed and %d read", query, page.Status, listed, messages, fetched)
		}
		if turns := page.Find(`[data-testid="turns"] .turn`).Length(); turns != listed {
			t.Errorf("%q: %d turns are shown", query, turns)
		}
	}
	person.TalkOnce(person.Connect(webtest.Provider(t, wide/20), "desktop"), wide/20, "/v1/messages", string(talk.Body(talk.Steps()-1)), claudeCode)
	compressed := person.Newest()
	reads.take()
	page := person.Get("/sessions/" + compressed.ID.String())
	if listed, fetched := reads.take(); page.Status != http.StatusOK || compressed.Sums.Epochs == 0 || listed > 2*rows || fetched > rows+shown {
		t.Errorf("compressed: status %d, %d epochs, %d of %d turns were listed and %d read", page.Status, compressed.Sums.Epochs, listed, messages, fetched)
	}
	if rows := person.Get(address + "?table=1").Find(`[data-testid="requests"] tbody tr`).Length(); rows == 0 || rows > moments {
		t.Errorf("%d requests are in the table", rows)
	}
	reads.take()
	pane := person.Get(address+"?m=7", "HX-Request", "true", "HX-Request-Type", "partial", "HX-Target", "div#pane")
	if listed, fetched := reads.take(); listed > 2 || fetched > 3 || !pane.Has("#pane") || pane.Has(".turn") {
		t.Errorf("the turn alone listed %d and read %d", listed, fetched)
	}
	part := person.Get(address+"?m=7", "HX-Request", "true", "HX-Request-Type", "partial")
	if listed, fetched := reads.take(); listed > rows || fetched > rows+shown || !part.Has("#read") {
		t.Errorf("the part listed %d and read %d", listed, fetched)
	}
}
