package ledger_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// D3: Codex on GPT-6 has one tool, which runs a program that uses all others.
func TestToolsThatAProgramCallsAreRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]callCase{
		"a command": {
			arguments: `const r = await tools.exec_command({cmd: "sed -n '1,20p' src/a.go", workdir: "/repo", yield_time_ms: 1000}); text(r.output);`,
			reads:     "src/a.go", argument: "sed -n '1,20p' src/a.go", command: "sed -n '1,20p' src/a.go",
		},
		"as JSON":    {arguments: `text(await tools.exec_command({"cmd":"rm old.txt"}))`, deletes: "old.txt", argument: "rm old.txt", command: "rm old.txt"},
		"by a name":  {arguments: `tools["exec_command"]({cmd: 'cat a.txt'})`, reads: "a.txt", argument: "cat a.txt", command: "cat a.txt"},
		"a variable": {arguments: "const cmd = `cat a.txt`;\nconst r = await tools.exec_command({cmd, max_output_tokens: 500});", reads: "a.txt", argument: "cat a.txt", command: "cat a.txt"},
		"several at once": {
			arguments: `const [a, b] = await Promise.all([tools.exec_command({cmd: "cat a.txt"}), tools.exec_command({cmd: "cat b.txt"})]);`,
			reads:     "a.txt b.txt", argument: "cat a.txt; cat b.txt", command: "cat a.txt; cat b.txt",
		},
		"of lines": {
			arguments: `await tools.exec_command({cmd: ["cat a.txt", "cat b.txt"].join("\n")})`,
			reads:     "a.txt b.txt", argument: "cat a.txt\ncat b.txt", command: "cat a.txt\ncat b.txt",
		},
		"what only running it tells": {
			arguments: `const rs = await Promise.all(["a", "b"].map(f => tools.exec_command({cmd: "head " + f}))); for (const r of rs) text(r.output)`,
			argument:  "head …", command: "head …",
		},
		"a patch": {
			arguments: "text(await tools.apply_patch(`" + strings.ReplaceAll(codexPatch, "`", "\\`") + "`));",
			writes:    "src/main.rs src/new.rs src/to.rs", deletes: "src/gone.rs src/from.rs",
			argument: "apply_patch src/main.rs src/new.rs src/to.rs src/gone.rs src/from.rs",
		},
		"a patch in a variable": {
			arguments: "const patch = \"*** Begin Patch\\n*** Update File: a.go\\n@@\\n-\\u0061\\n+b\\n*** End Patch\";\ntext(await tools.apply_patch(patch));",
			writes:    "a.go", argument: "apply_patch a.go",
		},
		"a patch and a command": {
			arguments: "await tools.apply_patch(`*** Begin Patch\n*** Add File: a.go\n+x\n*** End Patch`);\nconst r = await tools.exec_command({cmd: \"go test ./...\"});",
			writes:    "a.go", argument: "go test ./...; apply_patch a.go", command: "go test ./...",
		},
		"comments":       {arguments: "// @exec: {\"yield_time_ms\": 10}\n/* tools.exec_command({cmd: 'rm x'}) */ await tools.exec_command({cmd: 'cat a.txt'})", reads: "a.txt", argument: "cat a.txt", command: "cat a.txt"},
		"another tool":   {arguments: `text(await tools.mcp__db__query({query: "select 1"}))`, argument: "mcp__db__query select 1"},
		"a picture":      {arguments: `await tools.view_image({path: "a.png"})`, reads: "a.png", argument: "view_image a.png"},
		"a shell's line": {arguments: `rm a.txt`, deletes: "a.txt", argument: "rm a.txt", command: "rm a.txt"},
		"half of one":    {arguments: `await tools.exec_command({cmd: "cat a.txt`, reads: "a.txt", argument: "cat a.txt", command: "cat a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.tool = "exec"
			test.check(t)
		})
	}
}

// A program may be cut off anywhere, and hold anything.
func FuzzProgram(f *testing.F) {
	f.Add("const p = `\\u{1F600}\\x41`; await tools.exec_command({cmd: 'a' + b, x: [1, \"c\"]}); tools[\"apply_patch\"](p)")
	f.Fuzz(func(_ *testing.T, program string) {
		ledger.ParseCall(&conversation.Block{Kind: conversation.ToolCall, Name: "exec", Text: program})
	})
}
