package apiclients

import (
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

func asked(tools bool, user string, results ...string) providerdouble.Request {
	r := providerdouble.Request{Body: []byte(`{"messages":[]}`), User: user, Results: results}
	if tools {
		r.Body = []byte(`{"tools":[{"name":"Bash"}]}`)
	}

	return r
}

func TestModelTellsMainAgentSubagentAndAsideApart(t *testing.T) {
	t.Parallel()
	m := &model{client: claudeCode(), play: sendErrand}

	if reply := m.answer(asked(false, "title?")); len(reply.Calls) != 0 || m.aside != 1 {
		t.Errorf("aside: %+v", reply)
	}
	reply := m.answer(asked(true, "Have someone find the word."))
	if len(reply.Calls) != 1 || reply.Calls[0].Name != "Agent" || !strings.Contains(string(reply.Calls[0].Input), errandMark) {
		t.Errorf("main agent: %+v", reply)
	}
	if reply := m.answer(asked(true, errandMark+": read it")); len(reply.Calls) != 1 || reply.Calls[0].Name != "Bash" {
		t.Errorf("subagent: %+v", reply)
	}
	found := m.answer(asked(true, errandMark+": read it", "The word is marzipan."))
	if !strings.Contains(found.Text, "marzipan") || m.errands != 2 {
		t.Errorf("subagent's report: %+v", found)
	}
	if reply := m.answer(asked(true, "Have someone find the word.", found.Text)); !strings.Contains(reply.Text, finalWord) || !strings.Contains(reply.Text, noteWord) || m.rounds != 2 {
		t.Errorf("main agent's answer: %+v", reply)
	}
	folded := asked(true, recordMark+" "+errandMark+": read it", found.Text)
	folded.Body = []byte(`{"tools":[{"name":"Bash"}],"messages":"` + recordMark + `"}`)
	if m.answer(folded); m.rounds != 3 || m.errands != 2 {
		t.Errorf("the record of the main agent's errands is taken for a subagent: %d rounds, %d errands", m.rounds, m.errands)
	}
}

func TestModelSummarizesWhereTheClientAsksForIt(t *testing.T) {
	t.Parallel()
	m := &model{client: codex(), play: readNote}
	r := asked(false, "")
	r.Body = []byte(`{"input":"You are performing a CONTEXT CHECKPOINT COMPACTION"}`)

	if reply := m.answer(r); !strings.Contains(reply.Text, summaryMark) || m.summaries != 1 || m.rounds != 0 {
		t.Errorf("reply %+v, %d summaries, %d rounds", reply, m.summaries, m.rounds)
	}
}

func TestModelThinksWhereItMay(t *testing.T) {
	t.Parallel()
	m := &model{client: claudeCode(), play: readNote}
	r := asked(true, "Read it")
	if reply := m.answer(r); reply.Thinking != "" {
		t.Errorf("thinking %q", reply.Thinking)
	}
	r.Thinks = true
	if reply := m.answer(r); reply.Thinking == "" {
		t.Error("no thinking")
	}
}

func TestSessionIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	m := &model{client: pi("messages", "anthropic"), play: readParts(2)}
	var lines []string
	for range 4 {
		reply := m.answer(asked(true, "Read all parts", "The word is marzipan."))
		for _, call := range reply.Calls {
			lines = append(lines, string(call.Input))
		}
		lines = append(lines, reply.Text)
	}

	said := strings.Join(lines, "\n")
	for _, part := range []string{partFile(1), partFile(2), noteFile, finalWord + ". The note says: The word is marzipan."} {
		if !strings.Contains(said, part) {
			t.Errorf("%q is missing in\n%s", part, said)
		}
	}
}

func TestFirstAnswerFailsAsTheCaseAsks(t *testing.T) {
	t.Parallel()
	m := &model{client: claudeCode(), play: failOnce(providerdouble.MisbehaveCut)}

	if reply := m.answer(asked(true, "Read it")); reply.Misbehave != providerdouble.MisbehaveCut {
		t.Errorf("first answer: %+v", reply)
	}
	if reply := m.answer(asked(true, "Read it")); reply.Misbehave != "" || len(reply.Calls) != 1 {
		t.Errorf("second answer: %+v", reply)
	}
}

func TestPartsDoNotRepeat(t *testing.T) {
	t.Parallel()
	lines := map[string]bool{}
	for number := range parts {
		text := partText(number + 1)
		if len(text) < partSize || len(text) > partSize+200 {
			t.Errorf("part %d has %d bytes", number+1, len(text))
		}
		for line := range strings.Lines(text) {
			if lines[line] {
				t.Fatalf("part %d repeats %q", number+1, line)
			}
			lines[line] = true
		}
	}
}
