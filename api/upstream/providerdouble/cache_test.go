package providerdouble_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

// clock is a clock that stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// words is a text of n tokens at four bytes a token.
func words(n int) string { return strings.Repeat("four", n) }

type usage struct {
	Input    int `json:"input_tokens"`
	Write    int `json:"cache_creation_input_tokens"`
	Read     int `json:"cache_read_input_tokens"`
	Creation struct {
		Short int `json:"ephemeral_5m_input_tokens"`
		Long  int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

func anthropicUsage(t *testing.T, server *providertest.Server, body []byte, headers ...string) usage {
	t.Helper()
	status, answer := post(t, server.URL+"/v1/messages", body, headers...)
	var message struct {
		Usage usage `json:"usage"`
	}
	if err := json.Unmarshal([]byte(answer), &message); err != nil || status != 200 {
		t.Fatalf("answer is %d %s", status, answer)
	}
	return message.Usage
}

func (u usage) is(read, write, input int) bool {
	return u.Read == read && u.Write == write && u.Input == input && u.Creation.Short+u.Creation.Long == u.Write
}

// C2
func TestAnthropicCacheReadsWhatWasMarked(t *testing.T) {
	t.Parallel()
	watch := newClock()
	server := providertest.NewServer(t, providerdouble.Config{Now: watch.Now})
	system := `"system":[` + markedText(words(2000), mark) + `]`
	ask := func(messages ...string) usage {
		return anthropicUsage(t, server, bodyOf("claude-sonnet-4-5", system, messages...))
	}
	history := []string{userOf(markedText(words(100), mark))}
	if got := ask(history...); !got.is(0, 2103, 0) || got.Creation.Short != 2103 {
		t.Fatalf("first request: %+v", got)
	}
	if got := ask(history...); !got.is(2103, 0, 0) {
		t.Fatalf("same request again: %+v", got)
	}
	grown := []string{userOf(text(words(100))), assistantOf(text(words(50))), userOf(markedText(words(10), mark))}
	if got := ask(grown...); !got.is(2103, 53+13, 0) {
		t.Fatalf("grown request: %+v", got)
	}
	changed := []string{userOf(text(words(90))), assistantOf(text(words(50))), userOf(text(words(10)))}
	if got := ask(changed...); !got.is(2000, 0, 93+53+13) {
		t.Fatalf("changed first message, no marker behind it: %+v", got)
	}
	if got := anthropicUsage(t, server, bodyOf("claude-sonnet-4-5", system, history...), "X-Api-Key", "sk-ant-other"); got.Read != 0 {
		t.Fatalf("another account reads the cache: %+v", got)
	}
	watch.advance(5*time.Minute - time.Second)
	if got := ask(grown...); got.Read != 2103+66 {
		t.Fatalf("just before the cache goes cold: %+v", got)
	}
	watch.advance(5 * time.Minute)
	if got := ask(grown...); !got.is(0, 2169, 0) {
		t.Fatalf("after the cache went cold: %+v", got)
	}
}

func TestAnthropicCacheKeepsAnHourApart(t *testing.T) {
	t.Parallel()
	watch := newClock()
	server := providertest.NewServer(t, providerdouble.Config{Now: watch.Now})
	body := bodyOf("claude-sonnet-4-5", `"system":[`+markedText(words(2000), mark1h)+`]`, userOf(markedText(words(100), mark)))
	if got := anthropicUsage(t, server, body); got.Creation.Long != 2000 || got.Creation.Short != 103 {
		t.Fatalf("first request: %+v", got)
	}
	watch.advance(30 * time.Minute)
	if got := anthropicUsage(t, server, body); !got.is(2000, 103, 0) || got.Creation.Long != 0 {
		t.Fatalf("after half an hour: %+v", got)
	}
}

func TestAnthropicCacheHasAMinimumAndALookback(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	small := bodyOf("claude-opus-4-5", "", userOf(markedText(words(4000), mark)))
	for range 2 {
		if got := anthropicUsage(t, server, small); !got.is(0, 0, 4003) {
			t.Fatalf("a prompt below the minimum is cached: %+v", got)
		}
	}
	blocks := func(n int) string {
		list := []string{text(words(1500))}
		for i := range n - 1 {
			list = append(list, text(fmt.Sprint("block ", i)))
		}
		list[n-1] = strings.TrimSuffix(list[n-1], "}") + "," + mark + "}"
		return userOf(list...)
	}
	ask := func(n int) int { return anthropicUsage(t, server, bodyOf("claude-sonnet-4-5", "", blocks(n))).Read }
	if got := ask(1); got != 0 {
		t.Fatalf("read %d tokens before anything was written", got)
	}
	if got := ask(20); got != 1503 {
		t.Fatalf("19 positions before the marker were not found: read %d", got)
	}
	server2 := providertest.NewServer(t, providerdouble.Config{})
	server = server2
	ask(1)
	if got := ask(21); got != 0 {
		t.Fatalf("20 positions before the marker were found: read %d", got)
	}
}

func TestAnthropicCacheLosesMessagesWithToolChoice(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	system := `"system":[` + markedText(words(2000), mark) + `]`
	history := userOf(markedText(words(100), mark))
	anthropicUsage(t, server, bodyOf("claude-sonnet-4-5", system, history))
	if got := anthropicUsage(t, server, bodyOf("claude-sonnet-4-5", system+`,"tool_choice":{"type":"auto"}`, history)); got.Read != 2000 {
		t.Fatalf("changed tool_choice: %+v", got)
	}
	if got := anthropicUsage(t, server, bodyOf("claude-sonnet-4-5", system+`,"tools":[{"name":"a","input_schema":{}}]`, history)); got.Read != 0 {
		t.Fatalf("changed tools: %+v", got)
	}
}

func TestOpenAICacheReadsPrefixesInSteps(t *testing.T) {
	t.Parallel()
	watch := newClock()
	server := providertest.NewServer(t, providerdouble.Config{Now: watch.Now})
	ask := func(path string, body string) int {
		status, answer := post(t, server.URL+path, []byte(body))
		var message struct {
			Usage struct {
				Prompt struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
				Input struct {
					Cached int `json:"cached_tokens"`
				} `json:"input_tokens_details"`
			} `json:"usage"`
		}
		if err := json.Unmarshal([]byte(answer), &message); err != nil || status != 200 {
			t.Fatalf("answer is %d %s", status, answer)
		}
		return message.Usage.Prompt.Cached + message.Usage.Input.Cached
	}
	for path, form := range map[string]string{
		"/v1/chat/completions": `{"model":"gpt-5.5","messages":[{"role":"developer","content":"%s"},{"role":"user","content":"%s"}]}`,
		"/v1/responses":        `{"model":"gpt-5.5","input":[{"role":"developer","content":"%s"},{"role":"user","content":"%s"}]}`,
	} {
		long, short := words(1500), words(900)
		steps := []struct {
			first, second string
			want          int
		}{{long, "a", 0}, {long, "a", 1408}, {long, "b", 1408}, {short, "a", 0}, {short, "a", 0}}
		for i, step := range steps {
			if got := ask(path, fmt.Sprintf(form, step.first, step.second)); got != step.want {
				t.Fatalf("%s, request %d reads %d tokens, want %d", path, i, got, step.want)
			}
		}
		watch.advance(25 * time.Hour)
		if got := ask(path, fmt.Sprintf(form, long, "a")); got != 0 {
			t.Fatalf("%s reads %d tokens after a day", path, got)
		}
	}
}
