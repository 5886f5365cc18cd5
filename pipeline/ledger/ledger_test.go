package ledger_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// fileOf returns the entry of a file.
func fileOf(t *testing.T, kept *ledger.Ledger, path string) *ledger.File {
	t.Helper()
	for i := range kept.Files {
		if kept.Files[i].Path == path {
			return &kept.Files[i]
		}
	}
	t.Fatalf("no file %s in %+v", path, kept.Files)
	return nil
}

// D3: what became of a file, with the messages that did it.
func TestFilesCarryTheirLastTurnAndMessage(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Fix it.").
		call("Read", object("file_path", "/p/a.go"), "     1→package a\n     2→\n").
		call("Edit", object("file_path", "/p/a.go", "old_string", "a", "new_string", "b"), "updated").
		call("Read", object("file_path", "/p/b.go"), "     1→package b\n").
		bash("rm /p/b.go", "").
		call("Write", object("file_path", "/p/c.go", "content", "package c\n"), "written").ledger()

	a, b, file := fileOf(t, kept, "/p/a.go"), fileOf(t, kept, "/p/b.go"), fileOf(t, kept, "/p/c.go")
	if a.Read != 1 || a.Modified != 3 || a.Deleted != ledger.Never || a.Gone || a.Place != (ledger.Place{Turn: 1, Message: 3}) {
		t.Errorf("a: %+v", a)
	}
	if b.Read != 5 || b.Modified != ledger.Never || b.Deleted != 7 || !b.Gone || b.Turn != 3 {
		t.Errorf("b: %+v", b)
	}
	if file.Read != ledger.Never || file.Modified != 9 || file.Gone {
		t.Errorf("c: %+v", file)
	}
}

func TestARelativeAndAnAbsolutePathAreOneFile(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").
		call("Grep", object("pattern", "x"), "").
		bash("sed -i 's/a/b/' cmd/app/main.go", "").
		call("Read", object("file_path", "/home/dev/p/cmd/app/main.go"), "x").
		call("Read", object("file_path", "/home/dev/q/app/main.go"), "x").
		bash("rm ./cmd//app/main.go", "").ledger()
	if len(kept.Files) != 2 {
		t.Fatalf("%+v", kept.Files)
	}
	if file := fileOf(t, kept, "/home/dev/p/cmd/app/main.go"); !file.Gone || file.Read == ledger.Never || file.Modified == ledger.Never {
		t.Errorf("%+v", file)
	}
}

func TestADeletedFolderTakesItsFilesAlong(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").
		call("Write", object("file_path", "gen/a.go", "content", "x"), "").
		call("Write", object("file_path", "generated.go", "content", "x"), "").
		bash("rm -rf gen/", "").ledger()
	if !fileOf(t, kept, "gen/a.go").Gone || fileOf(t, kept, "generated.go").Gone || len(kept.Files) != 2 {
		t.Errorf("%+v", kept.Files)
	}
}

// A call that failed or that the person refused changed nothing; a line of several
// commands may have.
func TestOnlyCallsThatDidTheirWorkChangeFiles(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").
		fails("Edit", object("file_path", "failed.go", "old_string", "a", "new_string", "b"), "<tool_use_error>String to replace not found in file.</tool_use_error>").
		fails("Write", object("file_path", "refused.go", "content", "x"), "The user doesn't want to proceed with this tool use. The tool use was rejected").
		bash("rm gone.go", "Exit code 1\nrm: gone.go: No such file or directory").
		bash("sed -i s/a/b/ half.go && go test ./half", "Exit code 1\nFAIL").ledger()
	if len(kept.Files) != 1 || kept.Files[0].Path != "half.go" {
		t.Errorf("%+v", kept.Files)
	}
	for _, e := range kept.Errors {
		if strings.Contains(e.Subject, "refused") {
			t.Errorf("a refusal is an error: %+v", e)
		}
	}
}

// SWE-agent's editor has a current file; Cline's and OpenHands' paths are their calls' own.
func TestAnEditWithoutAPathChangesTheOpenFile(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").
		call("open", `{"path":"src/fields.py","line_number":9}`, "[File: src/fields.py]").
		bash("cat other.py", "x").
		call("edit", `{"search":"a","replace":"b"}`, "Text replaced.").ledger()
	if file := fileOf(t, kept, "src/fields.py"); file.Modified != 5 {
		t.Errorf("%+v", file)
	}
}

func TestCommandsKeepTheirLastRun(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").bash("go test ./a", "Exit code 1\nFAIL").bash("ls", "a").bash("go   test ./a", "ok").ledger()
	want := []ledger.Command{
		{Place: ledger.Place{Turn: 1, Message: 3}, Text: "ls"},
		{Place: ledger.Place{Turn: 2, Message: 5}, Text: "go test ./a"},
	}
	if !reflect.DeepEqual(kept.Commands, want) {
		t.Errorf("%+v", kept.Commands)
	}
}

// A lane that never ends does not fill the memory, and what was changed outlives
// what was only read.
func TestALedgerIsBounded(t *testing.T) {
	t.Parallel()
	kept := ledger.New()
	message := func(role conversation.Role, block conversation.Block) conversation.Message {
		return conversation.Message{Role: role, Blocks: []conversation.Block{block}}
	}
	const turns = 6000
	for i := range turns {
		call := conversation.Block{Kind: conversation.ToolCall, ID: "1", Name: "Read", Text: object("file_path", fmt.Sprintf("/p/%d.go", i))}
		switch i % 10 {
		case 0:
			call.Name = "Edit"
		case 1:
			call.Name, call.Text = "Bash", object("command", fmt.Sprintf("./run %d", i))
		}
		kept.Add(i, 3*i, []conversation.Message{
			message(conversation.User, conversation.Block{Kind: conversation.Text, Text: fmt.Sprintf("Always keep rule %d.", i)}),
			message(conversation.Assistant, call),
			message(conversation.User, conversation.Block{Kind: conversation.ToolResult, ID: "1", Text: "x", IsError: i%10 == 1}),
		})
		kept.Add(i, 3*i, []conversation.Message{message(conversation.Assistant, conversation.Block{
			Kind: conversation.Text, Text: fmt.Sprintf("We decided to go with parser number %d from now on.", i),
		})})
	}
	for name, got := range map[string][2]int{
		"files":      {len(kept.Files), 2250},
		"commands":   {len(kept.Commands), 113},
		"errors":     {len(kept.Errors), 113},
		"decisions":  {len(kept.Decisions), 225},
		"directives": {len(kept.Directives), 450},
	} {
		if got[0] > got[1] || got[0] < got[1]*8/10 {
			t.Errorf("%d %s, at most %d", got[0], name, got[1])
		}
	}
	modified := 0
	for _, file := range kept.Files {
		if file.Modified != ledger.Never {
			modified++
		}
	}
	if modified != turns/10 {
		t.Errorf("%d of %d modified files are left", modified, turns/10)
	}
	if last := kept.Directives[len(kept.Directives)-1].Text; last != fmt.Sprintf("Always keep rule %d.", turns-1) {
		t.Errorf("the last directive is %q", last)
	}
}
