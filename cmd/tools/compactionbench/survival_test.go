package compactionbench

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// small is a conversation of eight messages, the last of which come back to three
// names of the first.
const small = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[
{"role":"user","content":"Look at src/lane/store.go. Never touch src/lane/seal.go.\nAlways run make vet."},
{"role":"assistant","content":[{"type":"text","text":"I read it."},{"type":"tool_use","id":"a","name":"Edit","input":{"file_path":"src/lane/open.go"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"` + filler + ` ResolveLane failed with 48213"}]},
{"role":"assistant","content":[{"type":"text","text":"Now the rest."},{"type":"tool_use","id":"b","name":"Write","input":{"file_path":"src/lane/lost.go"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"denied","is_error":true}]},
{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"c","name":"Grep","input":{"pattern":"ResolveLane","path":"src/lane/store.go"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"none"}]},
{"role":"assistant","content":"It is 48213 again."},
{"role":"user","content":"Go on."}]}`

const filler = "This file is long and says nothing that anybody will ever come back to, line after line, page after page."

func reads(t *testing.T, talk Talk) *reading {
	t.Helper()
	bench, err := New()
	if err != nil {
		t.Fatal(err)
	}
	r, err := read(&talk, bench.counter)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func smallTalk() Talk {
	return Talk{Name: "small", Format: conversation.Anthropic, Window: bigWindow, Body: []byte(small)}
}

func TestSurvivalLooksForDirectivesAndModifiedFiles(t *testing.T) {
	t.Parallel()
	r := reads(t, smallTalk())
	if got := r.directives(); !slices.Equal(got, []string{"Always run make vet."}) {
		t.Errorf("directives %q", got)
	}
	if got := r.modified(); !slices.Equal(got, []modification{{"src/lane/open.go", 1}}) {
		t.Errorf("modified %+v", got)
	}
	s := r.survives([]byte(`Always run make vet.`), len(r.messages))
	if s.directives != (Share{1, 1}) || s.modified != (Share{0, 1}) || !slices.Equal(s.lost, []string{"src/lane/open.go"}) {
		t.Errorf("%+v", s)
	}
	if s = r.survives([]byte(`Paths below src/lane are written without it.\nModified files:\n#1 open.go`), len(r.messages)); s.modified != (Share{1, 1}) {
		t.Errorf("below the base: %+v", s)
	}
	quoted := reads(t, Talk{Name: "quoted", Format: conversation.Anthropic, Window: bigWindow, Body: []byte(strings.ReplaceAll(small, "src/lane/open.go", `src\\open.go`))})
	if s = quoted.survives([]byte(`Modified files:\n#1 src\\open.go`), len(quoted.messages)); s.modified != (Share{1, 1}) {
		t.Errorf("as JSON writes it: %+v", s)
	}
	if s = r.survives(nil, 1); s.directives.Of != 1 || s.modified.Of != 0 {
		t.Errorf("of the first message: %+v", s)
	}
	if !holds([]byte(`a \"b\" c`), `a "b" c`) {
		t.Error("a text is not found in JSON")
	}
}

// What the maker of a session says it changed is what its calls changed.
func TestModifiedFilesOfGeneratedSessionsAreAllFound(t *testing.T) {
	t.Parallel()
	bench, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses} {
		r := reads(t, bench.Generated(5, format, 85))
		made := len(r.talk.Modified)
		if got := len(r.modified()); got == 0 || got != made {
			t.Errorf("%s: %d modified files, the maker knows of %d", format, got, made)
		}
		r.talk.Modified = nil
		if got := len(r.modified()); got != made {
			t.Errorf("%s: %d modified files without its maker's help", format, got)
		}
	}
}

func TestBrokenTalkIsRefused(t *testing.T) {
	t.Parallel()
	bench, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{}`, `{"model":"m","messages":[]}`} {
		if _, err := bench.Compare(t.Context(), &Talk{Name: "broken", Format: conversation.Anthropic, Body: []byte(body)}, Anthropic(), Warm()); err == nil {
			t.Errorf("%s is accepted", body)
		}
	}
	if _, err := Recorded("testdata/none.json", bigWindow); err == nil {
		t.Error("a missing transcript is accepted")
	}
}
