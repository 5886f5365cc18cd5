package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

const codexPatch = `*** Begin Patch
*** Update File: src/main.rs
@@
-old
+*** Add File: not/a/file
*** Add File: src/new.rs
+pub fn new() {}
*** Delete File: src/gone.rs
*** Update File: src/from.rs
*** Move to: src/to.rs
*** End Patch`

// callCase is a call as a client makes it, and what must be read of it.
type callCase struct {
	name, tool, arguments  string
	reads, writes, deletes string // by spaces
	argument, command      string
}

// D3: the tools of the real clients.
func TestCallsOfEveryClientAreRead(t *testing.T) {
	t.Parallel()
	for _, test := range slices.Concat(claudeCalls(), codexCalls(), otherCalls(), unknownCalls()) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.check(t)
		})
	}
}

// check reads the call and wants what the case has.
func (c callCase) check(t *testing.T) {
	t.Helper()
	call := ledger.ParseCall(&conversation.Block{Kind: conversation.ToolCall, Name: c.tool, Text: c.arguments})
	if call.Tool != c.tool {
		t.Errorf("tool %q", call.Tool)
	}
	for _, list := range []struct {
		what string
		got  []string
		want string
	}{{"reads", call.Reads, c.reads}, {"writes", call.Writes, c.writes}, {"deletes", call.Deletes, c.deletes}} {
		if !slices.Equal(list.got, strings.Fields(list.want)) {
			t.Errorf("%s %q, want %q", list.what, list.got, list.want)
		}
	}
	if call.Argument != c.argument {
		t.Errorf("argument %q, want %q", call.Argument, c.argument)
	}
	if call.Command != c.command {
		t.Errorf("command %q, want %q", call.Command, c.command)
	}
}

func claudeCalls() []callCase {
	return []callCase{
		{name: "Claude Code reads", tool: "Read", arguments: `{"file_path":"/p/a.go","offset":3}`, reads: "/p/a.go", argument: "/p/a.go"},
		{name: "Claude Code edits", tool: "Edit", arguments: `{"replace_all":false,"file_path":"/p/a.go","old_string":"\"a\\","new_string":"b"}`, writes: "/p/a.go", argument: "/p/a.go"},
		{name: "Claude Code edits several places", tool: "MultiEdit", arguments: `{"file_path":"/p/a.go","edits":[{"old_string":"x","new_string":"y"}]}`, writes: "/p/a.go", argument: "/p/a.go"},
		{name: "Claude Code writes", tool: "Write", arguments: `{ "file_path" : "/p/b.go" , "content" : "x" }`, writes: "/p/b.go", argument: "/p/b.go"},
		{name: "Claude Code edits a notebook", tool: "NotebookEdit", arguments: `{"notebook_path":"/p/n.ipynb","new_source":"x"}`, writes: "/p/n.ipynb", argument: "/p/n.ipynb"},
		{name: "Claude Code searches", tool: "Grep", arguments: `{"pattern":"rm -rf","path":"/p","output_mode":"content"}`, argument: "rm -rf in /p"},
		{name: "Claude Code lists", tool: "Glob", arguments: `{"pattern":"**/*.go"}`, argument: "**/*.go"},
		{name: "Claude Code runs", tool: "Bash", arguments: `{"command":"rm a.txt","description":"Delete"}`, deletes: "a.txt", argument: "rm a.txt", command: "rm a.txt"},
		{name: "Claude Code starts an agent", tool: "Task", arguments: `{"prompt":"long","description":"Review","subagent_type":"x"}`, argument: "Review"},
		{name: "Claude Code fetches", tool: "WebFetch", arguments: `{"prompt":"p","url":"https://example.com/a.go"}`, argument: "https://example.com/a.go"},
		{name: "arguments that are no JSON", tool: "Read", arguments: `{"file_path":`, argument: ""},
		{name: "no arguments", tool: "TaskList", arguments: `{}`, argument: ""},
	}
}

