package ipc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/anthropic"
)

// longTalk has so many turns of about 1,000 tokens, each a call and its result.
func longTalk(turns int) *talk {
	c := (&talk{}).user("Please tidy the repository.")
	for i := range turns {
		c.run(fmt.Sprintf("cat file%d.go", i), fmt.Sprintf("file%d %s", i, words(1000)))
	}
	return c
}

func TestAPromptUnderItsTargetIsLeftAlone(t *testing.T) {
	t.Parallel()

	body := longTalk(20).body()
	exchange, sealed := epoch(t, body, 40_000)

	if !bytes.Equal(body, sealed) {
		t.Error("the body has changed")
	}
	report := exchange.Report
	if report.Compression != pipeline.None || len(report.Events) != 0 || report.Modules[0].Outcome != pipeline.Noop {
		t.Errorf("report: %+v", report)
	}
}

func TestAPromptAboveItsTargetGoesDownToItsGoal(t *testing.T) {
	t.Parallel()

	exchange, sealed := epoch(t, longTalk(36).body(), 40_000)

	report := exchange.Report
	if report.Compression != pipeline.Epoch || report.After > 16_000 || report.After < 8_000 {
		t.Errorf("%s: %d of %d", report.Compression, report.After, report.Limit)
	}
	if got := exchange.Size(exchange.Lane.Projection); got != report.After {
		t.Errorf("reported %d, sized %d", report.After, got)
	}
	wants(t, exchange, "started", "target")
	wants(t, exchange, "completed", "target")
	if report.Archived == 0 || report.Modules[0].Outcome != pipeline.Applied {
		t.Errorf("report: %+v", report)
	}
	holds(t, sealed, "Bash(cat file0.go)", "file35 ")
}

// B2: what precedes the messages counts.
func TestTheSystemPromptCounts(t *testing.T) {
	t.Parallel()

	c := longTalk(20)
	if exchange, _ := epoch(t, c.body(), 30_000); exchange.Report.Compression != pipeline.None {
		t.Fatalf("without a system prompt: %+v", exchange.Report)
	}
	c.system = words(6_000)

	exchange, sealed := epoch(t, c.body(), 30_000)

	if exchange.Report.Compression != pipeline.Epoch {
		t.Errorf("with a system prompt: %+v", exchange.Report)
	}
	holds(t, sealed, quoted(c.system))
}

// B5, B8: the same conversation, sent on to a model with a smaller window, is
// compressed before it is sent.
func TestASmallerLimitIsHeededAtOnce(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 200_000)
	c := longTalk(40)
	if exchange, _ := send(t, lane, c.body()); exchange.Report.Compression != pipeline.None {
		t.Fatalf("large window: %+v", exchange.Report)
	}
	lane.Options.Limit = 32_000

	exchange, _ := send(t, lane, c.run("ls", "done").body())

	if exchange.Report.Compression != pipeline.Epoch || exchange.Report.After > 32_000*4/10 {
		t.Errorf("small window: %+v", exchange.Report)
	}
	wants(t, exchange, "started", "limit")
}

// B7: without a known window nothing is compressed ahead.
func TestAnUnknownModelIsLeftAlone(t *testing.T) {
	t.Parallel()

	exchange, _ := epoch(t, longTalk(40).body(), 0)

	if exchange.Lane.Projection != nil || exchange.Report.Compression != pipeline.None {
		t.Errorf("report: %+v", exchange.Report)
	}
	wants(t, exchange, "skipped", "unknown_model")
}

func TestAHistoryThatMustNotBeEditedIsLeftAlone(t *testing.T) {
	t.Parallel()

	body := bytes.Replace(longTalk(40).body(), []byte(`"max_tokens"`), []byte(`"compaction":{"type":"summarize"},"max_tokens"`), 1)
	lane := newLane(t, 30_000)
	exchange, sealed := lane.Send(t, body)

	if !bytes.Equal(body, sealed) || exchange.Report.Compression != pipeline.Bypassed {
		t.Errorf("report: %+v", exchange.Report)
	}
	wants(t, exchange, "skipped", "compaction")
}

func TestCompressionCanBeTurnedOff(t *testing.T) {
	t.Parallel()

	exchange, _ := epoch(t, longTalk(40).body(), 30_000, func(c *ipc.Config) { c.DeepestLevel = 0 })
	wants(t, exchange, "skipped", "deepest_level")
	if exchange.Lane.Projection != nil {
		t.Error("there is a projection")
	}

	exchange, _ = epoch(t, longTalk(40).body(), 30_000, func(c *ipc.Config) { c.ArchiveToBlob = false })
	wants(t, exchange, "skipped", "archive_off")
	if exchange.Lane.Projection != nil {
		t.Error("there is a projection without an archive")
	}
}

