package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// withRedaction has a proxy's workspace redact every kind of personal data.
func withRedaction(p *proxy) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.data = tenants.DataSettings{Redact: tenants.Redaction{Kinds: tenants.RedactionKinds()}}
	p.Settings.WithRedaction(func(context.Context, tenants.WorkspaceID) ([]byte, error) { return []byte("key"), nil }).ForgetAll()
	p.Prompts.Redactor = p.Settings.Redact
}

func TestPersonalDataIsRedactedInAnswersAndErrorsThatAreStored(t *testing.T) {
	t.Parallel()
	const answer = `{"type":"message","role":"assistant","content":[{"type":"text","text":"Ask ada@example.com"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":9}}`
	var got string
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	})
	withRedaction(p)
	const body = `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"I am ida@example.com"}]}`
	sent := p.send(http.MethodPost, messagesPath, body)
	if sent.status != http.StatusOK || got != body || string(sent.body) != answer {
		t.Fatalf("status %d: the provider got %s, the client %s", sent.status, got, sent.body)
	}
	p.last(1)
	said := 0
	for _, update := range p.memory.seen() {
		for _, entry := range update.Messages.Entries {
			said++
			if text := string(entry.Raw); strings.Contains(text, "ida@") || !strings.Contains(text, "I am [email-") {
				t.Errorf("stored of the request: %s", text)
			}
		}
		if text := string(update.Messages.Answer); strings.Contains(text, "ada@") || text != "" && !strings.Contains(text, "Ask [email-") {
			t.Errorf("stored of the answer: %s", text)
		}
		if strings.Contains(update.Title, "ida@") {
			t.Errorf("the title is %s", update.Title)
		}
	}
	if said != 1 {
		t.Errorf("%d messages are stored, want 1", said)
	}
	redactor, err := p.Settings.Redactor(t.Context(), p.store.workspace)
	if err != nil {
		t.Fatal(err)
	}
	if kept := string(keptOf([]byte(`{"error":{"message":"ida@example.com may not use sk-abcd1234efgh"}}`), redactor)); strings.Contains(kept, "ida@") || strings.Contains(kept, "sk-") {
		t.Errorf("kept of an error: %s", kept)
	}
}

// A workspace that redacts is not served by a process that can't.
func TestWorkspaceThatRedactsIsRefusedWithoutAKeyForTags(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	withRedaction(p)
	p.Settings.WithRedaction(nil)
	if sent := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 2, 8)); sent.status < 500 {
		t.Errorf("status %d", sent.status)
	}
}

// An answer with a person's data must not reach another, and a question with it must not be embedded.
func TestAnswersWithPersonalDataAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "semantic-cache: {similarity: 0.6}\nrehydrator: {embeddingModel: text-embedding-3-small}")
	withRedaction(c.proxy)
	body := question(chatPath, "How do I reverse the list of ada@example.com?", false)
	c.ask("off", chatPath, body)
	c.ask("off", chatPath, body)
	if answers, embeddings := c.generated(); answers != 2 || embeddings != 0 {
		t.Errorf("the provider answered %d times and embedded %d times, want 2 and 0", answers, embeddings)
	}
	c.ask("miss", chatPath, question(chatPath, reverses, false)) // what has none is kept
	c.stored()
	c.ask("hit", chatPath, question(chatPath, reverses, false))

	if _, err := c.embeddings().Embed(t.Context(), c.store.workspace, uuid.Nil, "text-embedding-3-small", []string{"Where is ada@example.com?"}); err != nil {
		t.Fatal(err)
	}
	last, _ := c.double.Last()
	if sent := string(last.Body); last.Path != "/v1/embeddings" || strings.Contains(sent, "ada@") || !strings.Contains(sent, "Where is [email-") {
		t.Errorf("embedded is %s", sent)
	}
}
