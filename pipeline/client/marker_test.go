package client_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openairesponses"
)

// summaryCase is a conversation that its client compacted.
type summaryCase struct {
	name     string
	system   string
	messages []said
	client   string
	from, at int // without the system prompt
	trigger  client.Trigger
}

func summaryCases() []summaryCase {
	reminder := "<system-reminder>\nToday's date is 2026-11-21.\n</system-reminder>\n"
	go1 := []said{assistant("I will use a tool."), result("hello")}
	with := func(first said, rest ...said) []said { return append([]said{first}, rest...) }
	long := "## Goal\nFix the parser. " + strings.Repeat("It was read and understood. ", 12)
	return []summaryCase{
		{"claude code, whole text", "", with(user(continuedText)), client.ClaudeCode, 0, 0, ""},
		{"claude code, tail kept", "", with(user(continuedText), go1...), client.ClaudeCode, 0, 0, ""},
		{"claude code, behind reminders", "", with(user(reminder, reminder, continuedText), go1...), client.ClaudeCode, 0, 0, ""},
		{"claude code, reminder in the same text", "", with(user(reminder+continuedText), go1...), client.ClaudeCode, 0, 0, ""},
		{"claude code, older", "", with(user(continuedOld)), client.ClaudeCode, 0, 0, ""},
		{
			"claude code, by hand", "", with(user(continuedText), assistant("Hello."), user(reminder, "<command-name>/compact</command-name>\n<command-args></command-args>", "go on")),
			client.ClaudeCode, 0, 0, client.Manual,
		},
		{"codex", "", []said{user("<environment_context>\n<cwd>/</cwd>\n</environment_context>"), user("fix it"), user("faster"), user(handover)}, client.Codex, 3, 3, ""},
		{"codex, a new question behind", "", []said{user("fix it"), user(handover), user("and now?")}, client.Codex, 1, 1, ""},
		{"codex, later", "", append([]said{user("fix it"), user(handover)}, go1...), client.Codex, 1, 1, ""},
		{"pi", piSystem, with(user(piSummary), go1...), client.Pi, 0, 0, ""},
		{"pi, back from a branch", piSystem, append(tools("x"), assistant("Done."), user(piBranch), user("go on")), client.Pi, 4, 4, client.Branch},
		{"opencode", "", []said{user("What did we do so far?"), assistant(long), user(codeGoOn)}, client.OpenCode, 0, 1, ""},
		{"opencode, without the order to go on", "", []said{user("What did we do so far?"), assistant(long), user("next")}, client.OpenCode, 0, 1, ""},
		{"cline, basic", clineSystem, with(user("fix it", clineNotice, "and the lexer"), go1...), client.Cline, 0, 0, ""},
		{"cline, with a model", clineSystem, with(user("Context summary:\n\nThe parser is fixed."), go1...), client.Cline, 0, 0, ""},
		{"cline, older note", "", []said{user("<task>\nfix it\n</task>"), assistant(clineNote), user("go on")}, client.Cline, 1, 1, ""},
		{
			"cline, condensed", "", []said{user("fix it"), assistant("<condense>\n<context>\nThe parser.\n</context>\n</condense>"), user("The user has accepted the condensed conversation summary you generated. It covers much.")},
			client.Cline, 1, 1, "",
		},
		{"roo", rooSystem, with(user("## Conversation Summary\nThe parser is fixed.", reminder), go1...), client.Roo, 0, 0, ""},
		{"copilot", copilotSystem, with(user(copilotOver), go1...), client.Copilot, 0, 0, ""},
		{"copilot, nothing kept", "", []said{user(copilotOver, "now the lexer")}, client.Copilot, 0, 0, ""},
		{"qwen code", qwenSystem, []said{user(reminder, qwenOver), assistant("Got it. Thanks for the additional context!"), user("go on")}, client.QwenCode, 0, 0, ""},
		{"droid", droidSystem, with(user(droidOver, reminder), go1...), client.Droid, 0, 0, ""},
		{"crush", "", []said{user("The parser is fixed."), user(crushGoesOn)}, client.Other, 0, 0, ""},
	}
}

// W44, W46: the place is found in all formats, wherever the client puts it.
func TestSummaryOfAClientIsFoundWhereItStands(t *testing.T) {
	t.Parallel()
	for _, codec := range codecs() {
		for _, test := range summaryCases() {
			envelope := open(t, codec, body(t, codec, test.system, test.messages...))
			class := client.Classify(http.Header{}, "", envelope)
			shift := envelope.Len() - len(test.messages) // Chat's system message
			marker := class.Marker
			if !marker.Found() || marker.From != test.from+shift || marker.Boundary != test.at+shift || marker.Client != test.client {
				t.Errorf("%s, %s: marker %+v", codec.Format(), test.name, marker)
				continue
			}
			if class.Kind != client.Main && class.Kind != client.Unknown || class.Trigger != test.trigger {
				t.Errorf("%s, %s: %+v", codec.Format(), test.name, class)
			}
			if first := class.Finalize(client.Known{}); first.Kind != client.AfterCompaction || first.Confidence != marker.Confidence {
				t.Errorf("%s, %s: settled as %+v", codec.Format(), test.name, first)
			}
		}
	}
}

