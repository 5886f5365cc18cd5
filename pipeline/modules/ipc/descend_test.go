package ipc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
)

// manyTasks has so many short turns that their L3 fills a small window.
func manyTasks(turns int) *talk {
	c := &talk{}
	for i := range turns {
		c.user(fmt.Sprintf("Task %d: change handler%d.go and keep the tests green, please.", i, i))
		c.run(fmt.Sprintf("cat some/long/path/handler%d.go", i), words(150))
	}
	return c
}

// event returns an exchange's event of a type.
func event(t *testing.T, exchange *pipeline.Exchange, kind string) pipeline.ReportEntry {
	t.Helper()
	for _, event := range exchange.Report.Events {
		if event.Type == kind {
			return event
		}
	}
	t.Fatalf("no event %s: %+v", kind, exchange.Report.Events)
	return pipeline.ReportEntry{}
}

// B15: where L3 within its bound is still too much, it grows coarser; nothing is
// left out.
func TestL3GrowsCoarserWhereTheTargetIsExceeded(t *testing.T) {
	t.Parallel()

	for _, window := range []int{4_000, 6_000, 9_000} {
		exchange, sealed := epoch(t, manyTasks(600).body(), window, func(c *ipc.Config) { c.BlockTokens = 8_000 })

		if report := exchange.Report; report.Compression != pipeline.Epoch || report.After > window*3/4 || report.Levels[3] < 500 {
			t.Errorf("window %d: %s, %d tokens, levels %v", window, report.Compression, report.After, report.Levels)
		}
		holds(t, sealed, "[turns 1–", "Task 599: change handler599.go")
		lacks(t, sealed, "left out")
	}
}

// B14: Responses may have a whole tool loop in one turn, whose calls depend on the
// reasoning at its head. Its older results are cut, the newest group is not.
func TestALoopInOneTurnIsCutBetweenItsGroups(t *testing.T) {
	t.Parallel()

	const calls = 80
	items := []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Port the whole repository."}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAA"}`,
	}
	lane := newLane(t, 40_000)
	lane.Codec = codecs()[conversation.OpenAIResponses]
	for i := range calls {
		items = append(items,
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"shell","arguments":"{\"command\":\"cat file%d.go\"}"}`, i, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":"file%d %s"}`, i, i, words(1000)))
		body := fmt.Appendf(nil, `{"model":"gpt-5","store":false,"input":[%s]}`, strings.Join(items, ","))
		exchange, sealed := lane.Send(t, body)
		if err := pipelinetest.CheckProjection(exchange); err != nil {
			t.Fatal(err)
		}
		if len(exchange.Conversation.Turns) != 1 {
			t.Fatalf("%d turns", len(exchange.Conversation.Turns))
		}
		if exchange.Report.After > 30_000 {
			t.Fatalf("request %d has %d tokens: %+v", i, exchange.Report.After, exchange.Report)
		}
		holds(t, sealed, items[0], items[1], items[len(items)-1])
	}
	if lane.Epochs == 0 || lane.Epochs > 6 {
		t.Errorf("%d epochs", lane.Epochs)
	}
}

// A turn that is the newest at an epoch may go on after it.
func TestATurnThatGoesOnKeepsWhatWasCut(t *testing.T) {
	t.Parallel()

	items := []string{`{"type":"message","role":"user","content":"Go."}`, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAA"}`}
	add := func(i, tokens int) {
		items = append(items,
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"shell","arguments":"{}"}`, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":"file%d %s"}`, i, i, words(tokens)))
	}
	lane := newLane(t, 20_000)
	lane.Codec = codecs()[conversation.OpenAIResponses]
	request := func() (*pipeline.Exchange, []byte) {
		return lane.Send(t, fmt.Appendf(nil, `{"model":"gpt-5","store":false,"input":[%s]}`, strings.Join(items, ",")))
	}
	add(0, 9_000)
	add(1, 9_000)
	_, first := request()
	add(2, 9_000)
	exchange, second := request()

	if lane.Epochs != 2 || exchange.Report.After > 15_000 {
		t.Errorf("%d epochs, %+v", lane.Epochs, exchange.Report)
	}
	cut, _, found := strings.Cut(string(first), " archived as #3 of archive ")
	if !found {
		t.Fatalf("the first result was not cut: %.500s", first)
	}
	holds(t, second, cut+" archived as #3]", "archived as #5 of archive ", items[len(items)-1])
}

