package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/archive/export"
)

// script is a client's conversation.
type script struct{ messages []string }

func (s *script) add(role string, content any) {
	encoded, _ := json.Marshal(map[string]any{"role": role, "content": content})
	s.messages = append(s.messages, string(encoded))
}

// call adds a call of the shell and what it printed.
func (s *script) call(command, description, printed string) {
	id := fmt.Sprintf("toolu_%d", len(s.messages))
	s.add("assistant", []any{map[string]any{
		"type": "tool_use", "id": id, "name": "Bash", "input": map[string]string{"command": command, "description": description},
	}})
	s.add("user", []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": printed}})
}

func (s *script) body() []byte {
	return []byte(`{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[` + strings.Join(s.messages, ",") + `]}`)
}

// What a tool printed leaves the prompt, comes back when someone asks for it, stays
// there after a restart, is found by a search and by the model, and can be exported.
func TestWhatLeftThePromptComesBack(t *testing.T) {
	t.Parallel()
	const printed = "migration 00042 took 9.3s on shard blue-7"
	i := start(t, providerdouble.Config{})
	w := i.tenant("memory")
	w.setPipelinef("ipc: {contextWindow: 30000, preserveTokens: 2000}")
	var s script
	s.add("user", "Bring the importer up to date.")
	s.call("make migration-test", "Run the migration test", strings.Repeat("applying a step of the migration\n", 60)+printed+"\ndone\n")
	for n := range 30 {
		s.call(fmt.Sprintf("cat part%d.txt", n), "Read a part", strings.Repeat(fmt.Sprintf("line of part %d, of no interest\n", n), 90))
	}
	s.add("assistant", "All parts are read.")
	s.add("user", "Go on with the rest.")
	if got := w.sendOf(&s).Get("X-Palimpsest-Compression"); got != "epoch" {
		t.Fatalf("compression %q", got)
	}
	prompt, _ := i.double.Last()
	if bytes.Contains(prompt.Body, []byte(printed)) {
		t.Fatal("the prompt still shows what was printed")
	}
	pointer := regexp.MustCompile(`archive ([a-z2-7]{8})`).FindSubmatch(prompt.Body)
	if pointer == nil {
		t.Fatalf("the prompt names no archive: %.3000s", prompt.Body)
	}

	s.add("assistant", "Done.")
	s.add("user", "What did the migration test print earlier?")
	if got := w.sendOf(&s).Get("X-Palimpsest-Injected"); !strings.HasPrefix(got, "rehydrated=") {
		t.Errorf("injected %q", got)
	}
	asked, _ := i.double.Last()
	block := regexp.MustCompile(`\{"type":"text","text":"<rehydrated-context>.*?</rehydrated-context>"\}`).Find(asked.Body)
	if !bytes.Contains(block, []byte(printed)) {
		t.Fatalf("what came back is %s", block)
	}

	i.shutdown()
	i.boot()
	s.add("assistant", "It took 9.3s.")
	s.add("user", "Thanks.")
	w.sendOf(&s)
	later, _ := i.double.Last()
	if before := asked.Body[:bytes.Index(asked.Body, block)+len(block)]; !bytes.HasPrefix(later.Body, before) {
		t.Errorf("the prompt changed before or in what came back:\n%.2000s\n%.2000s", before, later.Body)
	}

	var hits struct {
		Data []struct{ Session, Snippet string }
	}
	w.until(func() bool {
		w.call(http.MethodGet, "/api/v1/search?q=migration+test+blue-7", nil, http.StatusOK, &hits)
		return len(hits.Data) > 0
	})
	if !strings.Contains(hits.Data[0].Snippet, "blue-7") {
		t.Errorf("found %+v", hits.Data[0])
	}
	recalled := w.recall("recall_get", map[string]any{"pointer": string(pointer[1]) + "#2"})
	if !strings.Contains(recalled, printed) {
		t.Errorf("the model recalls %s", recalled)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, i.url("/api/v1/sessions/"+hits.Data[0].Session+"/export"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	w.until(func() bool { // the newest messages are stored while their answer is relayed
		_, file := w.do(request)
		totals, err := export.Verify(bytes.NewReader(file), func(fault export.Fault) { t.Error(fault) })
		if err != nil {
			t.Fatalf("exported %+v: %v", totals, err)
		}
		return totals.Messages >= len(s.messages)
	})
}

// sendOf sends a script and returns the answer's headers.
func (w *tenant) sendOf(s *script) http.Header {
	w.t.Helper()
	response, answer := w.post("/v1/messages", s.body(), nil)
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("status %d: %s", response.StatusCode, answer)
	}
	return response.Header
}

// recall calls a tool of the MCP server and returns what it answers.
func (w *tenant) recall(tool string, arguments map[string]any) string {
	w.t.Helper()
	call, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	response, answer := w.post("/mcp", call, map[string]string{"Accept": "application/json, text/event-stream"})
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("status %d: %s", response.StatusCode, answer)
	}
	return string(answer)
}
