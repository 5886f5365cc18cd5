package prompt_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// clock is a time that only a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// withClock gives the bench a clock that begins at noon.
func (b *bench) withClock() *clock {
	c := &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	b.writer.Now = c.now
	return c
}

// exchange sends a body and has the provider answer with a usage.
func (b *bench) exchange(body []byte, usage wire.Usage) *prompt.Prompt {
	b.t.Helper()
	written := b.send(body)
	usage.Reported = true
	b.writer.Answered(written.Sent(), wire.Answer{Usage: usage})
	return written
}

// C7: for how long a cache lives is seen on the wire.
func TestTheCachesLifeIsSeenOnTheWire(t *testing.T) {
	t.Parallel()
	short, long, mixed := system(1, fiveMinutes), system(1, oneHour), system(2, oneHour)
	for name, c := range map[string]struct {
		format conversation.Format
		model  string
		head   string // before the messages
		last   string // marker on the newest message
		usage  wire.Usage
		want   time.Duration
	}{
		"no markers":                      {head: system(0, ""), want: 0},
		"five minutes":                    {head: short, last: fiveMinutes, want: session.ShortTTL},
		"an hour":                         {head: long, last: oneHour, want: session.LongTTL},
		"an hour, and five minutes":       {head: mixed, last: fiveMinutes, want: session.ShortTTL},
		"only the system prompt":          {head: long, want: session.LongTTL},
		"one at the top":                  {head: "," + oneHour, want: session.LongTTL},
		"one at the top, five minutes":    {head: "," + fiveMinutes, want: session.ShortTTL},
		"an hour that was not granted":    {head: long, last: oneHour, usage: wire.Usage{CacheWrite: 5_000}, want: session.ShortTTL},
		"an hour that was":                {head: long, last: oneHour, usage: wire.Usage{CacheWrite: 5_000, CacheWrite1h: 5_000}, want: session.LongTTL},
		"an hour, and nothing written":    {head: long, last: oneHour, usage: wire.Usage{CacheRead: 5_000}, want: session.LongTTL},
		"no markers, but a cache":         {head: system(0, ""), usage: wire.Usage{CacheRead: 5_000}, want: session.ShortTTL},
		"OpenAI":                          {format: conversation.OpenAIChat, want: session.DayTTL},
		"OpenAI, a day":                   {format: conversation.OpenAIChat, head: `,"prompt_cache_retention":"24h"`, want: session.DayTTL},
		"OpenAI, in memory":               {format: conversation.OpenAIChat, head: `,"prompt_cache_retention":"in_memory"`, want: session.ShortTTL},
		"GPT-5.6":                         {format: conversation.OpenAIChat, model: "gpt-5.6-sol", want: 30 * time.Minute},
		"GPT-5.6, half a day":             {format: conversation.OpenAIResponses, model: "gpt-5.6-sol", head: `,"prompt_cache_options":{"ttl":"12h"}`, want: 12 * time.Hour},
		"GPT-5.6, one block":              {format: conversation.OpenAIChat, model: "gpt-5.6-sol", last: `"prompt_cache_breakpoint": {"mode":"explicit","ttl":"12h"}`, want: 12 * time.Hour},
		"GPT-5.6, one block as the rest":  {format: conversation.OpenAIChat, model: "gpt-5.6-sol", last: `"prompt_cache_breakpoint":{"mode":"explicit"}`, want: 30 * time.Minute},
		"GPT-5.6, a text about a block":   {format: conversation.OpenAIChat, model: "gpt-5.6-sol", last: `"name":"\"prompt_cache_breakpoint\":{\"ttl\":\"24h\"}"`, want: 30 * time.Minute},
		"GPT-5.6, marked, and no mark":    {format: conversation.OpenAIChat, model: "gpt-5.6-sol", head: `,"prompt_cache_options":{"mode":"explicit"}`, want: 0},
		"GPT-5.6, marked":                 {format: conversation.OpenAIChat, model: "gpt-5.6-sol", head: `,"prompt_cache_options":{"mode":"explicit"}`, last: `"prompt_cache_breakpoint":{"ttl":"24h"}`, want: 24 * time.Hour},
		"GPT-5.6, read":                   {format: conversation.OpenAIChat, model: "gpt-5.6-sol", usage: wire.Usage{CacheRead: 5_000, CacheWrite: 100}, want: 30 * time.Minute},
		"an hour of a provider's":         {format: conversation.OpenAIChat, model: "kimi-k3", head: `,"prompt_cache_options":{"ttl":"1h"}`, usage: wire.Usage{CacheWrite: 5_000}, want: time.Hour},
		"GPT-5.4":                         {format: conversation.OpenAIChat, model: "gpt-5.4", want: session.ShortTTL},
		"a model that is not listed":      {format: conversation.OpenAIChat, model: "house-model", want: session.ShortTTL},
		"OpenAI, half an hour":            {format: conversation.OpenAIResponses, head: `,"prompt_cache_options":{"ttl":"30m"}`, want: 30 * time.Minute},
		"OpenAI, a life nobody can read":  {format: conversation.OpenAIResponses, head: `,"prompt_cache_options":{"ttl":"long"}`, want: session.DayTTL},
		"OpenAI, a life beyond every one": {format: conversation.OpenAIResponses, head: `,"prompt_cache_options":{"ttl":"9999h"}`, want: session.DayTTL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.format == "" {
				c.format = conversation.Anthropic
			}
			b := newBench(t, c.format, 100_000)
			clock := b.withClock()
			text := marked(said("Hello."), orNothing(c.last))
			body := fmt.Sprintf(`{"model":"claude-sonnet-4-5"%s,"max_tokens":100,"messages":[{"role":"user","content":[%s]}]}`, c.head, text)
			switch c.format {
			case conversation.Anthropic:
			case conversation.OpenAIChat:
				text := `{"type":"text","text":"Hello."` + strings.TrimSuffix(","+c.last, ",") + `}`
				body = fmt.Sprintf(`{"model":%q%s,"messages":[{"role":"user","content":[%s]}]}`, cmp.Or(c.model, "gpt-5.5"), c.head, text)
			case conversation.OpenAIResponses:
				body = fmt.Sprintf(`{"model":%q%s,"input":"Hello."}`, cmp.Or(c.model, "gpt-5.5"), c.head)
			}
			written := b.write([]byte(body))
			sent := written.Sent()
			clock.at = clock.at.Add(time.Second)
			if c.usage.Prompt() > 0 {
				c.usage.Reported = true
				b.writer.Answered(sent, wire.Answer{Usage: c.usage})
			}
			heat := written.Lane.Heat()
			if heat.TTL != c.want || !heat.At.Equal(clock.at.Add(-time.Second)) || heat.Position != 1 || heat.Model == "" || heat.Tokens == 0 {
				t.Errorf("heat %+v, want %v", heat, c.want)
			}
		})
	}
}