// B10: behind an epoch there is room for a while.
func TestAnEpochDoesNotTriggerTheNext(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 40_000)
	c := longTalk(36)
	send(t, lane, c.body())
	for i := range 12 {
		exchange, _ := send(t, lane, c.run("make", fmt.Sprintf("ok %d %s", i, words(900))).body())
		if exchange.Report.Compression != pipeline.Replayed {
			t.Fatalf("request %d: %+v", i, exchange.Report)
		}
	}
	if lane.Epochs != 1 {
		t.Errorf("%d epochs", lane.Epochs)
	}
}

// B10: an epoch that frees less than minClear does not happen.
func TestAnEpochMustFreeEnough(t *testing.T) {
	t.Parallel()

	// All but little of the prompt are newest turns and what a person typed last.
	c := (&talk{}).user("Hello.").run("ls", words(1_000)).user("Read this: "+words(23_000)).run("true", "ok")
	exchange, sealed := epoch(t, c.body(), 32_000)

	if !bytes.Equal(c.body(), sealed) || exchange.Report.Compression != pipeline.Unreachable {
		t.Errorf("report: %+v", exchange.Report)
	}
	wants(t, exchange, "target_unreachable", "")
}

// B9: a prompt whose fixed part is above the target goes through without an
// epoch for each request.
func TestATargetOutOfReachMakesNoLoop(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 50_000)
	c := longTalk(3)
	c.system = words(39_000)
	unreachable := 0
	for i := range 50 {
		exchange, _ := send(t, lane, c.run("make", fmt.Sprintf("ok %d %s", i, words(60))).body())
		if exchange.Report.Compression == pipeline.Unreachable {
			unreachable++
			wants(t, exchange, "target_unreachable", "")
		}
	}
	if lane.Epochs > 2 {
		t.Errorf("%d epochs in 50 requests", lane.Epochs)
	}
	if unreachable == 0 {
		t.Error("nothing told of the target")
	}
}

// B9: what helps is done once, even if the target stays out of reach.
func TestOutOfReachWhatHelpsIsDoneOnce(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 50_000)
	c := longTalk(9)
	c.system = words(38_000)
	exchange, _ := send(t, lane, c.body())
	if exchange.Report.Compression != pipeline.Unreachable || lane.Epochs != 1 || exchange.Report.After > 41_000 {
		t.Fatalf("%d epochs, report %+v", lane.Epochs, exchange.Report)
	}
	for i := range 50 {
		send(t, lane, c.run("make", fmt.Sprintf("ok %d", i)).body())
	}
	if lane.Epochs > 2 {
		t.Errorf("%d epochs", lane.Epochs)
	}
}

// B13: a tool result that alone fills the window is cut in its middle; what was
// typed is not.
func TestAResultLargerThanTheWindowIsCutInItsMiddle(t *testing.T) {
	t.Parallel()

	c := longTalk(2).user("Now the log.").run("cat log", "FIRST LINE\n"+words(50_000)+"\nLAST LINE")
	exchange, sealed := epoch(t, c.body(), 30_000)

	if exchange.Report.After > 30_000 {
		t.Errorf("sent %d of %d", exchange.Report.After, exchange.Report.Limit)
	}
	holds(t, sealed, "FIRST LINE", "LAST LINE", "Now the log.", "characters archived as #7] …")
	wants(t, exchange, "truncated", "")

	// The next requests replay it.
	lane := newLane(t, 30_000)
	send(t, lane, c.body())
	_, before := send(t, lane, c.run("true", "ok").body())
	_, after := send(t, lane, c.run("true", "ok").body())
	if lane.Epochs != 1 || !bytes.HasPrefix(after, bytes.TrimSuffix(before, []byte("]}"))) {
		t.Errorf("%d epochs; not replayed", lane.Epochs)
	}
}

// B13: also where there is nothing else to compress.
func TestAHugeFirstResultIsCutInItsMiddle(t *testing.T) {
	t.Parallel()

	exchange, sealed := epoch(t, (&talk{}).user("The log, please.").run("cat log", "FIRST\n"+words(50_000)+"\nLAST").body(), 30_000)

	if exchange.Report.After > 30_000 || exchange.Report.Levels != [4]int{0, 1} {
		t.Errorf("sent %d, levels %v", exchange.Report.After, exchange.Report.Levels)
	}
	holds(t, sealed, "FIRST", "LAST", "archived as #2 of archive ")
}

