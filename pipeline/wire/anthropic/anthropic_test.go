package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/wiretest"
)

func codec() anthropic.Codec { return anthropic.New() }

func TestConformance(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, codec(), samples())
}

func FuzzMessages(f *testing.F) { wiretest.Fuzz(f, codec(), samples()) }

func FuzzAnswers(f *testing.F) { wiretest.FuzzAnswers(f, codec(), samples()) }

func TestMarkersAreCountedWhereTheProviderCountsThem(t *testing.T) {
	t.Parallel()

	for raw, want := range map[string]struct {
		count int
		ttl   string
	}{
		`{"role":"user","content":"cache_control"}`: {0, ""},
		`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b","cache_control":null}]}`:                                                      {1, "5m"},
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","cache_control":{"type":"ephemeral","ttl":"1h"},"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`: {2, "1h"},
		`{"role":"user","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral"}}]}`:   {2, "5m"},
		`{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}}]}`:                               {1, "1h"},
		`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"cache_control":{"type":"ephemeral"}}}]}`:                                                                          {0, ""},
	} {
		digest, err := wire.Digest(codec(), json.RawMessage(raw), func(conversation.Message) int { return 0 })
		if err != nil || digest.Markers != want.count || digest.MarkerTTL != want.ttl {
			t.Errorf("%s: %d markers, the last %q, %v; want %+v", raw, digest.Markers, digest.MarkerTTL, err, want)
		}
	}
}

// A10, W33.
func TestMarkPutsOneMarkerOnTheLastBlockThatMayCarryOne(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, raw, ttl, want string }{
		{"a string", `{"role":"user","content":"h\u00e9"}`, "5m", `{"role":"user","content":[{"type":"text","text":"h\u00e9","cache_control":{"type":"ephemeral"}}]}`},
		{"a string, none", `{"role":"user","content":"a"}`, "", `{"role":"user","content":"a"}`},
		{"a blank string", `{"role":"user","content":" "}`, "5m", `{"role":"user","content":" "}`},
		{
			"not on thinking", `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"t","signature":"s"}]}`, "1h",
			`{"role":"assistant","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"thinking","thinking":"t","signature":"s"}]}`,
		},
		{
			"only thinking", `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}`, "1h",
			`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}`,
		},
		{
			"others are taken off", `{"role":"user","content":[ {"type":"text","text":"a","cache_control":{"type":"ephemeral"}}, {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]} ]}`, "5m",
			`{"role":"user","content":[ {"type":"text","text":"a"}, {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"}],"cache_control":{"type":"ephemeral"}} ]}`,
		},
		{
			"those on parts are taken off", `{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`, "",
			`{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"}]}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}]}]}`,
		},
		{
			"all are taken off", `{"role":"user","content":[{"type":"text","cache_control":{"type":"ephemeral"},"text":"a"},{"type":"image","source":{}}]}`, "",
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{}}]}`,
		},
		{
			"the right one stays as it is", `{"role":"user","content":[{"type":"text","cache_control":{"ttl":"5m","type":"ephemeral"},"text":"a"}]}`, "5m",
			`{"role":"user","content":[{"type":"text","cache_control":{"ttl":"5m","type":"ephemeral"},"text":"a"}]}`,
		},
		{
			"arguments are no markers", `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"cache_control":1}}]}`, "",
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"cache_control":1}}]}`,
		},
	} {
		marked := codec().Mark(json.RawMessage(test.raw), test.ttl)
		if string(marked) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, marked, test.want)
		}
		if again := codec().Mark(marked, test.ttl); string(again) != string(marked) {
			t.Errorf("%s: marked twice: %s", test.name, again)
		}
	}
}

func TestALongAnswerIsLetGoButItsUsageIsRead(t *testing.T) {
	t.Parallel()

	tap := codec().Tap(true)
	write := func(event string) { _, _ = fmt.Fprintf(tap, "data: %s\n\n", event) }
	write(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	part := strings.Repeat("x", 1<<20)
	for range wire.MaxAnswer/len(part) + 1 {
		write(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + part + `"}}`)
	}
	write(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":99}}`)
	write(`{"type":"message_stop"}`)
	answer := tap.Answer()
	if answer.Messages != nil || !answer.Complete || answer.Usage.Output != 99 || answer.StopReason != "end_turn" {
		t.Errorf("%d messages, %+v", len(answer.Messages), answer.Usage)
	}
}
