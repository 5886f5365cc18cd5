package apiclients

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// sent returns the habits of a client that sends one request.
func sent(path, body string, header http.Header) Habits {
	habits := Habits{}
	habits.Add(&Trial{Exchanges: []Exchange{{Method: "POST", Path: path, Header: header, Body: []byte(body)}}})
	return habits
}

func TestHabitsThatAreNotListedAreNew(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := sent("/v1/messages?beta=true", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"tool_result","content":[{"type":"image"}]}]}]}`, nil)

	added, err := first.Compare(folder, "client")
	if err != nil || len(added) != len(first) {
		t.Errorf("without a list, %d of %d are new: %v", len(added), len(first), err)
	}
	if err := first.Learn(folder, "client"); err != nil {
		t.Fatal(err)
	}
	if added, err := first.Compare(folder, "client"); err != nil || len(added) > 0 {
		t.Errorf("what is known is new: %q, %v", added, err)
	}

	second := sent("/v1/messages?beta=true", `{"model":"m","messages":[{"role":"system","content":"<system-reminder>\n<total_tokens>12 tokens left</total_tokens>\n</system-reminder>"}]}`, nil)

	added, err = second.Compare(folder, "client")
	want := []string{"in system content", "in system role", "reminder of system: <total_tokens> tokens"}
	if err != nil || !slices.Equal(added, want) {
		t.Errorf("new: %q, want %q (%v)", added, want, err)
	}
}

// Whatever an API lets a client send, at any depth, and what is not in it yet.
func TestHabitsOfEachFormatAreSeen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, path, body string
		header           http.Header
		want             []string
	}{
		{
			"Messages", "/v1/messages",
			`{"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"thinking":{"type":"adaptive"},
			"tools":[{"name":"Bash","input_schema":{"properties":{"hidden":1}}},{"type":"web_search_20260101","name":"w"}],
			"context_management":{"edits":[{"type":"clear_1"}]},
			"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","input":{"hidden":{"deep":1}}}]},
			{"role":"user","content":["odd",{"type":"image","source":{"type":"file","file_id":"f"}},{"type":"tool_result","content":[{"type":"new_kind","with":1}]}]}]}`,
			http.Header{"Anthropic-Beta": {"one-1, two-2"}, "Anthropic-Version": {"2023-06-01"}, "X-App": {"cli"}, "User-Agent": {"x"}},
			[]string{
				"path POST /v1/messages", "beta one-1", "beta two-2", "header Anthropic-Version 2023-06-01", "header X-App",
				"in body system", "in body/system/text cache_control", "in body/system/text/cache_control:ephemeral ttl 1h", "in body/thinking:adaptive type",
				"in body/tools input_schema", "in body/tools/web_search_20260101 name", "in body/context_management/edits/clear_1 type",
				"in assistant/tool_use input", "in user/image/source:file file_id", "in user/tool_result/new_kind with",
			},
		},
		{
			"Chat Completions", "/v1/chat/completions",
			`{"messages":[{"role":"developer","content":"x"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"high"}}]},{"role":"tool","tool_call_id":"1","content":"r"}],
			"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"hidden":1}}}],"tool_choice":"auto","stream_options":{"include_usage":true}}`,
			http.Header{"Content-Encoding": {"zstd"}},
			[]string{
				"header Content-Encoding zstd", "in developer role", "in assistant/tool_calls/function function", "in assistant/tool_calls/function/function arguments",
				"in user/image_url/image_url detail high", "in tool tool_call_id", "in body/tools/function/function strict", "in body tool_choice auto", "in body/stream_options include_usage",
			},
		},
		{
			"Responses", "/v1/responses/resp_123/cancel",
			`{"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"<system-reminder>\n<total_tokens>12 tokens left</total_tokens>\n</system-reminder>"}]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"e"},{"type":"agent_note","role":"assistant","phase":"final"},
			{"type":"function_call_output","output":[{"type":"input_image","image_url":"u"}]},{"type":"custom_tool_call","input":"x"}],
			"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},
			"tools":[{"type":"namespace","tools":[{"type":"function","name":"inner"}]},{"type":"custom","format":{"type":"grammar","syntax":"lark"}}]}`,
			http.Header{"Openai-Beta": {"responses=x"}, "Session_id": {"1"}},
			[]string{
				"path POST /v1/responses/{id}/cancel", "beta responses=x", "header Session_id", "in developer/input_text text", "reminder of developer: <total_tokens> tokens",
				"in reasoning/summary/summary_text text", "in reasoning encrypted_content", "in assistant:agent_note phase final", "in function_call_output/output/input_image image_url",
				"in custom_tool_call input", "in body include reasoning.encrypted_content", "in body/reasoning effort high", "in body/tools/namespace/tools/function name",
				"in body/tools/custom/format:grammar syntax",
			},
		},
		{"the tools of the proxy", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"hidden":1}}`, nil, []string{"mcp tools/call"}},
	} {
		habits := sent(test.path, test.body, test.header)
		for _, want := range test.want {
			if !habits[want] {
				t.Errorf("%s: %q is not seen", test.name, want)
			}
		}
		for habit := range habits {
			if strings.Contains(habit, "hidden") || strings.Contains(habit, "User-Agent") {
				t.Errorf("%s: %q is not the client's", test.name, habit)
			}
		}
	}
}

func TestEachClientHasAListOfItsHabits(t *testing.T) {
	t.Parallel()
	for _, client := range Clients() {
		if client.Package == "" {
			continue
		}
		list, err := os.ReadFile("testdata/habits/" + client.List() + ".txt")
		if err != nil || !strings.Contains(string(list), "\npath POST /v1") {
			t.Errorf("%s has no list of habits: %v; run make clients ARGS=-learn", client.Name, err)
		}
	}
}