// B13: a typed text that alone does not fit goes to the provider as it is.
func TestATypedTextIsNeverCut(t *testing.T) {
	t.Parallel()

	typed := words(40_000)
	c := longTalk(3).user(typed)
	exchange, sealed := epoch(t, c.body(), 30_000)

	holds(t, sealed, quoted(typed))
	if exchange.Report.Compression != pipeline.Unreachable {
		t.Errorf("report: %+v", exchange.Report)
	}
}

// B14: one request and 80 tool calls.
func TestAOneTurnSessionIsCutBetweenItsToolCalls(t *testing.T) {
	t.Parallel()

	prompt := "Please port the whole repository to the new API. " + words(300)
	lane := newLane(t, 40_000)
	c := (&talk{}).user(prompt)
	for i := range 80 {
		exchange, sealed := send(t, lane, c.run(fmt.Sprintf("cat file%d.go", i), fmt.Sprintf("file%d %s", i, words(1000))).body())
		holds(t, sealed, quoted(prompt), fmt.Sprintf("file%d ", i))
		if exchange.Report.After > exchange.Report.Limit*3/4 {
			t.Fatalf("request %d has %d of %d", i, exchange.Report.After, exchange.Report.Limit)
		}
	}
	if lane.Epochs == 0 || lane.Epochs > 6 {
		t.Errorf("%d epochs", lane.Epochs)
	}
}

// B15: in a small window the preserved tail shrinks.
func TestInASmallWindowTheTailShrinks(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 8_000)
	c := longTalk(0)
	for i := range 30 {
		exchange, sealed := send(t, lane, c.run(fmt.Sprintf("cat file%d.go", i), fmt.Sprintf("file%d %s", i, words(1500))).body())
		holds(t, sealed, fmt.Sprintf("file%d ", i))
		if exchange.Report.After > 8_000 {
			t.Fatalf("request %d has %d of 8000", i, exchange.Report.After)
		}
	}
}

func TestTheNewestTurnsAndTokensStayAsTheyAre(t *testing.T) {
	t.Parallel()

	c := longTalk(60)
	exchange, _ := epoch(t, c.body(), 70_000)
	if tail := len(exchange.Conversation.Digests) - exchange.Lane.Projection.Covers; tail < 2*8 { // half the goal in turns of 1,000
		t.Errorf("kept %d messages", tail)
	}
}

// E1: without the archive's word the original goes out.
func TestWithoutTheArchiveTheOriginalGoesOut(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 40_000)
	lane.Options.Commit = func(context.Context, session.Projection) error { return errors.New("connection refused") }
	body := longTalk(36).body()
	exchange, sealed := send(t, lane, body)

	if !bytes.Equal(body, sealed) || exchange.Lane.Projection != nil {
		t.Error("the prompt was shortened although its originals are not durable")
	}
	wants(t, exchange, "failed", "archive originals: connection refused")
	if exchange.Report.Modules[0].Outcome != pipeline.Failed || exchange.Report.After != exchange.Report.Before {
		t.Errorf("report: %+v", exchange.Report)
	}
}

// E1: with an earlier projection that one is replayed.
func TestWithoutTheArchiveTheOldProjectionGoesOut(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 40_000)
	c := longTalk(36)
	_, first := send(t, lane, c.body())
	lane.Options.Commit = func(context.Context, session.Projection) error { return errors.New("disk full") }
	for i := range 20 {
		c.run("make", fmt.Sprintf("ok %d %s", i, words(1000)))
	}
	exchange, sealed := send(t, lane, c.body())

	if !bytes.HasPrefix(sealed, bytes.TrimSuffix(first, []byte("]}"))) {
		t.Error("the projection that stood was not replayed")
	}
	if event := exchange.Report.Events[len(exchange.Report.Events)-1]; event.FellBackTo != "projection 1" {
		t.Errorf("event: %+v", event)
	}
}

// C2, C3, C10: busts are epochs, and there are few of them.
func TestALongSessionHasFewEpochs(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ turns, epochs, perRequest int }{{200, 10, 1}, {600, 20, 3}} {
		t.Run(fmt.Sprintf("%d turns", c.turns), func(t *testing.T) {
			t.Parallel()
			lane := newLane(t, 200_000, byDefault)
			conversation := &talk{system: words(20_000)}
			busts, peak := 0, 0
			var before []byte
			for i := range c.turns {
				conversation.user(fmt.Sprintf("Next, change handler%d.go. Keep the tests green.", i))
				conversation.run(fmt.Sprintf("cat handler%d.go", i), fmt.Sprintf("handler%d %s", i, words(1_900)))
				if i%c.perRequest > 0 {
					continue // a request for each third turn shows as much
				}
				exchange, sealed := lane.Send(t, conversation.body())
				if before != nil && !bytes.HasPrefix(sealed, before) {
					busts++
				}
				before = bytes.TrimSuffix(sealed, []byte("]}"))
				peak = max(peak, exchange.Report.After)
			}
			t.Logf("%d epochs, %d busts, peak %d", lane.Epochs, busts, peak)
			if busts != lane.Epochs || lane.Epochs > c.epochs || lane.Epochs == 0 {
				t.Errorf("%d epochs, %d busts", lane.Epochs, busts)
			}
			if peak > ipc.DefaultConfig().Target(200_000)+2_000 {
				t.Errorf("the largest prompt had %d tokens", peak)
			}
		})
	}
}

