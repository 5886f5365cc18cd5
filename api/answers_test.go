package api

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
)

// question returns a single question in the format of a path.
func question(path, text string, stream bool) string {
	switch path {
	case messagesPath:
		return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":500,"stream":%t,"messages":[{"role":"user","content":%q}]}`, stream, text)
	case chatPath:
		return fmt.Sprintf(`{"model":"gpt-5.5","stream":%t,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":%q}]}`, stream, text)
	default:
		return fmt.Sprintf(`{"model":"gpt-5.5","store":false,"stream":%t,"input":[{"role":"user","content":%q}]}`, stream, text)
	}
}

const reverses = "How do I reverse a list in Python?"

func TestTheSameQuestionIsAnsweredAgainByteForByte(t *testing.T) {
	t.Parallel()
	for _, path := range []string{messagesPath, chatPath, responsesPath} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(path, stream), func(t *testing.T) {
				t.Parallel()
				c := setupCaching(t, "")
				body := question(path, reverses, stream)
				first := c.ask("miss", path, body)
				paid := c.last(1)
				c.stored()
				second := c.ask("hit", path, strings.Replace(body, `"model"`, ` "user" : null, "model"`, 1))
				if !bytes.Equal(first.body, second.body) || first.header.Get("Content-Type") != second.header.Get("Content-Type") {
					t.Errorf("the first answer is\n%s\nthe second\n%s", first.body, second.body)
				}
				if answers, embeddings := c.generated(); answers != 1 || embeddings != 0 {
					t.Errorf("the provider answered %d times and embedded %d times", answers, embeddings)
				}
				free := c.last(2)
				if paid.Cost.CostMicroUSD == 0 || paid.Tokens.Input == 0 || free.Cost.CostMicroUSD != 0 || free.Cost.NetMicroUSD != 0 || free.Tokens.Input+free.Tokens.Output != 0 || free.Answer.Attempts != 0 {
					t.Errorf("the first is recorded as %+v, the second as %+v", paid, free)
				}
				if !strings.Contains(string(free.Prompt.Report), `"cache":"hit"`) || !strings.Contains(string(free.Prompt.Report), fmt.Sprintf(`"saved_microusd":%d`, paid.Cost.CostMicroUSD)) || !bytes.Equal(free.Answer.Answer, paid.Answer.Answer) {
					t.Errorf("recorded %s, answer %x and before %x", free.Prompt.Report, free.Answer.Answer, paid.Answer.Answer)
				}
				if second.header.Get("X-Palimpsest-Modules") != "ipc;noop, semantic-cache;applied" {
					t.Errorf("modules %s", second.header.Get("X-Palimpsest-Modules"))
				}
			})
		}
	}
}

func TestWhatOnlyFormatsARequestDoesNotCount(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "")
	c.ask("miss", messagesPath, `{"model":"claude-sonnet-4-5","max_tokens":500,"metadata":{"user_id":"a"},"system":"Be \u0062rief.","messages":[{"role":"user","content":"Hi"}]}`)
	c.stored()
	c.ask("hit", messagesPath, `{"messages":[{"content":[{"text":"Hi","type":"text","cache_control":{"type":"ephemeral"}}],"role":"user"}], "system":"Be brief.","max_tokens":500,"model":"claude-sonnet-4-5","metadata":{"user_id":"a"}}`)
}

// S45: an answer to one end user is given to another only where the workspace shares answers.
func TestAnswersOfEndUsersAreTheirOwn(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{"": "miss", "semantic-cache: {scope: project}": "miss", "semantic-cache: {scope: workspace}": "hit"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			c := setupCaching(t, config)
			ask := func(user, want string) {
				t.Helper()
				c.ask(want, messagesPath, `{"model":"claude-sonnet-4-5","max_tokens":500,"metadata":{"user_id":"`+user+`"},"messages":[{"role":"user","content":"Hi"}]}`)
			}
			ask("a", "miss")
			c.stored()
			ask("b", want)
			ask("a", "hit")
		})
	}
}