func codexCalls() []callCase {
	shell := "apply_patch <<'EOF'\n" + codexPatch + "\nEOF"
	return []callCase{
		{name: "Codex runs", tool: "exec_command", arguments: `{"cmd":"cat a.txt","workdir":"/p"}`, reads: "a.txt", argument: "cat a.txt", command: "cat a.txt"},
		{name: "Codex runs in a shell", tool: "shell", arguments: `{"command":["bash","-lc","cat a.txt | wc -l"]}`, reads: "a.txt", argument: "cat a.txt | wc -l", command: "cat a.txt | wc -l"},
		{name: "Codex runs a program", tool: "shell", arguments: `{"command":["git","commit","-m","it's done"]}`, argument: `git commit -m 'it'\''s done'`, command: `git commit -m 'it'\''s done'`},
		{name: "local shell", tool: "local_shell", arguments: `{"type":"exec","command":["rm","a.txt"],"env":{}}`, deletes: "a.txt", argument: "rm a.txt", command: "rm a.txt"},
		{
			name: "Codex patches", tool: "apply_patch", arguments: codexPatch, writes: "src/main.rs src/new.rs src/to.rs", deletes: "src/gone.rs src/from.rs",
			argument: "src/main.rs src/new.rs src/to.rs src/gone.rs src/from.rs",
		},
		{
			name: "Codex patches in a function", tool: "apply_patch", arguments: object("input", codexPatch), writes: "src/main.rs src/new.rs src/to.rs", deletes: "src/gone.rs src/from.rs",
			argument: "src/main.rs src/new.rs src/to.rs src/gone.rs src/from.rs",
		},
		{
			name: "Codex patches in a shell", tool: "shell", arguments: object("command", shell), writes: "src/main.rs src/new.rs src/to.rs", deletes: "src/gone.rs src/from.rs",
			argument: shell, command: shell,
		},
		{name: "Responses patches", tool: "apply_patch", arguments: `{"type":"update_file","path":"lib/a.py","diff":"@@\n-x\n+y"}`, writes: "lib/a.py", argument: "lib/a.py"},
		{name: "Responses deletes", tool: "apply_patch", arguments: `{"type":"delete_file","path":"lib/a.py"}`, deletes: "lib/a.py", argument: "lib/a.py"},
	}
}

func otherCalls() []callCase {
	return []callCase{
		{name: "opencode reads", tool: "read", arguments: `{"filePath":"/p/a.ts"}`, reads: "/p/a.ts", argument: "/p/a.ts"},
		{name: "opencode edits", tool: "edit", arguments: `{"filePath":"/p/a.ts","oldString":"a","newString":"b"}`, writes: "/p/a.ts", argument: "/p/a.ts"},
		{name: "opencode patches", tool: "apply_patch", arguments: object("patchText", "--- a/x.ts\n+++ b/x.ts\n@@ -1 +1 @@\n-a\n+b\n"), writes: "x.ts", argument: "x.ts"},
		{name: "pi edits", tool: "edit", arguments: `{"path":"src/a.ts","edits":[{"oldText":"a","newText":"b"}]}`, writes: "src/a.ts", argument: "src/a.ts"},
		{name: "pi runs", tool: "bash", arguments: `{"command":"echo x > out.txt","timeout":5}`, writes: "out.txt", argument: "echo x > out.txt", command: "echo x > out.txt"},
		{name: "Cline writes", tool: "write_to_file", arguments: `{"path":"a.ts","content":"x"}`, writes: "a.ts", argument: "a.ts"},
		{name: "Cline replaces", tool: "replace_in_file", arguments: `{"path":"a.ts","diff":"------- SEARCH"}`, writes: "a.ts", argument: "a.ts"},
		{name: "Cline reads", tool: "read_file", arguments: `{"path":"a.ts"}`, reads: "a.ts", argument: "a.ts"},
		{name: "Cline runs", tool: "execute_command", arguments: `{"command":"npm test","requires_approval":false}`, argument: "npm test", command: "npm test"},
		{name: "Cline reads several", tool: "read_files", arguments: `{"files":[{"path":"a.ts","start_line":1,"end_line":9},{"path":"b.ts"}]}`, reads: "a.ts b.ts", argument: "a.ts b.ts"},
		{name: "Cline runs several", tool: "run_commands", arguments: `{"commands":["cat a.ts","rm b.ts"]}`, reads: "a.ts", deletes: "b.ts", argument: "cat a.ts\nrm b.ts", command: "cat a.ts\nrm b.ts"},
		{name: "Cline's editor", tool: "editor", arguments: `{"path":"/p/a.tsx","old_text":"a","new_text":"b"}`, writes: "/p/a.tsx", argument: "/p/a.tsx"},
		{name: "Cursor edits", tool: "edit_file", arguments: `{"target_file":"a.py","instructions":"x","code_edit":"y"}`, writes: "a.py", argument: "a.py"},
		{name: "Cursor runs", tool: "run_terminal_cmd", arguments: `{"command":"touch b.py","is_background":false}`, writes: "b.py", argument: "touch b.py", command: "touch b.py"},
		{name: "Cursor deletes", tool: "delete_file", arguments: `{"target_file":"a.py"}`, deletes: "a.py", argument: "a.py"},
		{name: "OpenHands views", tool: "str_replace_editor", arguments: `{"command":"view","path":"/w/a.c","view_range":[1,9]}`, reads: "/w/a.c", argument: "/w/a.c"},
		{name: "OpenHands replaces", tool: "str_replace_editor", arguments: `{"command":"str_replace","path":"/w/a.c","old_str":"a","new_str":"b"}`, writes: "/w/a.c", argument: "/w/a.c"},
	}
}

