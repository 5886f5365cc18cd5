package api

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

// A client that goes on with a thread is told in the provider's own words that it is gone, so that it
// sends the whole conversation, which is shortened. That step is no request of its own.
func TestThreadGoesOnWithTheWholeConversation(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["claude-opus-5-5"] = small
	beta := []string{"Anthropic-Beta", "message-threads-2026-08-12"}
	const next = `{"model":"claude-opus-5-5","max_tokens":10,"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":"more"}]}`
	got := p.send(http.MethodPost, messagesPath, next, beta...)
	const want = `{"type":"error","error":{"type":"not_found_error","message":"Palimpsest does not continue threads, because`
	if got.status != http.StatusNotFound || !strings.HasPrefix(string(got.body), want) || !strings.Contains(string(got.body), `"details":{"error_code":"thread_not_found"}`) {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if _, asked := double.Last(); asked || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("the provider was asked: %v, headers %v", asked, got.header)
	}

	whole := strings.Replace(toolSession("claude-opus-5-5", 30, 800), `"max_tokens"`, `"thread":{"type":"create"},"max_tokens"`, 1)
	if got := p.send(http.MethodPost, messagesPath, whole, beta...); got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "epoch" {
		t.Errorf("status %d, headers %v: %s", got.status, got.header, got.body)
	}
	if sent, _ := double.Last(); !strings.Contains(string(sent.Body), `"thread":null`) || len(sent.Body) >= len(whole) {
		t.Errorf("sent %.300s", sent.Body)
	}
	if recorded := p.last(1); recorded.Answer.Status != http.StatusOK {
		t.Errorf("recorded first is %+v", recorded)
	}

	// Left alone, the provider's own threads go on.
	alone := append([]string{"X-Palimpsest-Bypass", "true"}, beta...)
	if got := p.send(http.MethodPost, messagesPath, next, alone...); got.status != http.StatusNotFound || got.header.Get("X-Palimpsest-Error-Source") != "provider" {
		t.Errorf("status %d, headers %v: %s", got.status, got.header, got.body)
	}
}