// S5, A8: a planted twin prompt in B is never served to A; nor across keys, models,
// accounts at the provider, system prompts, tools or sampling settings.
func TestNoAnswerCrossesABoundary(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "semantic-cache: {}")
	twin := question(chatPath, reverses, false)
	planted := c.ask("miss", chatPath, twin, "Authorization", "Bearer "+keyB)
	c.stored()
	own := c.ask("miss", chatPath, twin)
	c.stored()
	if bytes.Equal(own.body, planted.body) {
		t.Fatal("another workspace's answer is given")
	}
	if got := c.ask("hit", chatPath, twin); !bytes.Equal(got.body, own.body) {
		t.Fatalf("the same question gets %s", got.body)
	}
	if got := c.ask("hit", chatPath, twin, "Authorization", "Bearer "+keyB); !bytes.Equal(got.body, planted.body) {
		t.Fatalf("the other workspace gets %s", got.body)
	}
	c.ask("hit", chatPath, twin, "Authorization", "Bearer "+keyA2) // of the same workspace
	for name, body := range map[string]string{
		"model":           strings.Replace(twin, "gpt-5.5", "gpt-5.4", 1),
		"system prompt":   strings.Replace(twin, "Be brief.", "Be brief!", 1),
		"temperature":     strings.Replace(twin, `"stream"`, `"temperature":0.5,"stream"`, 1),
		"top_p":           strings.Replace(twin, `"stream"`, `"top_p":0.5,"stream"`, 1),
		"limit":           strings.Replace(twin, `"stream"`, `"max_completion_tokens":50,"stream"`, 1),
		"stop":            strings.Replace(twin, `"stream"`, `"stop":["x"],"stream"`, 1),
		"response format": strings.Replace(twin, `"stream"`, `"response_format":{"type":"text"},"stream"`, 1),
		"effort":          strings.Replace(twin, `"stream"`, `"reasoning_effort":"low","stream"`, 1),
		"tier":            strings.Replace(twin, `"stream"`, `"service_tier":"flex","stream"`, 1),
		"tools":           strings.Replace(twin, `"stream"`, `"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{}}}}],"stream"`, 1),
		"stream":          question(chatPath, reverses, true),
		"seed":            strings.Replace(twin, `"stream"`, `"seed":1,"stream"`, 1),
		"wording":         question(chatPath, "How can I reverse a list in Python?", false),
	} {
		if got := c.send(http.MethodPost, chatPath, body); got.header.Get("X-Palimpsest-Cache") != "miss" || got.status != http.StatusOK {
			t.Errorf("another %s: %d, %s: %s", name, got.status, got.header.Get("X-Palimpsest-Cache"), got.body)
		}
	}
	c.ask("miss", chatPath, twin, "Openai-Project", "another")
	c.renewProviderKeys()
	c.ask("miss", chatPath, twin)
}

func TestAnswersStayWithTheirKeyOrSessionWhereTheScopeSaysSo(t *testing.T) {
	t.Parallel()
	for scope, test := range map[string]struct{ sameKey, sameSession string }{"key": {"hit", "hit"}, "session": {"miss", "hit"}} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			c := setupCaching(t, "semantic-cache: {scope: "+scope+"}")
			body := question(messagesPath, reverses, false)
			c.ask("miss", messagesPath, body, "X-Palimpsest-Session-Id", "one")
			c.stored()
			c.ask("miss", messagesPath, body, "Authorization", "Bearer "+keyA2, "X-Palimpsest-Session-Id", "one")
			c.ask(test.sameSession, messagesPath, body, "X-Palimpsest-Session-Id", "one")
			c.ask(test.sameKey, messagesPath, body, "X-Palimpsest-Session-Id", "two")
		})
	}
}