// unknownCalls are of tools that only their names' words explain.
func unknownCalls() []callCase {
	return []callCase{
		{name: "an MCP server's write", tool: "mcp__filesystem__write_file", arguments: `{"path":"/p/a.md","content":"x"}`, writes: "/p/a.md", argument: "/p/a.md"},
		{name: "an MCP server's move", tool: "mcp__filesystem__move_file", arguments: `{"source":"/p/a.md","destination":"/p/b.md"}`, writes: "/p/b.md", deletes: "/p/a.md", argument: "/p/a.md /p/b.md"},
		{name: "camel case", tool: "saveDocument", arguments: `{"fileName":"x","path":"docs/a.md"}`, writes: "docs/a.md", argument: "docs/a.md"},
		{name: "a view by its words", tool: "get_file_contents", arguments: `{"path":"docs/a.md"}`, reads: "docs/a.md", argument: "docs/a.md"},
		{name: "a name that is not a path", tool: "create_issue", arguments: `{"file":"none here","title":"A bug"}`, argument: "none here"},
		{name: "an address is no path", tool: "load_page", arguments: `{"path":"https://example.com/a"}`, argument: "https://example.com/a"},
		{name: "a search by its words", tool: "mcp__code__search_code", arguments: `{"query":"x","path":"src/a.go"}`, argument: "x in src/a.go"},
		{name: "a shell by its words", tool: "mcp__host__runScript", arguments: `{"script":"rm old.txt"}`, deletes: "old.txt", argument: "rm old.txt", command: "rm old.txt"},
	}
}

func TestContentAndPartialReadsAreTold(t *testing.T) {
	t.Parallel()
	for arguments, partial := range map[string]bool{`{"file_path":"a"}`: false, `{"file_path":"a","limit":20}`: true, `{"file_path":"a","offset":1}`: true} {
		if call := ledger.ParseCall(&conversation.Block{Name: "Read", Text: arguments}); call.Partial != partial {
			t.Errorf("%s: partial %v", arguments, call.Partial)
		}
	}
	call := ledger.ParseCall(&conversation.Block{Name: "Write", Text: object("file_path", "a", "content", "one\n\"two\"\tü")})
	if call.Content != "one\n\"two\"\tü" {
		t.Errorf("content %q", call.Content)
	}
	call = ledger.ParseCall(&conversation.Block{Name: "Bash", Text: object("command", "cat > a.txt <<'EOF'\none\n$two\nEOF")})
	if call.Content != "one\n$two\n" {
		t.Errorf("content of a here-document %q", call.Content)
	}
}

// A plan is a call's to show and the person's to approve.
func TestPlansAreRead(t *testing.T) {
	t.Parallel()
	call := ledger.ParseCall(&conversation.Block{Name: "ExitPlanMode", Text: object("plan", "# Plan\n1. Go")})
	if call.Plan != "# Plan\n1. Go" {
		t.Errorf("plan %q", call.Plan)
	}
}

func FuzzParseCall(f *testing.F) {
	for _, test := range slices.Concat(claudeCalls(), codexCalls(), otherCalls(), unknownCalls()) {
		f.Add(test.tool, test.arguments)
	}
	f.Add("bash", object("command", "cat <<A <<'B' $(cat <<C\nx)\nC\n) `x \"$(\" '"))
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		call := ledger.ParseCall(&conversation.Block{Kind: conversation.ToolCall, Name: tool, Text: arguments})
		for _, path := range slices.Concat(call.Reads, call.Writes, call.Deletes) {
			if path == "" && call.Command != "" {
				t.Errorf("a command has a file without a name: %q", arguments)
			}
		}
		kept := ledger.New()
		kept.Add(0, 0, []conversation.Message{
			{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, ID: "a", Name: tool, Text: arguments}}},
			{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, ID: "a", Text: arguments}}},
		})
		if size := words(kept.Text(100, words)); size > 100 {
			t.Errorf("a text of %d", size)
		}
	})
}