// W45
func TestSealedCompactionIsABoundaryThatNobodyReads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		codec wire.Codec
		body  string
		at    int
	}{
		"codex":           {openairesponses.Codec{}, `{"input":[{"type":"message","role":"developer","content":"x"},{"type":"message","role":"user","content":"fix it"},{"type":"compaction","id":"c","encrypted_content":"E"}]}`, 2},
		"codex, later":    {openairesponses.Codec{}, `{"input":[{"role":"user","content":"fix it"},{"type":"compaction","encrypted_content":"E"},{"type":"reasoning","summary":[]},{"role":"assistant","content":"ok"},{"role":"user","content":"on"}]}`, 1},
		"the older type":  {openairesponses.Codec{}, `{"input":[{"type":"compaction_summary","encrypted_content":"E"}]}`, 0},
		"anthropic's own": {anthropic.Codec{}, `{"messages":[{"role":"assistant","content":[{"type":"compaction","content":"s","signature":"x"}]},{"role":"user","content":"on"}]}`, 0},
	} {
		envelope := open(t, test.codec, []byte(test.body))
		class := client.Classify(http.Header{}, "", envelope)
		if class.Marker.Boundary != test.at || class.Marker.Source != "item compaction" || class.IsSide() {
			t.Errorf("%s: %+v", name, class)
		}
	}
}

// W47, E8: these look like a compacted conversation and are not.
func TestOrdinaryConversationsCarryNoMarker(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string][]said{
		"a fresh one":                    {user("continue with the summary of our previous conversation")},
		"a typed text before":            {user("look at this:", continuedText)},
		"the question, not answered":     {user("What did we do so far?")},
		"the question, further on":       {user("hello"), assistant("hi"), user("What did we do so far?"), assistant("nothing")},
		"the question and more":          {user("What did we do so far? Be brief."), assistant("nothing"), user("ok")},
		"the question and one more":      {user("What did we do so far?"), user("Answer briefly."), assistant("nothing"), user("ok")},
		"a heading of the person's":      {user("## Conversation Summary\nplease write one"), assistant("ok"), user("thanks")},
		"pi's words without a summary":   {user("The conversation history before this point was compacted into the following summary: what does that mean?")},
		"a condensation not accepted":    {user("x"), assistant("<condense>\nno\n</condense>"), user("go on")},
		"qwen code's tag of another":     {user(qwenOver), assistant("ok"), user("thanks")},
		"crush's words alone":            {user(crushGoesOn)},
		"a branch long left":             {user("x"), assistant("y"), user(piBranch), user("a"), assistant("b"), user("c"), assistant("d"), user("e")},
		"a notice that the person typed": {user(clineNotice)},
		"a reminder that quotes":         {user("<system-reminder>\n"+continuedText+"\n</system-reminder>", "hello")},
		"an answer that repeats it":      {user("hello"), assistant(continuedText), user("what is that?")},
		"a later message that starts so": {user("hello"), assistant("hi"), user(continuedText)},
	} {
		for _, codec := range codecs() {
			if class := classify(t, codec, "", messages...); class.Marker.Found() || class.IsSide() {
				t.Errorf("%s, %s: %+v", codec.Format(), name, class)
			}
		}
	}
}

func TestBodiesOfAnyShapeAreRead(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"messages":[]}`, `{"messages":[1,null,"x",[],{}]}`, `{"messages":[{"role":"user"}]}`, `{"messages":[{"role":"user","content":null}]}`,
		`{"messages":[{"role":"user","content":[1,{"type":"text"},{"type":"text","text":7}]}],"system":7}`,
		`{"messages":[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"system","content":"c"}],"system":[{}],"client_metadata":1}`,
		`{"messages":[{"content":[{"text":"\u005","type":"text"}],"role":"user"}]}`,
		`{"messages":[{"content":"\u003csystem-reminder\u003e never closed","role":"user"}]}`,
	} {
		if class := client.Classify(http.Header{}, "", open(t, anthropic.Codec{}, []byte(raw))); class.Kind != client.Unknown || class.Marker.Found() {
			t.Errorf("%s: %+v", raw, class)
		}
	}
	text := open(t, openairesponses.Codec{}, []byte(`{"input":"`+strings.ReplaceAll(piSummary, "\n", `\n`)+`"}`))
	if class := client.Classify(http.Header{}, "", text); class.Marker.Boundary != 0 || class.Marker.Client != client.Pi {
		t.Errorf("an input that is a string: %+v", class)
	}
}

// Go's encoder escapes angle brackets; the words are the same.
func TestEscapedTextsReadTheSame(t *testing.T) {
	t.Parallel()
	escaped := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "\n", `\n`, "T", `\u0054`)
	for name, words := range map[string]string{
		"marker": "<system-reminder>x</system-reminder>" + continuedText, "pi": piSummary,
	} {
		raw := `{"messages":[{"role":"user","content":[{"type":"text","text":"` + escaped.Replace(words) + `"}]}]}`
		envelope := open(t, anthropic.Codec{}, []byte(raw))
		class := client.Classify(http.Header{}, "", envelope)
		if class.Marker.Boundary != 0 || !class.Marker.Found() {
			t.Errorf("%s: %+v", name, class)
		}
	}
}

// A person can ask as opencode does: what else points to opencode makes it sure.
func TestQuestionThatAPersonCouldAskIsLessSure(t *testing.T) {
	t.Parallel()
	codec := anthropic.Codec{}
	asked := []said{user("What did we do so far?"), assistant("The parser was fixed.")}
	confidence := func(agent string, last said) float64 {
		envelope := open(t, codec, body(t, codec, "", append(asked, last)...))
		return client.Classify(header("User-Agent", agent), "/v1/messages", envelope).Marker.Confidence
	}
	alone := confidence("Anthropic/JS 1.11.0", user("next"))
	if alone <= 0 || alone >= confidence("opencode/1.18.33", user("next")) || alone >= confidence("Anthropic/JS 1.11.0", user(codeGoOn)) {
		t.Errorf("%v, by the client %v, by the order to go on %v", alone, confidence("opencode/1.18.33", user("next")), confidence("Anthropic/JS 1.11.0", user(codeGoOn)))
	}
}