// working is a conversation with markers as a coding agent sets them, at two
// thirds of a window of 30,000.
func working() *talk {
	c := begun("claude-sonnet-4-5")
	c.head += system(2, fiveMinutes)
	return c.filled(8, 1_700)
}

// on lets the agent go on by a step; the newest message has a marker.
func (c *talk) on() []byte {
	c.calls++
	id := fmt.Sprintf("toolu_n%d", c.calls)
	c.assistant(said("Further."), call(id)).user(result(id, `"ok"`))
	last := len(c.messages) - 1
	plain := c.messages[last]
	c.messages[last] = strings.Replace(plain, `"content":"ok"`, `"content":"ok",`+fiveMinutes, 1)
	body := c.body()
	c.messages[last] = plain
	return body
}

// C7: epochs of lanes above idleUtilization are made on the first request after the
// cache has gone cold, and never before.
func TestAnIdleLaneIsCompressedOnceItsCacheIsCold(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 30_000)
	clock := b.withClock()
	c := working()
	for range 4 {
		written := b.exchange(c.on(), wire.Usage{Input: 20, CacheRead: 19_000, CacheWrite: 1_000})
		if written.Exchange.Report.Compression != pipeline.None {
			t.Fatalf("warm: %+v", written.Exchange.Report)
		}
		clock.at = clock.at.Add(4 * time.Minute)
	}

	// A request that asks for no change keeps the cache alive as well.
	b.bypass = true
	b.exchange(c.on(), wire.Usage{CacheRead: 20_000})
	b.bypass = false
	clock.at = clock.at.Add(4 * time.Minute)
	if written := b.exchange(c.on(), wire.Usage{CacheRead: 20_000}); written.Exchange.Report.Compression != pipeline.None {
		t.Fatalf("after a bypassed request: %+v", written.Exchange.Report)
	}
	// Asking for the size does not.
	clock.at = clock.at.Add(4 * time.Minute)
	if _, err := b.writer.Count(t.Context(), prompt.Request{Scope: b.scope, Codec: b.codec, Config: b.config, Body: c.body(), Headers: b.headers, Path: "/v1/messages/count_tokens"}); err != nil {
		t.Fatal(err)
	}
	clock.at = clock.at.Add(time.Minute)

	written := b.epoch(c.on())

	if written.Exchange.Lane.Projection.Reason != session.ReasonIdle || written.Exchange.Report.After > 12_000 {
		t.Errorf("%+v", written.Exchange.Report)
	}
}

