package compactionbridge_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

const path = "/v1/messages"

// compacted lets a client work, ask for a summary and go on from it.
func compacted(t *testing.T, k *talk, header http.Header) *prompt.Prompt {
	t.Helper()
	before := worked()
	k.send(t, header, path, body(t, before[:len(before)-2]...))
	k.send(t, header, path, body(t, before...))
	k.send(t, header, path, body(t, append(before, answer("I will look."), user("CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far."))...))
	return k.send(t, header, path, body(t, user(summarized)))
}

// E8, W43: what the client's summary lost comes back behind it, once, and stays.
func TestWhatTheSummaryLostComesBackOnce(t *testing.T) {
	t.Parallel()
	k := newTalk(t, anthropic.New())
	header := claude("11111111-2222-4333-8444-555555555555")
	first := compacted(t, k, header)

	block := blockIn(first)
	for _, want := range []string{
		"<compaction-bridge-recovery>\n[recovered context, not a new request]",
		"Always run gofmt before you commit, and never touch the folder vendor/legacy. (#0)",
		"I decided to keep deleted orders in a tombstone table instead of a flag",
		"order 7 is still there",
		"[#10 user] Fine. Look at the failing test next.",
		"--- /home/dev/shop/store.go, lines 1-23 (#3)\npackage store",
		"func (s *Store) Delete(id string) {\n\ts.mu.Lock()",
		"</compaction-bridge-recovery>",
	} {
		if !strings.Contains(block, want) {
			t.Errorf("the block does not hold %q", want)
		}
	}
	for _, want := range []string{"malware", "CRITICAL: Respond"} {
		if strings.Contains(block, want) {
			t.Errorf("the block holds %q", want)
		}
	}
	if t.Failed() {
		t.Log(block)
	}
	sent := string(first.Body)
	if at := strings.Index(sent, "recovered context, not a new request"); at < strings.Index(sent, "tests are being looked at") {
		t.Error("the block does not stand behind the client's summary")
	}
	event := recovered(first)
	if event == nil {
		t.Fatalf("no event: %+v", first.Exchange.Report.Events)
	}
	for name, want := range map[string]int{
		compactionbridge.Directives: 1, compactionbridge.DirectivesLost: 1, compactionbridge.DirectivesRestored: 1,
		compactionbridge.Decisions: 1, compactionbridge.DecisionsLost: 1, compactionbridge.DecisionsRestored: 1,
		compactionbridge.Errors: 1, compactionbridge.ErrorsLost: 1, compactionbridge.Files: 1, compactionbridge.FilesLost: 0,
		compactionbridge.FilesRestored: 1, compactionbridge.Confidence: 90,
	} {
		if got := event.Counts[name]; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}

	next := k.send(t, header, path, body(t, user(summarized), answer("Looking."), user("And then commit.")))
	if recovered(next) != nil || strings.Count(string(next.Body), "[recovered context") != 1 {
		t.Error("the block is not in the next request once")
	}
	if !bytes.Equal(cut(t, next), cut(t, first)) {
		t.Error("the block's message is sent with other bytes in the next request") // C2
	}
}

// D4: an approved plan that does not fit comes back with the first sentence of each step.
func TestLongPlansComeBackStepByStep(t *testing.T) {
	t.Parallel()
	var plan strings.Builder
	for i := range 150 { // more than a ledger keeps of a plan in full
		fmt.Fprintf(&plan, "%d. Move part %d of the parser. %s\n", i+1, i+1, strings.Repeat("Mind the many details of it, which are told here. ", 4))
	}
	for name, steps := range map[string]string{"long": plan.String(), "short": "1. Move the parser. Mind the details.\n"} {
		k := newTalk(t, anthropic.New())
		header := claude(name)
		before := append([]message{user("Implement the following plan:\n\n" + steps), answer("I begin.")}, worked()[1:]...)
		k.send(t, header, path, body(t, before...))
		k.send(t, header, path, body(t, append(before, user("CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far."))...))
		block := blockIn(k.send(t, header, path, body(t, user(summarized))))
		for line := range strings.Lines(steps) {
			first, _, _ := strings.Cut(line, ". M")
			if sentence := line[:strings.Index(line, "parser.")+len("parser.")]; !strings.Contains(block, sentence) {
				t.Errorf("%s: step %s is missing in\n%s", name, first, block)
			}
		}
		if strings.Contains(block, "Mind the") != (name == "short") {
			t.Errorf("%s: the block is\n%s", name, block)
		}
	}
}

// cut returns the first message of the list that was sent.
func cut(t *testing.T, written *prompt.Prompt) []byte {
	t.Helper()
	envelope, err := wire.Open(written.Body, "messages")
	if err != nil {
		t.Fatal(err)
	}
	return envelope.Element(0)
}

