package ipc_test

import (
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
	if got := strings.Count(string(sealed), "Bash(git status)"); got != 1 {
		t.Errorf("git status is run %d times in the record", got)
	}
	if got := strings.Count(string(sealed), base); got != 1 {
		t.Errorf("the record names the folder %d times", got)
	}
}
