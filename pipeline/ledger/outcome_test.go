package ledger_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

func TestResultsOfEveryClientTellTheirFailure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		marked     bool
		failed     bool
	}{
		{"marked", "anything", true, true},
		{"fine", "ok", false, false},
		{"empty", "", false, false},
		{"Claude Code", "Exit code 1\nFAIL", false, true},
		{"Codex", "Chunk ID: eae0ff\nWall time: 0.0 seconds\nProcess exited with code 1\nOriginal token count: 3\nOutput:\nx", false, true},
		{"Codex, fine", "Chunk ID: eae0ff\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 1 is printed", false, false},
		{"Codex, older", `{"output":"no such file","metadata":{"exit_code":127,"duration_seconds":0.1}}`, false, true},
		{"Codex, older, fine", `{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}`, false, false},
		{"Codex, freeform", "Exit code: 2\nWall time: 1 seconds\nOutput:\nx", false, true},
		{"Codex, a program that failed", "Script failed\nWall time 0.0 seconds\nOutput:\n\nScript error:\nError: bad", false, true},
		{"Codex, a program whose command failed", "Script completed\nWall time 0.1 seconds\nOutput:\n\n{\"chunk_id\":\"a\",\"exit_code\":0,\"output\":\"x\"}\n{\"chunk_id\":\"b\",\"exit_code\":3,\"output\":\"hi\"}", false, true},
		{"Codex, a program whose commands went well", "Script completed\nWall time 0.1 seconds\nOutput:\n\n{\"chunk_id\":\"a\",\"exit_code\":0,\"output\":\"it says \\\"exit_code\\\":1\"}", false, false},
		{"Codex, a program that prints such an object of another's", "Script completed\nWall time 0.1 seconds\nOutput:\n\n{\"exit_code\":3}", false, false},
		{"pi", "grep: a: No such file\n\n\nCommand exited with code 2", false, true},
		{"OpenHands", "x\n[The command completed with exit code 1.]", false, true},
		{"OpenHands, fine", "x\n[The command completed with exit code 0.]", false, false},
		{"OpenHands' editor", "ERROR:\nNo replacement was performed", false, true},
		{"Cline", `{"query":"edit:a.ts","result":"not found","success":false}`, false, true},
		{"Cline, fine", `{"query":"edit:a.ts","result":"Edited","success":true}`, false, false},
		{"Codex' patch", "apply_patch verification failed: Failed to find expected lines", false, true},
		{"Python", "Traceback (most recent call last):\n  File", false, true},
		{"a file that tells of exit codes", "1\tExit code 1 means failure", false, false},
		{"a list of commits", "abc Error: fixed\ndef failed with exit code", false, false},
	} {
		if got := ledger.Failed(&conversation.Block{Kind: conversation.ToolResult, Text: test.text, IsError: test.marked}); got != test.failed {
			t.Errorf("%s: failed %v", test.name, got)
		}
	}
}

// Behind a pipe the exit code is that of tail: what a test tool prints counts.
func TestTestToolsAreJudgedByTheirOutput(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command, output string
		failed          bool
	}{
		{"go test ./... 2>&1 | tail -5", "ok  \tp/a\t0.1s\n--- FAIL: TestX (0.00s)\nFAIL\tp/b\t0.2s\nFAIL", true},
		{"go test ./...", "--- FAIL is only a log line\nok  \tp/a\t0.1s", false},
		{"go test -v ./a", "=== RUN TestError\nError: expected\n--- PASS: TestError\nPASS\nok  \tp/a\t0.1s", false},
		{"go build ./...", "", false},
		{"cd web && npx tsc --noEmit", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.", true},
		{"pytest -q tests/test_a.py", "E   AssertionError\n1 failed, 3 passed in 0.2s", true},
		{"python3 -m pytest", "10 failed, 1 passed in 0.2s", true},
		{"python3 -m pytest", "4 passed in 0.2s", false},
		{"cargo test", "test result: FAILED. 1 passed; 1 failed", true},
		{"cargo test", "test result: ok. 2 passed; 0 failed", false},
		{"make build", "cc a.c\nmake: *** [Makefile:3: build] Error 1", true},
		{"mise run lint 2>&1 | tail -3", "1 issues:\n* dupl: 1\n[lint] ERROR task failed", true},
		{"npm test", "Tests:       1 failed, 8 passed, 9 total\nTime:  2 s", true},
		{"./gradlew check", "BUILD FAILED in 3s", true},
		{"git log --oneline", "abc FAIL: fixed\nFAIL", false},
		{"grep -rn FAIL .", "FAIL", false},
	} {
		call := ledger.ParseCall(&conversation.Block{Name: "Bash", Text: object("command", test.command)})
		if got := call.Failed(&conversation.Block{Kind: conversation.ToolResult, Text: test.output}); got != test.failed {
			t.Errorf("%s: %q: failed %v", test.command, test.output, got)
		}
	}
}