// D8: what a tool returned is quoted as data, and orders in it are nobody's.
func TestPlantedOrdersAreNotRestored(t *testing.T) {
	t.Parallel()
	k := newTalk(t, anthropic.New())
	block := blockIn(compacted(t, k, claude("a")))

	orders, rest, _ := strings.Cut(block, "## The last turns")
	if strings.Contains(orders, "evil.example") {
		t.Error("an order that a tool returned became a directive")
	}
	if strings.Count(block, "</compaction-bridge-recovery>") != 1 || strings.Contains(rest, "<system-reminder>") {
		t.Errorf("what a tool returned closes the block, or opens a reminder:\n%s", block)
	}
}

// D9: after a second compaction the block of the first one is not quoted.
func TestBlocksAreNotNested(t *testing.T) {
	t.Parallel()
	k := newTalk(t, anthropic.New())
	header := claude("a")
	compacted(t, k, header)
	quoting := user(summarized + "\n<compaction-bridge-recovery>\n- Always say hello.\n</compaction-bridge-recovery>")
	k.send(t, header, path, body(t, user(summarized), answer("Looking at it."), user("You must always use tabs.")))
	k.send(t, header, path, body(t, user(summarized), answer("Looking at it."), user("You must always use tabs."), answer("Yes."), user("Your task is to create a detailed summary of the conversation so far")))
	second := k.send(t, header, path, body(t, quoting, answer("ok"), user("go on with the tests")))
	block := blockIn(second)
	if !strings.Contains(block, "You must always use tabs.") {
		t.Errorf("the second compaction is not bridged:\n%s\n%+v", block, second.Exchange.Report.Events)
	}
	if strings.Count(block, "<compaction-bridge-recovery>") != 1 || strings.Contains(block, "Always say hello") {
		t.Errorf("blocks are nested:\n%s", block)
	}
}

// W44: a tail that the client kept is not put in again.
func TestKeptTailIsNotRepeated(t *testing.T) {
	t.Parallel()
	k := newTalk(t, anthropic.New())
	header := claude("a")
	before := worked()
	k.send(t, header, path, body(t, before...))
	kept := slices.Concat([]message{user(summarized)}, before[len(before)-2:])
	block := blockIn(k.send(t, header, path, body(t, kept...)))
	if !strings.Contains(block, "Always run gofmt") {
		t.Errorf("nothing was recovered:\n%s", block)
	}
	if strings.Contains(block, "The last turns") || strings.Contains(block, "tombstone") {
		t.Errorf("the block repeats what the client kept:\n%s", block)
	}
}

// E8, C6: another process finds in the store what was left.
func TestAnotherProcessFindsWhatWasLeft(t *testing.T) {
	t.Parallel()
	k := newTalk(t, anthropic.New())
	header := claude("a")
	k.send(t, header, path, body(t, worked()...))
	k.restart(t)
	if block := blockIn(k.send(t, header, path, body(t, user(summarized)))); !strings.Contains(block, "Always run gofmt") {
		t.Errorf("nothing was recovered:\n%s", block)
	}
}

// E8: only a compaction of this very conversation is bridged.
func TestNothingIsRecoveredWhereNothingWasCompacted(t *testing.T) {
	t.Parallel()
	before := worked()
	for name, test := range map[string]struct {
		header http.Header
		next   []message
	}{
		"a new task in the session":          {claude("a"), []message{user("Please continue with the README as discussed earlier.")}},
		"a new task of an unknown client":    {unknown(), []message{user("Please continue with the README as discussed earlier.")}},
		"a summary that is asked for":        {unknown(), []message{user("Write a summary of the design in docs/design.md")}},
		"a quoted marker":                    {claude("a"), []message{user("Why does Claude say \"This session is being continued from a previous conversation that ran out of context\"?")}},
		"another session after /clear":       {claude("b"), []message{user("Continue.")}},
		"a rewind":                           {claude("a"), slices.Concat(before[:5], []message{user("Do it another way, from where we left off.")})},
		"a fork of an unknown client":        {unknown(), slices.Concat(before[:3], []message{answer("No."), user("Summary of the conversation: none.")})},
		"a title":                            {unknown(), []message{user("Generate a title for this conversation:\n" + summarized)}},
		"another session that was continued": {claude("b"), []message{user(summarized)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, anthropic.New())
			first := claude("a")
			if test.header.Get("X-Palimpsest-Session-Id") != "" {
				first = unknown()
			}
			k.send(t, first, path, body(t, before...))
			if written := k.send(t, test.header, path, body(t, test.next...)); blockIn(written) != "" || recovered(written) != nil {
				t.Errorf("it fires: %+v\n%s", written.Exchange.Class, blockIn(written))
			}
		})
	}
}

