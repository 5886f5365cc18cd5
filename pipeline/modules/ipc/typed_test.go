package ipc_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/modules/ipc"
)

// What a slash command stands for is no word of the person: the record has the command alone.
func TestRecordHasASlashCommandWithoutWhatItStandsFor(t *testing.T) {
	t.Parallel()
	pasted := "Review the changes. Always start with the tests. " + strings.Repeat("Then the next file. ", 40)
	c := (&talk{}).user("Hello.").run("ls", words(300)).add(
		`{"role":"user","content":[{"type":"text","text":"<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the new files</command-args>"},{"type":"text","text":` + quoted(pasted) + `}]}`,
	)
	c.run("git diff", words(1_500)).user("Now mend it.").run("make", words(400)).run("make test", words(400))

	_, sealed := epoch(t, c.body(), 3_500, func(c *ipc.Config) {
		c.PreserveLastTurns, c.PreserveTokens, c.CompressTo = 1, 0, 0.05
	})

	holds(t, sealed, "User: /review the new files")
	lacks(t, sealed, "Always start with the tests", "command-message")
}

// Paths are written once for all that is below them, and a call that comes again stands in the
// record once.
func TestRecordFactorsOutPathsAndRepeatedCalls(t *testing.T) {
	t.Parallel()
	const base = "/home/dev/projects/palimpsest/service"
	c := (&talk{}).user("Read them.")
	for _, name := range []string{"a.go", "b.go", "c.go", "d.go", "a.go"} {
		c.tool("Read", `{"file_path":"`+base+"/internal/"+name+`"}`, "package internal\n\nfunc Serve() {}\n"+words(500))
		c.run("git status", "clean "+words(30))
	}
	c.run("make", words(600)).run("make test", words(300))

	_, sealed := epoch(t, c.body(), 3_500, func(c *ipc.Config) {
		c.PreserveLastTurns, c.PreserveTokens, c.CompressTo, c.DeepestLevel = 1, 0, 0.01, 2
	})

	holds(t, sealed, `Paths below `+base+`/internal are written without it.\n`, "Read(b.go)", "Read(a.go)")
	if got := strings.Count(string(sealed), "Read(a.go)"); got != 1 {
		t.Errorf("a.go is read %d times in the record", got)
	}
	lacks(t, sealed, "Bash(git status)") // it only looked, and nothing uses what it showed
	if got := strings.Count(string(sealed), base); got != 1 {
		t.Errorf("the record names the folder %d times", got)
	}
}

// What a person says to a rejected call stays at every level, and is no order: a tool could write it.
func TestWordsWithARejectionStayWordForWord(t *testing.T) {
	t.Parallel()
	const said = "let's do this as a separate PR, and always name the branch in the title"
	c := (&talk{}).user("Mend the parser.").run("ls", words(300)).add(
		`{"role":"assistant","content":[{"type":"tool_use","id":"r","name":"Write","input":{"file_path":"/srv/parser.go","content":"x"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"r","is_error":true,"content":`+
			quoted("The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n"+said)+`}]}`,
	)
	c.run("cat a.log", words(1_500)).run("make", words(400)).run("make test", words(400))
	for level := 1; level <= 3; level++ {
		exchange, sealed := epoch(t, c.body(), 3_500, func(c *ipc.Config) {
			c.PreserveLastTurns, c.PreserveTokens, c.CompressTo, c.DeepestLevel = 1, 0, 0.01, level
		})
		if exchange.Report.Levels[level] == 0 {
			t.Fatalf("no turn at L%d: %v", level, exchange.Report.Levels)
		}
		holds(t, sealed, said)
		lacks(t, sealed, "Directives of the user", "User: "+said)
	}
}

// A block at L3 begins with a request, and says what became of each check. It leaves out a client's text for an empty answer.
func TestOutlineGroupsTurnsByRequest(t *testing.T) {
	t.Parallel()
	c := (&talk{}).user("Hello.").run("ls", words(300)).
		user("Mend the parser.").run("go test ./parser", "--- FAIL: TestA\nFAIL\tparser").run("go test ./parser", "ok  \tparser\t0.1s").say("The parser works.").
		user("Wait.").say("(no content)").user("Now the lexer.").run("go test ./lexer", "--- FAIL: TestB\nFAIL\tlexer").run("cat a.log", words(1_500)).
		run("make", words(400)).user("Go on.").run("make test", words(400))

	_, sealed := epoch(t, c.body(), 3_500, func(c *ipc.Config) {
		c.PreserveLastTurns, c.PreserveTokens, c.CompressTo = 1, 0, 0.15
	})

	text := string(sealed)
	first, second := strings.Index(text, "User: Mend the parser."), strings.Index(text, "User: Now the lexer.")
	if first < 0 || second < first {
		t.Fatalf("the requests are at %d and %d:\n%s", first, second, abridged(sealed))
	}
	holds(t, sealed[:second], `Checks: Bash(go test ./parser) → ok`)
	lacks(t, sealed[:second], "Failed:")
	lacks(t, sealed, "(no content)")
	holds(t, sealed[second:], `Failed: Bash(go test ./lexer) → error`)
}

// Newest turns that are as large as the goal leave the older ones their share of it.
func TestLargeNewestTurnsLeaveRoomForOlderOnes(t *testing.T) {
	t.Parallel()
	c := (&talk{}).user("Look at everything.")
	for i := range 30 {
		c.run(fmt.Sprintf("./check %d", i), words(350))
	}
	c.run("cat all.txt", words(6_000)).run("make", words(100))

	exchange, sealed := epoch(t, c.body(), 20_000, func(c *ipc.Config) { c.PreserveLastTurns, c.PreserveTokens = 2, 0 })

	if levels := exchange.Report.Levels; levels[1]+levels[2] < 20 {
		t.Errorf("turns at L0 to L3: %v\n%s", levels, abridged(sealed))
	}
}