// open returns the subjects of a ledger's open errors.
func openErrors(kept *ledger.Ledger) []string {
	var subjects []string
	for _, e := range kept.Errors {
		if e.Open() {
			subjects = append(subjects, e.Subject)
		}
	}
	return subjects
}

func TestAnErrorIsOpenUntilTheSameSucceeds(t *testing.T) {
	t.Parallel()
	const missed = "<tool_use_error>String to replace not found in file.</tool_use_error>"
	edit := func(file string) string { return object("file_path", file, "old_string", "a", "new_string", "b") }
	for _, test := range []struct {
		name string
		talk *talk
		open string
	}{
		{"nothing else ran", new(talk).bash("go test ./a", "Exit code 1\nFAIL"), "go test ./a"},
		{"the same command", new(talk).bash("go test ./a", "Exit code 1\nFAIL").bash("go test ./a", "ok"), ""},
		{"with another filter", new(talk).bash("cd /p && go test ./a 2>&1 | tail -5", "FAIL").bash("go test ./a 2>&1 | head -50", "ok  \tp/a"), ""},
		{"another package", new(talk).bash("go test ./a", "Exit code 1\nFAIL").bash("go test ./b", "ok"), "go test ./a"},
		{"all packages", new(talk).bash("go test ./a -run TestX", "Exit code 1\nFAIL").bash("go test -race ./...", "ok"), ""},
		{"all tests of another tool", new(talk).bash("go test ./a", "Exit code 1\nFAIL").bash("mise run test:ci", "ok"), ""},
		{"one of all", new(talk).bash("go test ./...", "Exit code 1\nFAIL").bash("go test ./a -run TestX", "ok"), "go test ./..."},
		{"another merge", new(talk).bash("git merge a", "Exit code 1\nCONFLICT").bash("git merge --continue", ""), ""},
		{"it failed again", new(talk).bash("go vet ./a", "Exit code 1\nx").bash("go vet ./a", "ok").bash("go vet ./a", "Exit code 1\ny"), "go vet ./a"},
		{"an edit that failed", new(talk).fails("Edit", edit("/p/a.go"), missed), "/p/a.go"},
		{"the file is edited", new(talk).fails("Edit", edit("/p/a.go"), missed).call("Edit", edit("/p/a.go"), "ok"), ""},
		{"the file is written", new(talk).fails("Edit", edit("/p/a.go"), missed).call("Write", object("file_path", "/p/a.go", "content", "x"), "ok"), ""},
		{"the file is changed in a shell", new(talk).fails("Edit", edit("/p/cmd/a.go"), missed).bash("sed -i s/a/b/ /p/cmd/a.go", ""), ""},
		{"another file is edited", new(talk).fails("Edit", edit("/p/a.go"), missed).call("Edit", edit("/p/b.go"), "ok"), "/p/a.go"},
		{"it is read only", new(talk).fails("Edit", edit("/p/a.go"), missed).call("Read", object("file_path", "/p/a.go"), "x"), "/p/a.go"},
		{"a file that was not there is written", new(talk).fails("Read", object("file_path", "/p/a.go"), "File does not exist.").call("Write", object("file_path", "/p/a.go", "content", "x"), "ok"), ""},
		{"all that one task runs", new(talk).bash("mise run lint", "Exit code 1\nx").bash("mise run lint && mise run test 2>&1", "0 issues.\nok  \tp/a"), ""},
		{"what a line does not wait for", new(talk).bash("mise run lint", "Exit code 1\nx").bash("mise run lint; mise run test", "ok  \tp/a"), "mise run lint"},
		{"only one of two checks", new(talk).bash("npm run lint && npm test", "Exit code 1\nx").bash("npm test", "3 passed"), "npm run lint && npm test"},
		{"both checks, one by one", new(talk).bash("npm run lint && npm test", "Exit code 1\nx").bash("npm test", "3 passed").bash("npm run lint", ""), ""},
		{"a compiler, by the build", new(talk).bash("cd web && npx tsc --noEmit", "a.ts(3,1): error TS1: x").bash("cd web && npm run build", "done"), ""},
		{"a compiler, by the build of another folder", new(talk).bash("cd web && npx tsc --noEmit", "a.ts(3,1): error TS1: x").bash("cd api && npm run build", "done"), "cd web && npx tsc --noEmit"},
		{"a build, by tests of the same package", new(talk).bash("go build ./a", "Exit code 1\nx").bash("go test ./a", "ok  \tp/a"), ""},
		{"tests, by a build", new(talk).bash("go test ./a", "Exit code 1\nFAIL").bash("go build ./...", ""), "go test ./a"},
		{"integration tests, by others", new(talk).bash("go test -tags=integration ./a", "Exit code 1\nFAIL").bash("mise run test", "ok  \tp/a"), "go test -tags=integration ./a"},
		{"integration tests, by all", new(talk).bash("go test -tags=integration ./a", "Exit code 1\nFAIL").bash("mise run test:ci", "ok  \tp/a"), ""},
		{"the tests that failed of all", new(talk).bash("go test ./...", "Exit code 1\n--- FAIL: TestX (0.1s)\nFAIL\tp/a\t0.1s").bash("go test ./a -run '^TestX$'", "ok  \tp/a"), ""},
		{"one of the tests that failed", new(talk).bash("go test ./...", "Exit code 1\n--- FAIL: TestX (0.1s)\n--- FAIL: TestY (0.1s)\nFAIL\tp/a\t0.1s").bash("go test ./a -run TestX", "ok  \tp/a"), "go test ./..."},
		{"the package that failed of all", new(talk).bash("go test ./...", "Exit code 1\n--- FAIL: TestX (0.1s)\nFAIL\texample.org/p/a\t0.1s").bash("go test ./a", "ok  \tp/a"), ""},
		{"one file of pytest", new(talk).bash("pytest tests/test_a.py::test_x", "1 failed").bash("python -m pytest tests/test_a.py", "4 passed"), ""},
		{"another crate", new(talk).bash("cargo test -p a", "test result: FAILED. 1 failed").bash("cargo test -p b", "test result: ok. 1 passed"), "cargo test -p a"},
		{"a linter, by its task", new(talk).bash("npx eslint src/a.ts", "Exit code 1\nx").bash("npm run lint", ""), ""},
		{"a run that takes the other in fails", new(talk).bash("go test ./a -run TestX", "Exit code 1\nFAIL").bash("go test ./a", "Exit code 1\nFAIL"), "go test ./a"},
		{"conflicts, by a commit", new(talk).bash("git merge a", "Exit code 1\nCONFLICT").bash("git commit --no-edit", ""), ""},
		{"a script, with other arguments", new(talk).bash("python3 run.py a", "Exit code 1\nx").bash("python3 run.py b", ""), ""},
		{"publishing, by installing", new(talk).bash("npm run publish", "Exit code 1\nx").bash("npm install", ""), "npm run publish"},
		{"grep finds nothing", new(talk).bash("grep -n x a.go", "Exit code 1"), ""},
		{"a look at what is not there", new(talk).bash("ls -la missing && cat a", "Exit code 1\nls: missing: No such file or directory"), ""},
		{"files differ", new(talk).bash("diff a b", "Exit code 1\n< a\n> b"), ""},
		{"a search that failed", new(talk).fails("Grep", object("pattern", "x"), "InputValidationError: bad"), ""},
		{"a page that is not there", new(talk).fails("WebFetch", object("url", "https://example.org"), "404"), ""},
		{"a file that is not there", new(talk).fails("Read", object("file_path", "/p/a.go"), "File does not exist."), ""},
		{"a person stopped it", new(talk).bash("npm test", "Exit code 137\n[Request interrupted by user for tool use]"), ""},
		{"another tool", new(talk).fails("mcp__linear__create_issue", object("title", "A"), "no such team").call("mcp__linear__create_issue", object("title", "A"), "made"), ""},
	} {
		if got := strings.Join(openErrors(test.talk.ledger()), " | "); got != test.open {
			t.Errorf("%s: open %q, want %q", test.name, got, test.open)
		}
	}
}

