package prompt

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// A client that goes back sends fewer messages than the lane keeps: the request adds none, and no title.
func TestRequestShorterThanItsLaneAddsNothing(t *testing.T) {
	t.Parallel()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	writer, err := NewWriter(session.NewMemory(), counter, pipeline.NewChain())
	if err != nil {
		t.Fatal(err)
	}
	written, err := writer.Write(t.Context(), Request{
		Scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: conversation.Anthropic}, Codec: anthropic.New(),
		Config: modules.Catalog().Default(), Headers: http.Header{"X-Palimpsest-Session-Id": {"s"}}, Path: "/v1/messages",
		Body: []byte(`{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"Hello."}]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if update := written.update(time.Now(), 3); len(update.Messages.Entries) != 0 || update.Messages.Links != nil || update.Title != "" || update.Messages.Position != 1 {
		t.Errorf("%+v", update)
	}
	if update := written.update(time.Now(), 0); len(update.Messages.Entries) != 1 || update.Title != "Hello." {
		t.Errorf("the first request of it: %+v", update)
	}
}
