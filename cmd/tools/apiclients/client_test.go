package apiclients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

func TestSkippedCasesExistAndHaveAReason(t *testing.T) {
	t.Parallel()
	var names []string
	for _, one := range Cases() {
		names = append(names, one.Name)
	}

	for _, client := range Clients() {
		for name, reason := range client.skips {
			if !slices.Contains(names, name) || reason == "" {
				t.Errorf("%s skips %q for %q", client.Name, name, reason)
			}
		}
		if client.skips["subagent"] == "" && client.errand == nil {
			t.Errorf("%s is to send a subagent and cannot", client.Name)
		}
		if client.skips["compaction asked for"] == "" && client.manual == "" {
			t.Errorf("%s is to be asked to compact and nobody knows how", client.Name)
		}
		if client.skips["own compaction"] == "" && (client.summarizes == "" || client.smallWindow == 0 || client.fills > parts) {
			t.Errorf("%s is to compact by itself: %d parts fill its window of %d", client.Name, client.fills, client.smallWindow)
		}
	}
}

// A call has an object, or the program that runs it as a custom tool.
func TestToolCallsAreObjects(t *testing.T) {
	t.Parallel()
	for _, client := range Clients() {
		calls := []providerdouble.Call{client.shell("cat " + noteFile)}
		if client.errand != nil {
			calls = append(calls, client.errand("look"))
		}
		if client.await != nil {
			calls = append(calls, client.await(`{"agent_id":"a1"}`))
		}
		if _, only := client.skips["tool turn"]; only {
			continue
		}
		for _, call := range calls {
			if call.Name == "exec" && strings.Contains(string(call.Input), "await tools.") {
				continue
			}
			var input map[string]json.RawMessage
			if err := json.Unmarshal(call.Input, &input); err != nil || len(input) == 0 || call.Name == "" {
				t.Errorf("%s calls %q with %s: %v", client.Name, call.Name, call.Input, err)
			}
		}
	}
}

func TestSubagentOfCodexIsAwaitedByItsID(t *testing.T) {
	t.Parallel()
	call := codex().await(`{"agent_id":"a1","nickname":"Turing"}`)

	if call.Namespace != "multi_agent_v1" || string(call.Input) != `{"targets":["a1"]}` {
		t.Errorf("call %+v with %s", call, call.Input)
	}
}

func TestPiBelievesTheWindowItIsTold(t *testing.T) {
	t.Parallel()
	s, err := newSession(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.guide, s.window = "http://127.0.0.1:4711", guideOfTheDocs(t), 12_345
	if err := preparePi(s); err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile(filepath.Join(s.home, ".pi", "agent", "models.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), `"contextWindow": 12345`) != 3 || strings.Contains(string(text), localAddress) {
		t.Errorf("models.json: %s", text)
	}
}