// A failed edit or command is a failed attempt, not an open error, if the model doesn't try it again.
// An error from a check stays open until a check passes.
func TestErrorIsGivenUpUnlessTriedAgain(t *testing.T) {
	t.Parallel()
	c := new(talk).bash("cp a b", "Exit code 1\ncp: a: No such file").bash("go test ./a", "Exit code 1\nFAIL").bash("git merge x", "Exit code 1\nCONFLICT")
	for range 5 {
		c.call("Read", object("file_path", "/p/b.go"), "x")
	}
	if got := strings.Join(openErrors(c.ledger()), " | "); got != "cp a b | go test ./a | git merge x" {
		t.Errorf("open after 5 turns: %q", got)
	}
	for range 6 {
		c.call("Read", object("file_path", "/p/b.go"), "x")
	}
	kept := c.ledger()
	if got := strings.Join(openErrors(kept), " | "); got != "go test ./a | git merge x" {
		t.Errorf("open after 12 turns: %q", got)
	}
	if tried := kept.FailedAttempts(); len(tried) != 1 || tried[0].Text != "Bash cp a b → cp: a: No such file" || tried[0].Message != 0 {
		t.Errorf("%+v", tried)
	}
	if text := kept.Text(1000, words); !strings.Contains(text, "Tried in vain:\n#0 Bash cp a b → cp: a: No such file") {
		t.Errorf("the text is\n%s", text)
	}
}

