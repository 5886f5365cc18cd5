package providerdouble_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/sharedtest"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// prefixes calls judge with every prefix of a body's messages that ends where a
// client would have sent it, a part of them.
func prefixes(t *testing.T, body []byte, judge func([]byte)) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(members["messages"], &messages); err != nil {
		t.Fatal(err)
	}
	for i, message := range messages {
		if i%31 != 0 && i < len(messages)-1 || strings.Contains(string(message[:30]), "assistant") {
			continue
		}
		if i+1 < len(messages) && strings.Contains(string(messages[i+1][:30]), `"tool"`) {
			continue
		}
		members["messages"], _ = json.Marshal(messages[:i+1])
		prefix, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		judge(prefix)
	}
}

func TestRecordedSessionsAreLegalAtEveryStep(t *testing.T) {
	t.Parallel()
	for format, pattern := range map[string]string{
		providerdouble.Anthropic: "transcripts/*.anthropic.json", providerdouble.OpenAIChat: "transcripts/*.openai.json",
	} {
		files := sharedtest.Files(t, "data/"+pattern)
		for i := range fulltest.Part(len(files)) {
			file := files[i]
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				body := readFile(t, file)
				double := providerdouble.NewHandler(providerdouble.Config{Window: 1_000_000})
				double.Trust(body)
				prefixes(t, body, func(prefix []byte) {
					if err := double.Validate(format, prefix); err != nil {
						t.Fatalf("recorded body of %d bytes refused: %v", len(prefix), err)
					}
				})
			})
		}
	}
}

func TestBodiesOfRealClientsAreLegal(t *testing.T) {
	t.Parallel()
	formats := map[string]string{"v1_messages": providerdouble.Anthropic, "completions": providerdouble.OpenAIChat, "v1_responses": providerdouble.OpenAIResponses}
	judged := 0
	for _, file := range sharedtest.Files(t, "data/clients/*/*/*.json") {
		var capture struct {
			Body json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal(readFile(t, file), &capture); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		for suffix, format := range formats {
			if !strings.HasSuffix(name, suffix) || len(capture.Body) < 10 {
				continue
			}
			judged++
			double := providerdouble.NewHandler(providerdouble.Config{})
			double.Trust(capture.Body)
			if err := double.Validate(format, unthinking(t, capture.Body)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if judged < 80 {
		t.Fatalf("only %d bodies were judged", judged)
	}
}

// unthinking takes the thinking setting off a body: the provider behind the
// recordings never thought, so a real one would miss the thinking in its answers.
func unthinking(t *testing.T, body json.RawMessage) []byte {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "thinking")
	rest, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return rest
}