// B13, D11, E5: as the last step before the provider's error what was folded first
// is left out. The model and the event tell what, and where it is.
func TestWhatWasFoldedFirstIsLeftOut(t *testing.T) {
	t.Parallel()

	c := manyTasks(600)
	c.system = words(7_500)
	lane := newLane(t, 8_000)
	exchange, sealed := send(t, lane, c.body())

	if report := exchange.Report; report.Compression != pipeline.Truncated || report.After > 8_000 {
		t.Fatalf("%s: %d of %d: %+v", report.Compression, report.After, report.Limit, report.Events)
	}
	holds(t, sealed, "[turns 1–", " left out: ", " messages, archived as #0 to #", "The user asked first: Task 0: change handler0.go", quoted(c.system), "Task 599")
	counts := event(t, exchange, "truncated").Counts
	if counts["archive_from"] != 0 || counts["archive_to"] < 600 || counts["dropped"] < counts["archive_to"]-2 {
		t.Errorf("event: %v", counts)
	}
	wants(t, exchange, "completed", "limit")

	// It is replayed like any projection.
	next, again := send(t, lane, c.run("true", "ok").body())
	if next.Report.Compression == pipeline.Truncated || !bytes.HasPrefix(again, bytes.TrimSuffix(sealed, []byte("]}"))) {
		t.Errorf("not replayed: %+v", next.Report)
	}
}

// As little as possible is left out: results that alone do it are cut instead.
func TestNoMoreIsLeftOutThanItTakes(t *testing.T) {
	t.Parallel()

	c := manyTasks(100).run("cat log", "FIRST "+words(30_000)+" LAST")
	exchange, sealed := epoch(t, c.body(), 12_000)

	if report := exchange.Report; report.Compression != pipeline.Truncated || report.After > 12_000 {
		t.Errorf("%+v", report)
	}
	holds(t, sealed, "FIRST", "LAST", "Task 0")
	lacks(t, sealed, "left out")
	if counts := event(t, exchange, "truncated").Counts; counts["dropped"] != 1 || counts["archive_from"] != 301 || counts["archive_to"] != 302 {
		t.Errorf("event: %v", counts)
	}
}

// B13: where what was typed does not fit, nothing is left out for it: the provider
// refuses it whatever else the prompt holds.
func TestNothingIsLeftOutInVain(t *testing.T) {
	t.Parallel()

	typed := words(40_000)
	exchange, sealed := epoch(t, manyTasks(200).user(typed).body(), 20_000)

	holds(t, sealed, quoted(typed), "Task 0")
	lacks(t, sealed, "left out")
	if exchange.Report.Compression != pipeline.Unreachable {
		t.Errorf("report: %+v", exchange.Report)
	}
	wants(t, exchange, "target_unreachable", "")
}

// B9: what nobody can help is found out without reading the history.
func TestAPlanThatCannotHelpIsCheap(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello.").run("ls", words(500)).user("Read this: "+words(40_000)).run("true", "ok").run("true", "ok")
	lane := newLane(t, 50_000)
	counter, calls := newCounter(t), 0
	lane.Modules = []pipeline.Module{ipc.New(func(message conversation.Message) int {
		calls++
		return counter.Message(message)
	})}
	exchange, _ := send(t, lane, c.body())

	wants(t, exchange, "target_unreachable", "")
	if exchange.Report.Compression != pipeline.Unreachable || lane.Epochs != 0 || calls != 0 {
		t.Errorf("%d epochs, %d messages counted: %+v", lane.Epochs, calls, exchange.Report)
	}
}

// Larger blocks keep the outline of many turns within its bound, so a plan must not shorten other turns
// as if each block had only a few.
func TestTheOutlineOfManyTurnsCostsNoNewerTurns(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Please tidy the repository.")
	for i := range 1000 {
		c.run(fmt.Sprintf("make check%d", i), words(60)+"\nPASS")
	}
	lane := newLane(t, 64_000, byDefault, func(config *ipc.Config) { config.PreserveTokens = 0 })
	exchange, _ := send(t, lane, c.body())

	if report := exchange.Report; report.After < 7_000 || report.After > 9_600 {
		t.Errorf("%d tokens for a goal of 9,600, levels %v", report.After, report.Levels)
	}
}