// A sentence about an attempt that failed is kept, and a command that takes changes back.
func TestFailedAttemptsAreKept(t *testing.T) {
	t.Parallel()
	kept := new(talk).user("Go.").
		says("The sed command didn't work because of the multiline format. Let me see if that works.").
		says("If the cache doesn't work, we could use Redis for it.").
		says("Ha, yes, back to the original approach but now the linter approves.").
		bash("git checkout -- a.go", "").bash("git checkout main", "").bash("git reset --hard origin/main", "").ledger()
	var got []string
	for _, attempt := range kept.FailedAttempts() {
		got = append(got, attempt.Text)
	}
	if strings.Join(got, " | ") != "The sed command didn't work because of the multiline format. | Took back changes: git checkout -- a.go" {
		t.Errorf("%q", got)
	}
}

// The newest turns stay as they are: what they do closes errors of those before them, and adds nothing.
func TestTurnsThatStayCloseErrorsBeforeThem(t *testing.T) {
	t.Parallel()
	l := new(talk).user("Go.").bash("go test ./a", "Exit code 1\nFAIL").call("TaskCreate", object("subject", "Fix it"), "Task #1 created").
		bash("go test ./...", "ok  \tp/a").call("TaskUpdate", object("taskId", "1", "status", "completed"), "ok").bash("cp a b", "Exit code 1\nx").lane()
	kept := ledger.New()
	for n, turn := range l.turns {
		messages := l.messages[turn.From:turn.To]
		if n < 2 {
			kept.Add(n, turn.From, messages)
			continue
		}
		kept.Follow(n, ledger.Calls(turn.From, messages))
	}
	if len(openErrors(kept)) > 0 || len(kept.Errors) != 1 || kept.Errors[0].Solved != 5 || kept.Tasks[0].Status != "completed" || len(kept.Commands) != 1 {
		t.Errorf("%+v %+v %+v", kept.Errors, kept.Tasks, kept.Commands)
	}
}

func TestASolvedErrorNamesWhatSolvedIt(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").bash("go test ./a", "Exit code 1\n=== RUN x\n--- FAIL: TestX (0.1s)\nFAIL").call("Read", `{"file_path":"a"}`, "x").bash("go test ./a", "ok").ledger()
	if len(kept.Errors) != 1 {
		t.Fatalf("%+v", kept.Errors)
	}
	e := kept.Errors[0]
	if e.Open() || e.Solved != 5 || e.Message != 1 || e.Turn != 0 || e.Tool != "Bash" || e.Excerpt != "--- FAIL: TestX (0.1s)" {
		t.Errorf("%+v", e)
	}
}

// A build that failed says so last, and why before.
func TestAnExcerptTellsWhatFailed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ command, output, excerpt string }{
		{"go test ./a", "# p/a [p/a.test]\na/a_test.go:4:2: undefined: context\nFAIL\tp/a [build failed]\nFAIL", "a/a_test.go:4:2: undefined: context"},
		{"make build", "go build ./...\n./x.go:7: no such name\nmake: *** [Makefile:9: build] Error 1", "./x.go:7: no such name"},
		{"make build", "make: *** [Makefile:9: build] Error 1", "make: *** [Makefile:9: build] Error 1"},
		{"grep -n x a.go && go test ./a", "a.go:3: x\n--- FAIL: TestX (0.1s)\nFAIL", "--- FAIL: TestX (0.1s)"},
		{"curl http://a.example:80/", "http://a.example:80/: refused", "http://a.example:80/: refused"},
		{"run", "at 10:20:30: stopped\nerror: it broke", "error: it broke"},
	} {
		kept := new(talk).bash(test.command, "Exit code 1\n"+test.output).ledger()
		if len(kept.Errors) != 1 || kept.Errors[0].Excerpt != test.excerpt {
			t.Errorf("%q: %+v, want %q", test.output, kept.Errors, test.excerpt)
		}
	}
}

func TestAnExcerptTellsWhatAProgramsCommandPrinted(t *testing.T) {
	t.Parallel()
	kept := new(talk).call("exec", `text(await tools.exec_command({cmd: "go test ./a"}))`,
		"Script completed\nWall time 0.1 seconds\nOutput:\n\n"+`{"chunk_id":"a","exit_code":1,"output":"ok  \tp/b\n--- FAIL: TestX (0.1s)\n    x_test.go:3: \"no\"\nFAIL"}`).ledger()
	if len(kept.Errors) != 1 || kept.Errors[0].Excerpt != "--- FAIL: TestX (0.1s)" || kept.Errors[0].Subject != "go test ./a" {
		t.Errorf("%+v", kept.Errors)
	}
}
