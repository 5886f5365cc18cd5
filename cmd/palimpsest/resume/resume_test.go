package resume

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/cmd/tools/apiclients"
	"palimpsest/pipeline/archive/export"
)

// claudeSession returns a session of Claude Code with these messages.
func claudeSession(t *testing.T, messages string) export.Main {
	t.Helper()
	return recorded(t, "claude-code", "anthropic", "claude-sonnet-5", []byte(`{"messages":[`+messages+`]}`))
}

const (
	asked   = `{"role":"user","content":[{"type":"text","text":"<system-reminder>\nof the old client\n</system-reminder>"},{"type":"text","text":"Mend parse.go"}]}`
	looked  = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/p/parse.go","limit":5}},{"type":"tool_use","id":"toolu_2","name":"TodoWrite","input":{"todos":["mend"]}}]}`
	results = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"func parse()"},{"type":"tool_result","tool_use_id":"toolu_2","content":"noted"}]}`
	mended  = `{"role":"assistant","content":[{"type":"text","text":"Mended."}]}`
)

func TestCallsOfEqualToolsStayCallsAndOthersBecomeText(t *testing.T) {
	t.Parallel()
	main := claudeSession(t, strings.Join([]string{asked, looked, results, mended}, ","))
	for id, wants := range map[string][]string{
		"claude-code": {`"name":"Read","input":{"file_path":"/p/parse.go","limit":5}`, `"name":"TodoWrite"`},
		"codex":       {`[Tool call] Read {\"file_path\":\"/p/parse.go\"`, `[Tool result] Read\nfunc parse()`, `[Tool result] TodoWrite\nnoted`},
		"pi":          {`"name":"read","arguments":{"path":"/p/parse.go","limit":5}`, `[Tool call] TodoWrite {\"todos\":[\"mend\"]}`},
		"opencode":    {`"tool": "read"`, `"filePath": "/p/parse.go"`, `[Tool call] TodoWrite`},
	} {
		target, err := ByName(id)
		if err != nil {
			t.Fatal(err)
		}
		text := string(written(t, main, -1, target).Content)
		for _, want := range append(wants, "Mended.", "Mend parse.go") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s is missing in\n%s", id, want, text)
			}
		}
		for _, other := range []string{"of the old client", "c2ln"} {
			if strings.Contains(text, other) {
				t.Errorf("%s has %q, which belongs to the old client", id, other)
			}
		}
	}
}

func TestShellIsTranslatedBetweenClients(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		tool, arguments string
		want            operation
		is              bool
	}{
		{"Bash", `{"command":"go test ./x","description":"Test","timeout":1000}`, operation{kind: runs, command: "go test ./x", description: "Test"}, true},
		{"shell", `{"command":["bash","-lc","ls -la | wc"],"timeout_ms":10}`, operation{kind: runs, command: "ls -la | wc"}, true},
		{"local_shell", `{"type":"exec","command":["ls","-la"],"env":{}}`, operation{kind: runs, command: "ls -la"}, true},
		{"shell", `{"command":["echo","two words"]}`, operation{}, false},
		{"exec_command", `{"cmd":"ls","yield_time_ms":100}`, operation{kind: runs, command: "ls"}, true},
		{"exec_command", `{"cmd":"ls","workdir":"/elsewhere"}`, operation{kind: runs, command: "cd /elsewhere && ls", folder: "/elsewhere"}, true},
		{"Bash", `{"command":"sleep 100","run_in_background":true}`, operation{}, false},
		{"edit", `{"path":"a.go","edits":[{"oldText":"a","newText":"b"}]}`, operation{kind: edits, path: "a.go", before: "a", after: "b"}, true},
		{"edit", `{"path":"a.go","edits":[{"oldText":"a","newText":"b"},{"oldText":"c","newText":"d"}]}`, operation{}, false},
		{"Edit", `{"file_path":"a.go","old_string":"a","new_string":"","replace_all":true}`, operation{kind: edits, path: "a.go", before: "a", isAll: true}, true},
		{"write_file", `{"file_path":"a.go","content":"x"}`, operation{kind: writes, path: "a.go", content: "x"}, true},
		{"exec", `text("no JSON")`, operation{}, false},
		{"WebSearch", `{"query":"x"}`, operation{}, false},
	} {
		made, is := operationOf(one.tool, one.arguments)
		if is != one.is || is && made != one.want {
			t.Errorf("%s %s is %+v, %v; want %+v, %v", one.tool, one.arguments, made, is, one.want, one.is)
		}
	}
}