// C10: all L3 text of a lane is bounded.
func TestL3IsBounded(t *testing.T) {
	t.Parallel()

	c := &talk{}
	for i := range 400 {
		c.user(fmt.Sprintf("Task %d: change handler%d.go and keep the tests green, please.", i, i))
		c.run(fmt.Sprintf("cat some/long/path/handler%d.go", i), words(150))
	}
	counter := newCounter(t)
	for _, bound := range []int{500, 2_000, 8_000} {
		exchange, sealed := epoch(t, c.body(), 16_000, func(config *ipc.Config) { config.BlockTokens = bound })
		if exchange.Report.Levels[3] < 300 {
			t.Fatalf("levels %v", exchange.Report.Levels)
		}
		text := bytes.Buffer{}
		for line := range strings.SplitSeq(string(sealed), `\n`) {
			if slices.ContainsFunc([]string{"[turn", "Assistant: ", "Changed: ", "Read: ", "Checks: ", "Failed: ", "Names: "}, func(start string) bool { return strings.HasPrefix(line, start) }) {
				line, _, _ = strings.Cut(line, `"}`)
				text.WriteString(line + "\n")
			}
		}
		if tokens := counter.Count(text.String()); tokens > bound || tokens < min(bound/8, 300) { // the window is small
			t.Errorf("L3 has %d tokens, may have %d", tokens, bound)
		}
	}
}

// C4, C6: the same history gives the same bytes in any process at any time.
func TestRenderingIsAPureFunction(t *testing.T) {
	t.Parallel()

	c := &talk{}
	for i := range 60 {
		c.user(fmt.Sprintf("Task %d.", i)).run("make", fmt.Sprintf("done %d %s", i, words(600)))
	}
	_, want := epoch(t, c.body(), 16_000)
	for range 5 {
		if _, got := epoch(t, c.body(), 16_000); !bytes.Equal(got, want) {
			t.Fatal("two renderings differ")
		}
	}
}

// B11: what would grow stays as it is.
func TestNothingGrows(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Go.")
	for range 30 {
		c.run("x", strings.Repeat("12345 ", 34)+"end") // 207 characters: the suffix is longer than what it replaces
	}
	c.run("big", words(3_000)).user("And?")
	for range 6 {
		c.run("y", "ok")
	}
	exchange, sealed := epoch(t, c.body(), 6_500, func(config *ipc.Config) { config.DeepestLevel = 1; config.PreserveTokens = 0 })

	if exchange.Report.Compression == pipeline.None || exchange.Lane.Projection == nil {
		t.Fatalf("report: %+v", exchange.Report)
	}
	for _, part := range exchange.Lane.Projection.Parts {
		original := 0
		for _, digest := range exchange.Conversation.Digests[part.From:part.To] {
			original += digest.Tokens
		}
		if part.Tokens > original {
			t.Errorf("messages %d to %d grew from %d to %d tokens", part.From, part.To, original, part.Tokens)
		}
	}
	if bytes.Count(sealed, []byte("archived as")) != 1 {
		t.Error("a small result was replaced by a longer text")
	}
}

func TestAReportedSizeCountsMoreThanTheEstimate(t *testing.T) {
	t.Parallel()

	counter := newCounter(t)
	body := longTalk(20).body() // about 20,000 o200k tokens
	lane := newLane(t, 40_000)
	exchange := pipelinetest.NewExchange(t, anthropic.New(), body, pipelinetest.Options{Counter: counter})
	lane.Options.Anchor = session.Anchor{Position: len(exchange.Conversation.Digests), Fixed: exchange.Limits.Fixed, Tokens: 36_000}

	after, _ := send(t, lane, body)

	if after.Report.Compression != pipeline.Epoch || after.Report.Before != 36_000 || after.Report.After > 16_000 {
		t.Errorf("report: %+v", after.Report)
	}
}
