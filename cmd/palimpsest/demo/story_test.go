package demo

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
)

func TestSameSeedGivesTheSameTalk(t *testing.T) {
	t.Parallel()
	of := outline{task: tasks()[0], steps: 60, results: 3000, order: orders()[0]}
	first := plan(1, 7, of)
	if len(first) != 60 || !reflect.DeepEqual(first, plan(1, 7, of)) {
		t.Errorf("%d steps, or others the second time", len(first))
	}
	if reflect.DeepEqual(first, plan(1, 8, of)) || reflect.DeepEqual(first, plan(2, 7, of)) {
		t.Error("another session says the same")
	}
	if opening := first[0].typed; !strings.HasPrefix(opening, of.task.prompt) || !strings.HasSuffix(opening, of.order) {
		t.Errorf("it opens with %q", opening)
	}
}

func TestTalksReadLikeWork(t *testing.T) {
	t.Parallel()
	for number, task := range tasks() {
		typed, read, failed := 0, 0, 0
		for i, step := range plan(3, uint64(number), outline{task: task, steps: 80, results: 2000}) {
			if step.typed != "" {
				typed++
				if i > 0 && step.pause < 20*time.Second {
					t.Errorf("someone answers after %s", step.pause)
				}
			}
			if step.says == "" || strings.Contains(step.says+step.typed, "%!") || strings.Contains(step.typed, "{") {
				t.Errorf("step %d says %q after %q", i, step.says, step.typed)
			}
			for _, call := range step.calls {
				read += len(call.result)
				if call.failed {
					failed++
				}
			}
		}
		if typed < 3 || read < 60_000 || failed == 0 && number == 0 {
			t.Errorf("%q: typed %d times, %d bytes read, %d failures", task.prompt, typed, read, failed)
		}
	}
}

// What a client sends is what a provider takes: the double judges each body.
func TestEveryFormatIsOneThatProvidersTake(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{})
	for name, judged := range map[string]struct {
		format format
		model  string
	}{
		providerdouble.Anthropic: {anthropic{}, "claude-sonnet-4-5"}, providerdouble.OpenAIChat: {chat{}, "gpt-5.1"}, providerdouble.OpenAIResponses: {responses{}, "gpt-5.1-codex"},
	} {
		calls := []call{{name: "Read", input: map[string]string{"file_path": "a.go"}, result: "package a"}, {name: "Bash", input: map[string]string{"command": "ls"}, result: "a.go <b>", failed: true}}
		ids := []string{"toolu_01a", "toolu_01b"}
		messages := append([]json.RawMessage{judged.format.typed("Read “a.go” & list.")}, judged.format.said("Both at once.", calls, ids)...)
		messages = append(messages, judged.format.results(calls, ids)...)
		body := judged.format.body(request{model: judged.model, system: "You help.", session: "s", tools: true, messages: messages})
		if err := double.Validate(name, body); err != nil {
			t.Errorf("%s: %v\n%s", name, err, body)
		}
		if _, _, err := judged.format.read([]byte("no JSON")); err == nil {
			t.Errorf("%s reads something that is not an answer", name)
		}
	}
}

// provider is a Provider that listens.
func provider(t *testing.T) (*Provider, *Clock, string) {
	t.Helper()
	clock := &Clock{}
	made := NewProvider(clock, func(text string) int { return len(text) / 4 })
	server := httptest.NewServer(made)
	t.Cleanup(server.Close)
	return made, clock, server.URL
}

// asks sends a question with a provider key.
func asks(t *testing.T, url, key string) (int, string) {
	t.Helper()
	body := anthropic{}.body(request{model: "claude-sonnet-4-5", messages: []json.RawMessage{anthropic{}.typed("Who are you?")}})
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	asked.Header.Set("Content-Type", "application/json")
	asked.Header.Set("Anthropic-Version", "2023-06-01")
	asked.Header.Set("X-Api-Key", key)
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer strings.Builder
	if err := response.Write(&answer); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer.String()
}

func TestProviderSaysWhatItWasToldAndThenThatNobodyIsThere(t *testing.T) {
	t.Parallel()
	made, clock, url := provider(t)
	clock.Set(time.Now().Add(-time.Hour))
	before := clock.Now()
	made.Say(providerdouble.Reply{Text: "I am told to say this."}, 5*time.Second)
	if status, answer := asks(t, url, providerKey); status != http.StatusOK || !strings.Contains(answer, "told to say this") {
		t.Errorf("%d: %s", status, answer)
	}
	if took := clock.Now().Sub(before); took < 5*time.Second || took > time.Minute {
		t.Errorf("by the clock it took %s", took)
	}
	if status, answer := asks(t, url, providerKey); status != http.StatusOK || !strings.Contains(answer, "no model was asked") || !strings.Contains(answer, "Who are you?") {
		t.Errorf("%d: %s", status, answer)
	}
}

func TestWithdrawnKeyIsRefusedFromThenOn(t *testing.T) {
	t.Parallel()
	made, _, url := provider(t)
	if status, _ := asks(t, url, batchKey); status != http.StatusOK {
		t.Errorf("before: %d", status)
	}
	if status, _ := asks(t, url, "sk-anything-else"); status != http.StatusUnauthorized {
		t.Errorf("another key: %d", status)
	}
	made.Withdraw()
	if status, _ := asks(t, url, batchKey); status != http.StatusUnauthorized {
		t.Errorf("after: %d", status)
	}
	if status, _ := asks(t, url, providerKey); status != http.StatusOK {
		t.Errorf("the other key: %d", status)
	}
}

// The hours of two weeks, over the end of a year: every weekday and every hour.
func TestStoryHoldsWheneverItIsMade(t *testing.T) {
	t.Parallel()
	begins := time.Date(2026, time.December, 24, 0, 20, 0, 0, time.UTC)
	for _, days := range []int{MinDays, 3, 4, 5, week - 1, week, week + 1, 2 * week, Days} {
		var first string
		for hour := range 2 * 7 * 24 {
			until := begins.Add(time.Duration(hour) * time.Hour)
			f := &filling{&talks{Config: Config{Until: until, Days: days, Seed: 2026}}}
			hasty, change := f.hasty(), f.share(0.04)
			if !hasty.Add(-time.Hour).After(change) || hasty.Add(20*time.Hour).After(until) {
				t.Errorf("%d days until %s: the hasty day begins at %s, the first settings are of %s", days, until, hasty, change)
			}
			var story strings.Builder
			for _, entry := range f.diary() {
				if entry.when.After(until.Add(-lastMargin)) {
					t.Errorf("%d days until %s: something happens at %s", days, until, entry.when)
				}
				story.WriteString(until.Sub(entry.when).String() + " ")
			}
			if first == "" {
				first = story.String()
			}
			if f.isSmall() && story.String() != first {
				t.Errorf("%d days until %s: other things happen than an hour before", days, until)
			}
		}
	}
}