func TestHistoryEndsAtMessageAndOpenCallsAreAnswered(t *testing.T) {
	t.Parallel()
	main := claudeSession(t, strings.Join([]string{asked, looked, results, mended}, ","))
	for _, target := range Targets() {
		file := written(t, main, 1, target)
		if text := string(file.Content); !strings.Contains(text, "messages 0 to 1.") || strings.Contains(text, "Mended.") || strings.Contains(text, "func parse()") {
			t.Errorf("%s has more than messages 0 and 1:\n%s", target.ID, text)
		}
		if file.ID == main.Name {
			t.Errorf("%s: a branch has the id of its trunk", target.ID)
		}
	}
	text := string(written(t, main, 1, claudeCode()).Content)
	if !strings.Contains(text, noResult) {
		t.Errorf("the call without a result has no answer:\n%s", text)
	}
	if _, err := Cut(main, 4); err == nil || !strings.Contains(err.Error(), "messages 0 to 3") {
		t.Errorf("message 4 of 4: %v", err)
	}
	if _, err := Cut(export.Main{}, -1); err == nil {
		t.Error("an empty session was carried over")
	}
}

func TestNewestAnswerIsCarriedOverOnce(t *testing.T) {
	t.Parallel()
	main := claudeSession(t, strings.Join([]string{asked, looked, results}, ","))
	main.Answer = json.RawMessage(mended)
	if text := string(written(t, main, -1, codex()).Content); strings.Count(text, `"output_text","text":"Mended."`) != 1 {
		t.Errorf("the answer that was not sent back is not there once:\n%s", text)
	}
	main.Messages = append(main.Messages, json.RawMessage(mended))
	if text := string(written(t, main, -1, codex()).Content); strings.Count(text, `"output_text","text":"Mended."`) != 1 {
		t.Errorf("the answer that was sent back is not there once:\n%s", text)
	}
}

func TestSessionOfSameClientKeepsItsID(t *testing.T) {
	t.Parallel()
	main := claudeSession(t, asked+","+mended)
	if file := written(t, main, -1, claudeCode()); file.ID != main.Name || file.Arguments[1] != main.Name {
		t.Errorf("in Claude Code again it is %s, want %s", file.ID, main.Name)
	}
	if file := written(t, main, -1, codex()); file.ID == main.Name {
		t.Error("in Codex it has the id of Claude Code's session")
	}
}

func TestSavedFileIsPrivateAndNeverReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b.jsonl")
	file := File{Path: path, Content: []byte("one\n")}
	if err := file.Save(); err != nil {
		t.Fatal(err)
	}
	about, err := os.Stat(path)
	if err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", about.Mode(), err)
	}
	file.Content = []byte("two\n")
	if err := file.Save(); !errors.Is(err, ErrThere) {
		t.Errorf("saved a second time: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "one\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

// A client would not know which of two files with one id it is to open.
func TestSessionThatTheClientHasIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, target := range []Target{claudeCode(), codex(), pi()} {
		main := claudeSession(t, asked+","+mended)
		main.Client = target.ID
		session, err := Cut(main, -1)
		if err != nil {
			t.Fatal(err)
		}
		place := here(t)
		for i, day := range []int{1, 2} {
			file, err := target.Write(&session, place, time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC))
			if err != nil {
				t.Fatal(err)
			}
			if err := file.Save(); errors.Is(err, ErrThere) != (i == 1) {
				t.Errorf("%s, written %d times before: %v", target.ID, i, err)
			}
			place.Project = t.TempDir()
		}
	}
}

func TestVersionsThatWereNotTriedAreNamed(t *testing.T) {
	t.Parallel()
	target := claudeCode()
	for version, want := range map[string]string{
		"2.1.332 (Claude Code)": "", "2.1.400 (Claude Code)": "", "3.0.0 (Claude Code)": "was tried with 2.1.332", "": "not in the path", "12.1.332": "was tried with",
	} {
		if got := target.Warning(version); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
	if got := codex().Warning("codex-cli 0.171.0"); got != "" {
		t.Errorf("codex: %q", got)
	}
}

// What make clients tries is what the files say they were tried with.
func TestTriedVersionsAreThosePinned(t *testing.T) {
	t.Parallel()
	pinned, err := apiclients.Pinned()
	if err != nil {
		t.Fatal(err)
	}
	for id, name := range map[string]string{"claude-code": "@anthropic-ai/claude-code", "codex": "@openai/codex", "pi": "@earendil-works/pi-coding-agent", "opencode": "opencode-ai"} {
		if target, err := ByName(id); err != nil || pinned[name] != target.Tried {
			t.Errorf("%s was tried with %s, and %s is pinned (%v)", id, target.Tried, pinned[name], err)
		}
	}
}
