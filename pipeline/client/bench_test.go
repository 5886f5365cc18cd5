package client_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// BenchmarkClassify reads a request of Claude Code's of 800 KB: 40 KB of reminders
// before the first typed words, 20 KB of tool result at the end.
func BenchmarkClassify(b *testing.B) {
	reminder := "<system-reminder>\n" + strings.Repeat("Today is a good day.\n", 480) + "</system-reminder>\n"
	messages := []string{`{"role":"user","content":[` + strings.Repeat(block(reminder)+",", 4) + block("fix the parser") + `]}`}
	for size := 0; size < 760_000; {
		turn := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a.go"}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"` + strings.Repeat(`func f() {}\n`, 1600) + `"}]}`
		messages, size = append(messages, turn), size+len(turn)
	}
	body := `{"model":"m","system":[` + block("x-anthropic-billing-header: cc_version=2;") + "," + block(strings.Repeat("You are an agent. ", 1000)) + `],"messages":[` + strings.Join(messages, ",") + `]}`
	envelope := open(b, anthropic.Codec{}, []byte(body))
	headers := header("User-Agent", "claude-cli/2.1.329 (external, sdk-cli)", "X-Claude-Code-Session-Id", "s1")
	b.ReportAllocs()
	for b.Loop() {
		if class := client.Classify(headers, "/v1/messages", envelope); class.Kind != client.Main {
			b.Fatalf("%+v", class)
		}
	}
	b.ReportMetric(float64(len(body))/1000, "KB/body")
}

// block is a text block.
func block(text string) string {
	return `{"type":"text","text":` + string(wire.Quote(text)) + `}`
}
