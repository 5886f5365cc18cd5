package ipc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
)

// said is what a session holds.
type said struct {
	orders, files []string
	ends          []int // numbers of messages after which it may end
}

// ordered is a long session in which orders are given and files are changed all along.
func ordered(turns int) (c *talk, said said) {
	c = &talk{}
	for i := range turns {
		asked := fmt.Sprintf("Task %d, please.", i)
		if i%20 == 3 {
			said.orders = append(said.orders, fmt.Sprintf("Never touch the folder legacy%d without asking me.", i))
			asked += " " + said.orders[len(said.orders)-1]
		}
		c.user(asked)
		if i%10 == 5 {
			said.files = append(said.files, fmt.Sprintf("src/module%d.go", i))
			c.tool("Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":"b"}`, said.files[len(said.files)-1]), "Updated.")
		}
		c.run("make", words(400))
		said.ends = append(said.ends, len(c.messages))
	}
	return c, said
}

// D4, D11: after 30 epochs every order and every changed file is still before the
// model, and each line says where the original is.
func TestOrdersAndChangedFilesSurviveThirtyEpochs(t *testing.T) {
	t.Parallel()

	whole, said := ordered(360)
	lane := newLane(t, 40_000, func(c *ipc.Config) {
		c.PreserveTokens, c.TargetUtilization, c.CompressTo, c.MinClear = 2_000, 0.30, 0.22, 0.02
	})
	var sealed []byte
	for i := 20; i < len(said.ends); i += 3 {
		_, sealed = send(t, lane, (&talk{messages: whole.messages[:said.ends[i]]}).body())
	}
	if lane.Epochs < 30 {
		t.Fatalf("%d epochs", lane.Epochs)
	}
	holds(t, sealed, said.orders...)
	holds(t, sealed, said.files...)
	holds(t, sealed, "[ledger of all turns up to here]", "#")
	if at := bytes.Index(sealed, []byte("[ledger of")); at > len(sealed)/4 || bytes.Count(sealed, []byte("[ledger of")) != 1 {
		t.Errorf("the ledger does not open the projection: it is at %d of %d", at, len(sealed))
	}
}

// The ledger takes a bounded part of the prompt, which counts: the epoch reaches its
// goal with it.
func TestTheLedgersBlockIsBoundedAndCounted(t *testing.T) {
	t.Parallel()

	whole, _ := ordered(400)
	for limit, most := range map[int]int{8_000: 400, 20_000: 1_400, 60_000: 3_000} {
		goal := min(9_000, limit*4/10)
		exchange, sealed := epoch(t, whole.body(), limit, func(c *ipc.Config) {
			c.PreserveTokens, c.BlockTokens, c.CompressTo = 1_000, limit/8, float64(goal)/float64(limit)
		})
		_, block, found := strings.Cut(string(sealed), "[ledger of all turns up to here]")
		block, _, _ = strings.Cut(block, `\n[turn`)
		size := newCounter(t).Count(strings.ReplaceAll(block, `\n`, "\n"))
		if !found || size > most {
			t.Errorf("limit %d: the block has %d tokens, may have %d", limit, size, most)
		}
		if exchange.Report.After > max(goal, limit*65/100) { // of a small window, what people typed takes a part
			t.Errorf("limit %d: %d tokens, the goal is %d", limit, exchange.Report.After, goal)
		}
		told, shown := 0, 0
		for _, event := range exchange.Report.Events {
			if event.Type == "directives_left_out" {
				told = event.Counts["count"]
			}
		}
		if _, cut, isCut := strings.Cut(block, `number holds:\n(`); isCut {
			_, _ = fmt.Sscanf(cut, "%d more directives not shown", &shown)
		}
		if told != shown {
			t.Errorf("limit %d: the event tells of %d directives left out, the block of %d", limit, told, shown)
		}
	}
}

// With masking nothing that a tool returned is quoted at any level.
func TestMaskingQuotesNoResultAtAnyLevel(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello there, friend.")
	for i := range 40 {
		c.add(
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"I look for the cause in step number %d."},{"type":"tool_use","id":"m%d","name":"Bash","input":{"command":"make %d"}}]}`, i, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"m%d","is_error":true,"content":%s}]}`, i, quoted("Exit code 2\nSECRET_NAME: error: it broke\n"+words(400))),
		)
	}
	c.user("Fix SECRET_FILE and go on.").run("true", "ok")
	for deepest := 1; deepest <= 3; deepest++ {
		_, sealed := epoch(t, c.body(), 2_500, small, func(config *ipc.Config) { config.DeepestLevel, config.ObservationMasking = deepest, true })
		lacks(t, sealed, "SECRET_NAME", "it broke")
		if deepest < 3 {
			holds(t, sealed, "[TOOL OUTPUT ARCHIVED]")
		}
	}
}

// C4, C6: what is left of a turn depends on the originals, the levels and the settings
// alone: a module that never saw the session makes the same bytes, and so does one
// that plans the same request again.
func TestTheSameOriginalsGiveTheSameProjection(t *testing.T) {
	t.Parallel()

	whole, _ := ordered(200)
	var first []byte
	for range 3 {
		counter := newCounter(t)
		exchange := pipelinetest.NewExchange(t, codecs()[conversation.Anthropic], whole.body(), pipelinetest.Options{
			Counter: counter, Config: modules.Catalog().Default(), Limit: 20_000,
		})
		pipeline.NewChain(ipc.New(counter.Message)).Process(t.Context(), exchange)
		sealed := pipelinetest.Seal(exchange)
		if first == nil {
			first = sealed
		}
		if !bytes.Equal(first, sealed) || exchange.Report.Levels[3] == 0 {
			t.Fatalf("levels %v: %.300s", exchange.Report.Levels, sealed)
		}
	}
}

// What the turns behind the record have solved and finished is no open error and no open task in it.
func TestLedgerKnowsWhatTheNewestTurnsSolved(t *testing.T) {
	t.Parallel()
	failing := func() *talk {
		c := (&talk{}).user("Mend the test.").add(
			`{"role":"assistant","content":[{"type":"tool_use","id":"f","name":"Bash","input":{"command":"go test ./a"}},{"type":"tool_use","id":"g","name":"TodoWrite","input":{"todos":[{"content":"Mend the cache","status":"pending"}]}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"f","is_error":true,"content":"--- FAIL: TestCache\nFAIL\tp/a"},{"type":"tool_result","tool_use_id":"g","content":"ok"}]}`)
		c.say(words(1_200)).user("Go on.")
		for i := range 3 {
			c.run(fmt.Sprintf("cat log%d", i), words(2_000))
		}
		return c
	}
	solved := func() *talk {
		c := failing().run("go test ./a", "ok  \tp/a\t0.2s")
		c.tool("TodoWrite", `{"todos":[{"content":"Mend the cache","status":"completed"}]}`, "ok")
		return c
	}
	change := func(c *ipc.Config) {
		c.PreserveLastTurns, c.PreserveTokens, c.CompressTo, c.TargetUtilization = 2, 50, 0.01, 0.50
	}

	_, open := epoch(t, failing().run("date", "Monday").run("date -u", "Monday").body(), 8_000, change)
	holds(t, open, `Open errors:\n#1 Bash go test ./a`, "Mend the cache")

	_, done := epoch(t, solved().body(), 8_000, change)
	holds(t, done, "[ledger of all turns up to here]")
	lacks(t, done, "Open errors:", "Open tasks")
}
