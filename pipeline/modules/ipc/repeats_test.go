package ipc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/openaichat"
)

// twice is a conversation in which a tool is called twice, with what it returns.
func twice(tool, arguments, first, second string) []byte {
	call := func(id string) string {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, id, tool, arguments)
	}
	result := func(id, text string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text)
	}
	return []byte(`{"model":"m","messages":[{"role":"user","content":"begin"},` +
		strings.Join([]string{call("one"), result("one", first), call("two"), result("two", second)}, ",") + `]}`)
}

// linesOf returns so many lines that no other name has.
func linesOf(name string, count int) string {
	lines := make([]string, count)
	for i := range lines {
		lines[i] = fmt.Sprintf("%s: step %d has come to its end", name, i)
	}
	return strings.Join(lines, "\n")
}

const runsTests = `{"command":"make test"}`

// Which results become pointers, and which do not.
func TestOnlyLongResultsThatStandInThePromptArePointedAt(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	log := linesOf("build", 150)
	for _, test := range []struct {
		name   string
		body   []byte
		change func(*pipeline.Exchange)
		points bool
	}{
		{"a log that comes again", twice("Bash", runsTests, log, log+"\nok"), nil, true},
		{"a search that comes again", twice("Grep", `{"pattern":"step"}`, log, "found\n"+log), nil, true},
		{"with the setting off", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) { pipeline.Change[ipc.Config](&e.Config).Repeats = ipc.RepeatsKeep }, false},
		{"with compression off", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) { pipeline.Change[ipc.Config](&e.Config).DeepestLevel = 0 }, false},
		{"without an archive", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) { pipeline.Change[ipc.Config](&e.Config).ArchiveToBlob = false }, false},
		{"in a client's own compaction", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) { e.Class.Kind = client.Compaction }, false},
		{"once the provider has seen it", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) { e.Heat = session.CacheState{At: time.Unix(1, 0), Position: 5} }, false},
		{"where the provider takes results out", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) { e.Request.TakesOut = true }, false},
		{"what an epoch has compressed", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) {
			e.Projection = &session.Projection{Number: 1, Covers: 3, Chain: e.Chain[3], Parts: []session.Part{
				{From: 0, To: 1, Messages: 1, Tokens: 1}, {From: 1, To: 3, Level: 2, Raw: []byte(`{"role":"user","content":"record"}`), Messages: 1, Tokens: 5},
			}}
		}, false},
		{"what stands before a provider's compaction", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) { e.Digests[3].Flags |= conversation.IsBoundary }, false},
		{"what stands between two compactions of the provider's", twice("Bash", runsTests, log, log), func(e *pipeline.Exchange) {
			e.Digests[0].Flags |= conversation.IsBoundary
			e.Digests[3].Flags |= conversation.IsBoundary
		}, false},
		{"a file that is read again", twice("Read", `{"file_path":"/a.go"}`, log, log), nil, false},
		{"a file that the shell prints", twice("Bash", `{"command":"cat a.go"}`, log, log), nil, false},
		{"what an edit returns", twice("Edit", `{"file_path":"/a.go","old_string":"a","new_string":"b"}`, log, log), nil, false},
		{"a short result", twice("Bash", runsTests, linesOf("build", 40), linesOf("build", 40)), nil, false},
		{"another log", twice("Bash", runsTests, log, linesOf("deploy", 150)), nil, false},
		{"a log of which little comes again", twice("Bash", runsTests, linesOf("build", 30), linesOf("build", 30)+"\n"+linesOf("deploy", 150)), nil, false},
		{"lines that come again one by one", twice("Bash", runsTests, log, strings.ReplaceAll(log, "\n", "\nnew\n")), nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config := modules.Catalog().Default()
			pipeline.Change[ipc.Config](&config).Repeats = ipc.RepeatsPoint
			exchange := pipelinetest.NewExchange(t, openaichat.New(), test.body, pipelinetest.Options{Counter: counter, Config: config, Limit: 1_000_000})
			if test.change != nil {
				test.change(exchange)
			}
			if err := pipelinetest.Process(t.Context(), ipc.New(counter.Message), exchange); err != nil {
				t.Fatal(err)
			}
			if points := len(exchange.Inserts) > 0; points != test.points {
				t.Fatalf("pointers: %+v", exchange.Inserts)
			}
			if sealed := pipelinetest.Seal(exchange); test.points && len(sealed) > len(test.body)-4000 {
				t.Errorf("%d of %d bytes are sent", len(sealed), len(test.body))
			}
		})
	}
}

// BenchmarkRepeats measures a request that brings a long log behind a million tokens of
// other results.
func BenchmarkRepeats(b *testing.B) {
	counter := newCounter(b)
	body := []string{`{"model":"m","messages":[{"role":"user","content":"begin"}`}
	for i := range 400 {
		body = append(body, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"make test\"}"}}]}`, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, linesOf(fmt.Sprintf("log %d", i), 250)))
	}
	config := modules.Catalog().Default()
	pipeline.Change[ipc.Config](&config).Repeats = ipc.RepeatsPoint
	exchange := pipelinetest.NewExchange(b, openaichat.New(), []byte(strings.Join(body, ",")+"]}"), pipelinetest.Options{Counter: counter, Config: config, Limit: 10_000_000})
	b.ReportMetric(float64(exchange.Size(nil)), "tokens")
	for b.Loop() {
		if err := pipelinetest.Process(b.Context(), ipc.New(counter.Message), exchange); err != nil {
			b.Fatal(err)
		}
	}
}
