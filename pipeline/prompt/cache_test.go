package prompt_test

import (
	"bytes"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/wire/sessiontest"
)

const (
	fiveMinutes = `"cache_control":{"type":"ephemeral"}`
	oneHour     = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
)

// marked puts a marker on a block.
func marked(block, marker string) string { return strings.TrimSuffix(block, "}") + "," + marker + "}" }

// system is a head with a system prompt that carries so many markers.
func system(markers int, marker string) string {
	blocks := make([]string, 0, 3)
	for i := range 3 {
		block := said("Rule " + string(rune('a'+i)))
		if i < markers {
			block = marked(block, marker)
		}
		blocks = append(blocks, block)
	}
	return `,"system":[` + strings.Join(blocks, ",") + `]`
}

// W33: at most four markers, ours at the end of the frozen prefix where one is
// free, none that lives shorter than one behind it, none where the client has none.
func TestCacheMarkersBesideAFrozenPrefix(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		system    string
		automatic string // at the top level
		old, last string // on what is compressed, and on the newest message
		ours      string // at the end of the frozen prefix; empty if none
		total     int
	}{
		"no markers from us":                             {"", "", "", "", "", 0},
		"Claude Code's three, and ours":                  {system(2, fiveMinutes), "", "", fiveMinutes, fiveMinutes, 4},
		"the one on what is compressed moves":            {system(2, fiveMinutes), "", fiveMinutes, fiveMinutes, fiveMinutes, 4},
		"four that stay leave no room":                   {system(3, fiveMinutes), "", "", fiveMinutes, "", 4},
		"the automatic one counts":                       {system(3, fiveMinutes), fiveMinutes, "", "", "", 4},
		"the automatic one lives an hour":                {system(1, oneHour), oneHour, "", "", oneHour, 3},
		"five minutes behind an hour":                    {system(2, oneHour), "", "", fiveMinutes, fiveMinutes, 4},
		"an hour behind an hour":                         {system(2, oneHour), "", "", oneHour, oneHour, 4},
		"the hour of what is compressed goes along":      {system(1, oneHour), "", oneHour, fiveMinutes, oneHour, 3},
		"a marker on what is compressed, and no other":   {system(0, ""), "", fiveMinutes, "", fiveMinutes, 1},
		"a marker on the newest message, and no other's": {system(0, ""), "", "", fiveMinutes, fiveMinutes, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.Anthropic, 12_000)
			c := begun("claude-sonnet-4-5")
			c.head += test.system
			if test.automatic != "" {
				c.head += "," + test.automatic
			}
			c.filled(2, 1_500).user(marked(said("An old question."), orNothing(test.old))).assistant(said("An old answer.")).filled(4, 1_000).user(said("And now?")).filled(5, 1_000)
			c.messages[len(c.messages)-1] = `{"role":"user","content":[` + marked(result("toolu_f11", `"ok"`), orNothing(test.last)) + `]}`

			written := b.epoch(c.body())

			if total := bytes.Count(written.Body, []byte(`"cache_control":{`)); total != test.total {
				t.Errorf("%d markers, want %d: %s", total, test.total, written.Body)
			}
			checkEnd(t, b.elements(written.Body), len(written.Exchange.Conversation.Digests)-written.Exchange.Lane.Projection.Covers, test.ours)
			if b.member(written.Body, "system") != b.member(c.body(), "system") {
				t.Error("the system prompt was changed")
			}
		})
	}
}

// orNothing returns a member that stands for no marker if absent.
func orNothing(marker string) string {
	if marker == "" {
		return `"cache_control":null`
	}
	return marker
}

// checkEnd checks the marker at the end of the frozen prefix, before the tail.
func checkEnd(t *testing.T, sent [][]byte, tail int, want string) {
	t.Helper()
	frozen := sent[:len(sent)-tail]
	for i, message := range frozen {
		has := bytes.Contains(message, []byte(`"cache_control":{`))
		isLast := i == len(frozen)-1
		switch {
		case has && !isLast, has && want == "":
			t.Errorf("message %d has a marker: %s", i, message)
		case isLast && want != "" && !bytes.Contains(message, []byte(want)):
			t.Errorf("the end of the frozen prefix is %s, want %s on it", message, want)
		}
	}
}

// W33: markers inside a compressed message would stay permanently while the client's
// own move on, and make five in the end; thinking carries none.
func TestMarkersInFrozenMessagesDoNotAddUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 25_000)
	session := sessiontest.Generate(9, sessiontest.Options{
		Model: "claude-opus-4-6", Turns: 60, Parallel: true, Thinking: true, Reminders: true, CacheMarkers: true, TargetTokens: 60_000, Signer: b.double, Varied: true,
	})
	for step, body := range session.Bodies() {
		written := b.send(body)
		if markers := bytes.Count(written.Body, []byte(fiveMinutes)); markers > 4 || b.epochs > 0 && markers < 3 {
			t.Fatalf("step %d: %d markers", step, markers)
		}
		if bytes.Contains(written.Body, []byte(`"signature":"",`+fiveMinutes)) {
			t.Fatalf("step %d: a marker on thinking", step)
		}
	}
	if b.epochs < 2 {
		t.Errorf("%d epochs", b.epochs)
	}
}

// W33: where the last frozen message may carry no marker, the one before it does.
func TestTheMarkerStandsOnWhatMayCarryOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 10_000)
	settings := pipeline.Change[ipc.Config](&b.config)
	settings.DeepestLevel, settings.PreserveLastTurns = 1, 2
	c := begun("claude-opus-5")
	c.head += system(1, fiveMinutes)
	c.filled(2, 3_500).assistant(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, call("toolu_a")).user(result("toolu_a", quoted(words(3_500))))
	c.assistant(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`).user(said("Go on.")).filled(1, 100).user(said("And?"))

	written := b.epoch(c.body())

	if covers := written.Exchange.Lane.Projection.Covers; covers != 8 {
		t.Fatalf("the projection covers %d messages", covers)
	}
	holds(t, written.Body, `returns it, if you have that tool]",`+fiveMinutes+`}]},`+c.messages[7])
	if markers := bytes.Count(written.Body, []byte(`"cache_control"`)); markers != 2 {
		t.Errorf("%d markers, want 2", markers)
	}
}

// W34: between two epochs the frozen prefix is the same bytes.
func TestTheFrozenPrefixIsTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, format, 25_000)
			session := sessiontest.Generate(3, sessiontest.Options{Format: format, Turns: 60, Parallel: true, Thinking: true, TargetTokens: 60_000, Signer: b.double, Varied: true})
			var before [][]byte
			epochs, frozen := 0, 0
			for step, body := range session.Bodies() {
				written := b.send(body)
				now := b.elements(written.Body)
				if b.epochs == epochs && b.epochs > 0 {
					frozen++
					for i, element := range before {
						if !bytes.Equal(element, now[i]) {
							t.Fatalf("step %d: message %d changed:\n%s\n%s", step, i, element, now[i])
						}
					}
				}
				before, epochs = now, b.epochs
			}
			if epochs == 0 || frozen < 20 {
				t.Errorf("%d epochs, %d requests with a frozen prefix", epochs, frozen)
			}
		})
	}
}