func TestRequestsThatAreNoSingleQuestionPassBy(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "")
	plain := question(messagesPath, reverses, false)
	for name, test := range map[string]struct {
		path, body string
		header     []string
	}{
		"answered before": {messagesPath, `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, nil},
		"no store":        {messagesPath, plain, []string{"X-Palimpsest-No-Store", "true"}},
		"cache control":   {messagesPath, plain, []string{"Cache-Control", "no-store"}},
		"bypass":          {messagesPath, plain, []string{"X-Palimpsest-Bypass", "true"}},
		"dry run":         {messagesPath, plain, []string{"X-Palimpsest-Dry-Run", "true"}},
		"other pipe":      {messagesPath, plain, []string{"X-Palimpsest-Pipe", "ipc"}},
		"key for one use": {messagesPath, plain, []string{"X-Palimpsest-Provider-Key", providerKey, "X-Palimpsest-Base-Url", c.provider}},
		"of today":        {messagesPath, question(messagesPath, "What is the weather today?", false), nil},
		"stored":          {responsesPath, strings.Replace(question(responsesPath, reverses, false), `"store":false,`, "", 1), nil},
		"stored chat":     {chatPath, strings.Replace(question(chatPath, reverses, false), `"stream"`, `"store":true,"stream"`, 1), nil},
		"several answers": {chatPath, strings.Replace(question(chatPath, reverses, false), `"stream"`, `"n":2,"stream"`, 1), nil},
	} {
		for range 2 {
			got := c.send(http.MethodPost, test.path, test.body, test.header...)
			if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Cache") != "off" {
				t.Errorf("%s: status %d, %s: %.200s", name, got.status, got.header.Get("X-Palimpsest-Cache"), got.body)
			}
		}
	}
	if finds := c.kept.found(); finds != 0 {
		t.Errorf("answers were looked for %d times", finds)
	}
	if answers, _ := c.generated(); answers != 22 {
		t.Errorf("the provider answered %d of 22", answers)
	}
}

func TestAnswersThatAreNotWholeAreNotKept(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "")
	tool := `"tools":[{"name":"look","input_schema":{"type":"object","properties":{}}}],`
	for name, test := range map[string]struct {
		body   string
		header []string
	}{
		"cut":       {question(messagesPath, "cut", true), []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveCut}},
		"error":     {question(messagesPath, "error", true), []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveMidstream}},
		"refused":   {question(messagesPath, "refused", false), []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveFailure}},
		"call":      {strings.Replace(question(messagesPath, "call tool look {}", true), `"messages"`, tool+`"messages"`, 1), nil},
		"truncated": {strings.Replace(question(messagesPath, strings.Repeat("long ", 50), false), `"max_tokens":500`, `"max_tokens":3`, 1), nil},
	} {
		for range 2 {
			got := c.send(http.MethodPost, messagesPath, test.body, test.header...)
			if result := got.header.Get("X-Palimpsest-Cache"); result != "miss" {
				t.Errorf("%s: %d, %s: %.200s", name, got.status, result, got.body)
			}
		}
	}
	c.ask("miss", messagesPath, question(messagesPath, "whole", true))
	c.stored() // the only one
	select {
	case <-c.kept.puts:
		t.Error("an answer was kept that is not whole")
	default:
	}
}

// Thinking is signed for its own prompt: the very same request gets it again.
func TestThinkingIsGivenAgainToTheSameRequest(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "semantic-cache: {}")
	thinks := func(text string) string {
		return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":%q}]}`, text)
	}
	first := c.ask("miss", messagesPath, thinks(reverses))
	if !bytes.Contains(first.body, []byte(`"signature"`)) {
		t.Fatalf("no thinking: %s", first.body)
	}
	c.stored()
	c.ask("hit", messagesPath, thinks(reverses))
}

func TestAnswersExpire(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "semantic-cache: {ttlSeconds: 100}")
	body := question(messagesPath, reverses, false)
	c.ask("miss", messagesPath, body)
	c.stored()
	c.clock.advance(99 * time.Second)
	c.ask("hit", messagesPath, body)
	c.clock.advance(2 * time.Second)
	c.ask("miss", messagesPath, body)
	c.stored()
	c.ask("hit", messagesPath, body)
}

// Another replica, which remembers nothing, finds the answer in the database.
func TestReplicasShareAnswers(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "semantic-cache: {}")
	database := dbtest.New(t)
	c.Answers = c.newAnswers(t, database)
	body := question(chatPath, reverses, false)
	c.ask("miss", chatPath, body)
	c.stored()
	c.Answers = c.newAnswers(t, database)
	c.ask("hit", chatPath, body)
}

// S25: a cache that fails, panics or is slow leaves the request alone.
func TestAFailingCacheLeavesTheRequestAlone(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "semantic-cache: {}")
	body := question(messagesPath, reverses, false)
	n := 0
	for name, fails := range map[string]func() error{"error": func() error { return errDown }, "panic": func() error { panic("a bug") }} {
		c.kept.mu.Lock()
		c.kept.fails = fails
		c.kept.mu.Unlock()
		got := c.send(http.MethodPost, messagesPath, strings.Replace(body, "Python", name, 1))
		last, _ := c.double.Last()
		if got.status != http.StatusOK || !bytes.Contains(last.Body, []byte(name)) || got.header.Get("X-Palimpsest-Cache") == "hit" {
			t.Errorf("%s: %d: %s", name, got.status, got.body)
		}
		n++
		if recorded := c.last(n); !strings.Contains(string(recorded.Prompt.Report), `"type":"failed"`) {
			t.Errorf("%s: recorded %s", name, recorded.Prompt.Report)
		}
	}
}

func TestEmbeddingsNeedAProviderThatMakesThem(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "")
	c.store.keys = c.store.keys[:1]
	embeddings := c.embeddings()
	if vectors, err := embeddings.Embed(t.Context(), c.store.workspace, uuid.New(), "text-embedding-3-small", []string{"a"}); !errors.Is(err, archive.ErrNoEmbeddings) {
		t.Errorf("%v, %v", vectors, err)
	}
}