// C7: another replica has kept the cache alive; this one does not know it.
func TestTwoReplicasDoNotBothThinkALaneCold(t *testing.T) {
	t.Parallel()
	store := session.NewMemory()
	here, there := newBenchOn(t, store, 30_000), newBenchOn(t, store, 30_000)
	there.scope = here.scope
	clock := here.withClock()
	there.writer.Now = clock.now
	c := working()
	record := func(b *bench, written *prompt.Prompt) {
		t.Helper()
		if err := store.Record(t.Context(), b.scope.Workspace, []session.Update{written.Update(clock.at)}); err != nil {
			t.Fatal(err)
		}
	}
	record(here, here.exchange(c.on(), wire.Usage{CacheRead: 20_000}))
	clock.at = clock.at.Add(4 * time.Minute)
	record(there, there.exchange(c.on(), wire.Usage{CacheRead: 20_000}))
	clock.at = clock.at.Add(3 * time.Minute) // 7 since here, 3 since there

	written := here.exchange(c.on(), wire.Usage{CacheRead: 20_000})

	if written.Exchange.Report.Compression != pipeline.None || !hasEvent(written, "skipped", "warm_elsewhere") {
		t.Fatalf("%+v", written.Exchange.Report)
	}
	record(here, written)
	clock.at = clock.at.Add(4 * time.Minute)
	if written = there.exchange(c.on(), wire.Usage{CacheRead: 100}); written.Exchange.Report.Compression != pipeline.None {
		t.Errorf("the other replica's clock is no better: %+v", written.Exchange.Report)
	}
	record(there, written)
	clock.at = clock.at.Add(5 * time.Minute)
	if written = there.exchange(c.on(), wire.Usage{CacheRead: 100}); written.Exchange.Report.Compression != pipeline.Epoch {
		t.Errorf("five minutes after the last one anywhere: %+v", written.Exchange.Report)
	}
}

func hasEvent(written *prompt.Prompt, kind, reason string) bool {
	for _, event := range written.Exchange.Report.Events {
		if event.Type == kind && event.Reason == reason {
			return true
		}
	}
	return false
}

// B12: a lane's breaker is that of the next process too, and a reset closes it.
func TestTheBreakerSurvivesARestart(t *testing.T) {
	t.Parallel()
	store := session.NewMemory()
	b := newBenchOn(t, store, 12_000)
	clock := b.withClock()
	c := begun("claude-sonnet-4-5")
	c.filled(8, 1_000)
	first := b.write(begunBody(c, 6))
	first.Lane.Tried(session.Attempts{At: clock.at, Fruitless: session.Patience, Reason: "nothing_to_free", Size: 1, Limit: 12_000})
	if err := store.Record(t.Context(), b.scope.Workspace, []session.Update{first.Update(clock.at)}); err != nil {
		t.Fatal(err)
	}

	next := newBenchOn(t, store, 12_000)
	next.scope = b.scope
	next.writer.Now = clock.now
	written := next.send(begunBody(c, 14))

	if written.Lane.ID != first.Lane.ID || !hasEvent(written, "breaker_open", "nothing_to_free") || written.Exchange.Lane.Projection != nil {
		t.Fatalf("%+v", written.Exchange.Report)
	}
	written.Lane.Tried(session.Attempts{At: clock.at.Add(time.Second)})
	next.epoch(begunBody(c, 14))
}

// begunBody returns the request with the first of a conversation's messages.
func begunBody(c *talk, messages int) []byte {
	part := *c
	part.messages = c.messages[:messages+1]
	return part.body()
}

// E4: the provider's own word is heeded with an open breaker too.
func TestTheBreakerDoesNotStopAnEmergency(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 200_000)
	c := begun("claude-sonnet-4-5")
	c.filled(14, 1_000)
	written := b.write(c.body())
	written.Lane.Tried(session.Attempts{At: time.Now(), Fruitless: session.Patience, Reason: "nothing_to_free", Size: 15_000, Limit: 15_000})
	shrunk, ok := b.writer.Shrink(t.Context(), written, wire.Overflow{Tokens: 16_000, Window: 15_000})
	if !ok || shrunk.Exchange.Report.Compression != pipeline.Emergency || shrunk.Exchange.Report.After > 15_000 {
		t.Fatalf("%t", ok)
	}
	if shrunk.Sent(); shrunk.Lane.Heat().Projection != 1 {
		t.Errorf("heat %+v", shrunk.Lane.Heat())
	}
}