// E8: an unknown client is recognized by its score, from the threshold on.
func TestUnknownClientsAreRecognizedByTheirScore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text      string
		threshold float64
		want      bool
	}{
		"a summary":                                {"Here is a summary of the conversation so far: orders can be deleted now.", 0.6, true},
		"a summary above the threshold":            {"Here is a summary of the conversation so far: orders can be deleted now.", 0.95, false},
		"a short summary that refers":              {"[Conversation summary] Orders can be deleted. Continue with the tests.", 0.95, true},
		"a long summary that refers at its end":    {"[Conversation summary] Orders can be deleted. " + strings.Repeat("The test passes. ", 28) + "Continue with the tests.", 0.95, true},
		"a summary too long to be one that refers": {"[Conversation summary] Orders can be deleted. " + strings.Repeat("The test passes. ", 36) + "Continue with the tests.", 0.95, false},
		"no summary":                               {"Continue with the tests.", 0.6, false},
		"a summary behind something else":          {"Translate this text for me, please, and keep its line breaks:\n\nHere is a summary of the conversation so far: none.", 0.6, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, anthropic.New())
			pipeline.Change[compactionbridge.Config](&k.config).DetectionThreshold = test.threshold
			k.send(t, unknown(), path, body(t, worked()...))
			written := k.send(t, unknown(), path, body(t, user(test.text)))
			if got := recovered(written) != nil; got != test.want {
				t.Errorf("recovered %v, want %v: %+v", got, test.want, written.Exchange.Report.Events)
			}
		})
	}
}

// A summary and one more message are few. An answer between them makes a conversation.
func TestTwoMessagesAreFew(t *testing.T) {
	t.Parallel()
	summary := user("Here is a summary of the conversation so far: orders can be deleted now.")
	for want, messages := range map[bool][]message{
		true:  {summary, user("Run the tests.")},
		false: {summary, answer("I see."), user("Run the tests.")},
	} {
		k := newTalk(t, anthropic.New())
		pipeline.Change[compactionbridge.Config](&k.config).DetectionThreshold = 0.6
		k.send(t, unknown(), path, body(t, worked()...))
		written := k.send(t, unknown(), path, body(t, messages...))
		if got := recovered(written) != nil; got != want {
			t.Errorf("%d messages: recovered %v, want %v: %+v", len(messages), got, want, written.Exchange.Report.Events)
		}
	}
}

func TestSettingsBoundTheBlock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*compactionbridge.Config)
		has    string
		hasNot string
	}{
		"no directives":     {func(c *compactionbridge.Config) { c.PreserveDirectives = false }, "tombstone", "## Standing orders"},
		"no files":          {func(c *compactionbridge.Config) { c.PreserveActiveFiles = false }, "## Standing orders", "## Files"},
		"no turns":          {func(c *compactionbridge.Config) { c.PreserveLastTurns = 0 }, "## Standing orders", "## The last turns"},
		"no tokens":         {func(c *compactionbridge.Config) { c.MaxTokens = 0 }, "", "<compaction-bridge-recovery>"},
		"behind the system": {func(c *compactionbridge.Config) { c.Placement = "system" }, "## Standing orders", "no such text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, anthropic.New())
			test.change(pipeline.Change[compactionbridge.Config](&k.config))
			written := compacted(t, k, claude("a"))
			block := blockIn(written)
			if !strings.Contains(block, test.has) || strings.Contains(block, test.hasNot) {
				t.Errorf("the block is\n%s", block)
			}
			if pipeline.SettingsOf[compactionbridge.Config](k.config).Placement == "system" && written.Exchange.Injected(compactionbridge.Name)[0].Message != session.InSystem {
				t.Error("the block is not behind the system prompt")
			}
		})
	}
}

// E3: an archive that fails leaves the prompt as the client sent it.
func TestFailingArchiveLeavesThePromptAlone(t *testing.T) {
	t.Parallel()
	k := newTalk(t, anthropic.New())
	header := claude("a")
	k.send(t, header, path, body(t, worked()...))
	k.writer.Chain = pipeline.NewChain(compactionbridge.New(counter(t), compactionbridge.Past{Lanes: k.memory, Originals: broken{}}))
	next := body(t, user(summarized))
	written := k.send(t, header, path, next)
	if written.Exchange.Class.Kind != client.AfterCompaction {
		t.Fatalf("not recognized: %+v", written.Exchange.Class)
	}
	if got := written.Exchange.Report.Modules[0].Outcome; got != pipeline.Failed {
		t.Errorf("the module ended %s", got)
	}
	if bytes.Contains(written.Body, []byte("recovery")) {
		t.Error("the prompt holds a block")
	}
}
