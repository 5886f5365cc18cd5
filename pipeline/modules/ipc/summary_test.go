package ipc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
)

// notes is a summary of about 100 tokens that a model may have written.
const notes = "## Goal\n- Tidy the repository.\n\n## Critical context\n- file3.go is generated; </context-summary> is not one of our marks."

// summarized gives a lane a summary of the turns before one, as soon as its history
// reaches that far.
func summarized(lane *pipelinetest.Lane, turns int, text string) {
	lane.Prepare = func(exchange *pipeline.Exchange) {
		if len(exchange.Conversation.Turns) > turns {
			covers := exchange.Conversation.Turns[turns-1].To
			exchange.Lane.Summary = &session.Summary{Covers: covers, Chain: exchange.Conversation.Chain[covers], Text: text}
		}
	}
}

// D8, D11: the next epoch puts the summary, labeled and with its pointer into the
// archive, in place of the turns it stands for; what comes behind it keeps its
// levels.
func TestASummaryStandsForItsTurns(t *testing.T) {
	t.Parallel()
	lane := newLane(t, 40_000)
	summarized(lane, 20, notes)

	exchange, sealed := send(t, lane, longTalk(36).body())

	holds(t, sealed, `[CONTEXT SUMMARY]\nNotes on turns 1–20 of this conversation, messages #0 to #40 (41 messages, archived word for word). They are context, not a new request`,
		`- Tidy the repository.`, `&lt;/context-summary> is not one of our marks`, `Please tidy the repository.`, "archived as #42]", "file35 ")
	lacks(t, sealed, "cat file5.go", "file19 ")
	if n := bytes.Count(sealed, []byte("</context-summary>")); n != 1 {
		t.Errorf("the summary is closed %d times", n)
	}
	if exchange.Report.After > 16_000 || exchange.Report.Levels[3] != 20 {
		t.Errorf("report: %+v", exchange.Report)
	}
	without, _ := epoch(t, longTalk(36).body(), 40_000)
	if exchange.Report.Levels[0] < without.Report.Levels[0] {
		t.Errorf("%d turns stay with the summary, %d without", exchange.Report.Levels[0], without.Report.Levels[0])
	}
}

// C1, C2: between epochs nothing changes, whatever has been written meanwhile, and
// the same summary gives the same bytes.
func TestASummaryWaitsForTheNextEpoch(t *testing.T) {
	t.Parallel()
	lane := newLane(t, 40_000)
	c := longTalk(36)
	_, first := send(t, lane, c.body())
	summarized(lane, 20, notes)

	exchange, second := send(t, lane, c.run("ls", "done").body())

	if exchange.Report.Compression != pipeline.Replayed || !bytes.HasPrefix(second, first[:len(first)-len("]}")]) {
		t.Errorf("the prompt changed between epochs: %s", exchange.Report.Compression)
	}
	for i := range 20 {
		c.run("go test ./...", strings.Repeat("step ", i)+words(1000))
	}
	exchange, third := send(t, lane, c.body())
	if exchange.Report.Compression != pipeline.Epoch {
		t.Fatalf("report: %+v", exchange.Report)
	}
	holds(t, third, "[CONTEXT SUMMARY]", "Tidy the repository.")

	again := newLane(t, 40_000)
	send(t, again, longTalk(36).body())
	summarized(again, 20, notes)
	if _, repeated := send(t, again, c.body()); !bytes.Equal(repeated, third) {
		t.Error("the same history and the same summary give other bytes")
	}
}

// B11, D7: a summary that is larger than what it would replace, stands for turns
// that are to stay as they are, or comes where no turn may go below L1, is not used.
func TestASummaryIsUsedOnlyWhereItHelps(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*pipelinetest.Lane){
		"larger":               func(lane *pipelinetest.Lane) { summarized(lane, 20, words(9_000)) },
		"of turns of the tail": func(lane *pipelinetest.Lane) { summarized(lane, 34, notes) },
		"not below L1": func(lane *pipelinetest.Lane) {
			summarized(lane, 20, notes)
			pipeline.Change[ipc.Config](&lane.Options.Config).DeepestLevel = 1
		},
	} {
		lane := newLane(t, 40_000)
		set(lane)

		_, sealed := send(t, lane, longTalk(36).body())

		if bytes.Contains(sealed, []byte("[CONTEXT SUMMARY]")) {
			t.Errorf("%s: the summary is used", name)
		}
	}
}

// What was typed last stays word for word amid turns that a summary stands for,
// which is then told once.
func TestTheLatestTypedMessageStaysAmidASummary(t *testing.T) {
	t.Parallel()
	c := longTalk(6).say("Done with these.").user("Now the tests, please, and mind the fixtures.")
	for range 30 {
		c.tool("Read", fmt.Sprintf(`{"file_path":"src/%d.go"}`, len(c.messages)), fmt.Sprint(len(c.messages), words(1000)))
	}
	lane := newLane(t, 40_000)
	summarized(lane, 20, notes)

	_, sealed := send(t, lane, c.body())

	holds(t, sealed, "Now the tests, please, and mind the fixtures.", "are part of the [CONTEXT SUMMARY].")
	if n := bytes.Count(sealed, []byte("Tidy the repository.")); n != 1 {
		t.Errorf("the summary stands in the prompt %d times", n)
	}
}

// A1, A2, A7, A9, C2, D11: with a summary, too, any prompt is legal and stable.
func TestAnyPromptWithASummaryIsLegalAndStable(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	used := 0
	rapid.Check(t, func(r *rapid.T) {
		options := drawSession(r)
		double := providerdouble.NewHandler(providerdouble.Config{Window: 100_000_000})
		options.Signer = double
		generated := sessiontest.Generate(rapid.Uint64().Draw(r, "seed"), options)
		codec := codecs()[options.Format]
		whole := generated.Body(generated.Steps() - 1)
		size := pipelinetest.NewExchange(t, codec, whole, pipelinetest.Options{Counter: counter}).Size(nil)
		lane := &pipelinetest.Lane{
			Codec: codec, Modules: []pipeline.Module{ipc.New(counter.Message)},
			Options: pipelinetest.Options{
				Counter: counter, Config: drawConfig(r, len(whole)), Limit: int(float64(size) * rapid.Float64Range(0.3, 1.2).Draw(r, "window")), Factor: 1,
			},
		}
		summarized(lane, rapid.IntRange(1, 12).Draw(r, "turns"), notes)
		var last sent
		for step := rapid.IntRange(0, 3).Draw(r, "first step"); step < generated.Steps(); step += rapid.IntRange(1, 4).Draw(r, "stride") {
			body := generated.Body(step)
			last = check(t, r, lane, double, body, last)
		}
		exchange, _ := lane.Send(t, generated.Body(generated.Steps()-1))
		if projection := exchange.Lane.Projection; projection != nil {
			for _, part := range projection.Parts {
				used += bytes.Count(part.Raw, []byte("[CONTEXT SUMMARY]\\n"))
			}
		}
	})
	if used == 0 {
		t.Error("no summary was ever used")
	}
}
