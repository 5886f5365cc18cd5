package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/pipeline"
)

// S5: the answer to a prompt that was made smaller is not kept as the answer to the one
// that was asked: the same question, with what modules put into it, is asked again.
func TestAnswerToShrunkPromptIsNotKeptForTheFirst(t *testing.T) {
	t.Parallel()
	const note, fits, tooLarge = "[rehydrated] ", "What does rehydration mean?", "How do I reverse a list in Python?"
	c := setupCaching(t, "")
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), note) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, tooLong)
			return
		}
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Without the note."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4}}`)
	}))
	t.Cleanup(provider.Close)
	c.store.mu.Lock()
	for i := range c.store.keys {
		c.store.keys[i].BaseURL = provider.URL
	}
	c.store.windows["claude-sonnet-4-5"] = small
	c.store.mu.Unlock()
	c.Settings.ForgetAll()
	c.Prompts = newWriter(t, c.memory, broken{func(draft *pipeline.Draft) error {
		if draft.Conversation.Holds(0, pipeline.Quote(tooLarge)) && !draft.Lane.Finalized {
			draft.Inject(pipeline.PlacementTurn, note+strings.Repeat("word ", small*7/10), []string{"#1"})
		}
		return nil
	}})

	body := question(messagesPath, tooLarge, false)
	first := c.ask("miss", messagesPath, body)
	if first.header.Get("X-Palimpsest-Attempts") != "2" || first.header.Get("X-Palimpsest-Compression") != "emergency" {
		t.Fatalf("the prompt was not shrunk: %v", first.header)
	}
	c.ask("miss", messagesPath, question(messagesPath, fits, false))
	c.stored() // answers are kept in their order
	if len(c.kept.puts) != 0 {
		t.Error("the answer to the shrunk prompt is kept")
	}
	c.ask("miss", messagesPath, body)
}
