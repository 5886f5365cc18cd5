package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/pipeline/ledger"
)

// everything is a conversation that has something in every section.
func everything() *talk {
	var c talk
	return c.user("Fix it. Never touch vendor/ by hand.").
		call("Read", object("file_path", "/p/read.go"), "x").
		call("Edit", object("file_path", "/p/a.go", "old_string", "a", "new_string", "b"), "ok").
		bash("rm /p/gone.go", "").
		bash("go test ./a", "Exit code 1\n--- FAIL: TestX").
		says("The issue was a missing lock in the cache of the resolver.").
		user("Always run gofmt.").
		call("ExitPlanMode", object("plan", "# Plan\n1. Lock"), "User has approved your plan.").
		call("Write", object("file_path", "/p/b.go", "content", "x"), "ok")
}

// D3, D4: all sections in their order, an entry a line with its message.
func TestTheBlockHasItsSectionsInOrder(t *testing.T) {
	t.Parallel()
	const want = `Directives of the user, word for word; where two conflict, the one with the higher number holds:
#0 Never touch vendor/ by hand.
#10 Always run gofmt.
Modified files:
#3 /p/a.go
#13 /p/b.go
Plan that the user approved (#11):
# Plan
1. Lock
Deleted files:
#5 /p/gone.go
Open errors:
#7 Bash go test ./a → --- FAIL: TestX
Decisions:
#9 The issue was a missing lock in the cache of the resolver.
Files that were only read:
#1 /p/read.go
Newest commands:
#5 rm /p/gone.go → ok
#7 go test ./a → failed`
	if got := everything().ledger().Text(1000, words); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := ledger.New().Text(1000, words); got != "" {
		t.Errorf("an empty ledger says %q", got)
	}
}

// After more turns only what changed is another line.
func TestTheBlockChangesOnlyByWhatChanged(t *testing.T) {
	t.Parallel()
	c := everything()
	before := strings.Split(c.ledger().Text(1000, words), "\n")
	after := strings.Split(c.bash("go test ./a", "ok").call("Edit", object("file_path", "/p/a.go", "old_string", "b", "new_string", "c"), "ok").ledger().Text(1000, words), "\n")
	var gone, came []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			came = append(came, line)
		}
	}
	if want := []string{"#3 /p/a.go", "Open errors:", "#7 Bash go test ./a → --- FAIL: TestX", "#7 go test ./a → failed"}; !slices.Equal(gone, want) {
		t.Errorf("gone: %q", gone)
	}
	if want := []string{"#17 /p/a.go", "#15 go test ./a → ok"}; !slices.Equal(came, want) {
		t.Errorf("came: %q", came)
	}
}

// A title alone, and how many lines are missing, tell nothing.
func TestASectionWithoutRoomForALineIsLeftOut(t *testing.T) {
	t.Parallel()
	var c talk
	for i := range 30 {
		c.call("Edit", object("file_path", fmt.Sprintf("/p/%02d.go", i), "old_string", "a", "new_string", "b"), "ok").
			call("Read", object("file_path", fmt.Sprintf("/q/%02d.go", i)), "x").
			bash(fmt.Sprintf("./run %d", i), "ok")
	}
	kept := c.ledger()
	for budget := 10; budget < 150; budget++ {
		lines := strings.Split(kept.Text(budget, words), "\n")
		for i, line := range lines {
			if strings.HasSuffix(line, "not shown)") && (i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "#")) {
				t.Fatalf("%d words: %q", budget, lines)
			}
		}
	}
}

// D4: where the budget is short, directives and modified files outlast the rest,
// and of each the oldest go first.
func TestDirectivesAndModifiedFilesAreTheLastToBeCut(t *testing.T) {
	t.Parallel()
	var c talk
	for i := range 40 {
		c.user(fmt.Sprintf("Never break rule %d.", i)).
			call("Edit", object("file_path", fmt.Sprintf("/p/%02d.go", i), "old_string", "a", "new_string", "b"), "ok").
			call("Read", object("file_path", fmt.Sprintf("/q/%02d.go", i)), "x").
			bash(fmt.Sprintf("./run %d", i), "ok")
	}
	kept := c.ledger()
	whole := kept.Text(10_000, words)
	if strings.Contains(whole, "not shown") || strings.Count(whole, "\n") != 40*3+8+3 {
		t.Fatalf("the whole text is\n%s", whole)
	}

	cut := kept.Text(words(whole)*9/10, words)
	for i := range 40 {
		if !strings.Contains(cut, fmt.Sprintf("Never break rule %d.\n", i)) || !strings.Contains(cut, fmt.Sprintf("/p/%02d.go", i)) {
			t.Fatalf("directive or file %d is missing in\n%s", i, cut)
		}
	}
	if !strings.Contains(cut, "older commands not shown)") || !strings.Contains(cut, "→ ok") || strings.Contains(cut, "./run 0 ") || !strings.Contains(cut, "./run 39 ") {
		t.Errorf("commands:\n%s", cut)
	}

	tight := kept.Text(150, words)
	if strings.Contains(tight, "Commands") || strings.Contains(tight, "only read") {
		t.Errorf("the rest is not cut first:\n%s", tight)
	}
	for _, newest := range []string{"Never break rule 39.", "/p/39.go", "more directives not shown)", "older modified files not shown)"} {
		if !strings.Contains(tight, newest) {
			t.Errorf("%q is missing in\n%s", newest, tight)
		}
	}
	if strings.Contains(tight, "rule 0.") || strings.Contains(tight, "/p/00.go") {
		t.Errorf("the oldest are not cut:\n%s", tight)
	}
	if strings.Index(tight, "rule 38.") > strings.Index(tight, "rule 39.") {
		t.Errorf("directives are out of order:\n%s", tight)
	}
}

// An instruction file that does not fit is cut at its end and leaves the others theirs.
func TestALongInstructionFileDoesNotPushOutTheRest(t *testing.T) {
	t.Parallel()
	file := "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nFirst rule.\n" + strings.Repeat("Another rule that takes its place.\n", 500) + "</INSTRUCTIONS>"
	var c talk
	c.user(file, "Always test.").says("We decided to keep the parser that is there.").bash("go test ./a", "Exit code 1\nFAIL")
	text := c.ledger().Text(400, words)
	for _, part := range []string{"Always test.", "Instructions in /p/AGENTS.md (#0):\nFirst rule.", "lines of this file not shown)", "We decided to keep", "go test ./a"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// D6, C4: whatever the entries and the way to count, the block stays within its
// budget, and the same ledger gives the same text.
func TestTheBlockStaysWithinItsBudget(t *testing.T) {
	t.Parallel()
	counts := []func(string) int{
		words,
		func(text string) int { return len(text) },
		func(text string) int { return len(strings.Fields(text))*2 + 1 }, // dearer together than apart
	}
	rapid.Check(t, func(t *rapid.T) {
		var c talk
		for i := range rapid.IntRange(0, 30).Draw(t, "turns") {
			path := fmt.Sprintf("/p/%s/%d.go", strings.Repeat("x", rapid.IntRange(1, 40).Draw(t, "path")), i)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				c.user("Always do " + rapid.StringN(1, 60, 200).Draw(t, "order") + ".").says("ok")
			case 1:
				c.call("Edit", object("file_path", path, "old_string", "a", "new_string", "b"), "ok")
			case 2:
				c.call("Read", object("file_path", path), "x")
			case 3:
				c.bash("rm "+path, rapid.SampledFrom([]string{"", "Exit code 1\nno"}).Draw(t, "result"))
			case 4:
				c.says("We decided to use " + path + " for everything there is.")
			case 5:
				c.user("Implement the following plan:\n" + strings.Repeat("One more step.\n", i)).says("ok")
			}
		}
		kept, count := c.ledger(), rapid.SampledFrom(counts).Draw(t, "count")
		budget := rapid.IntRange(0, 600).Draw(t, "budget")
		text := kept.Text(budget, count)
		if size := count(text); text != "" && size > budget {
			t.Fatalf("%d of %d:\n%s", size, budget, text)
		}
		if again := c.ledger().Text(budget, count); again != text {
			t.Fatalf("once\n%s\nthen\n%s", text, again)
		}
	})
}

// D4: where not all directives fit, wishes for the work at hand go before standing orders,
// however new they are, and what is left out is counted.
func TestStandingOrdersOutlastWishes(t *testing.T) {
	t.Parallel()
	var c talk
	c.user("Always answer in French.")
	c.user("I prefer trains over planes, can you find me one?")
	c.user("make sure nothing is pushed")
	wishes := 60
	for i := range wishes {
		c.user(fmt.Sprintf("When you touch form %d, run it.", i))
		c.user(fmt.Sprintf("Before you open page %d, tell me.", i))
		c.user(fmt.Sprintf("If you see error %d, tell me.", i))
	}
	kept := c.ledger()
	text := kept.Text(60, words)
	for _, order := range []string{"#0 Always answer in French.\n", "I prefer trains over planes\n", "make sure nothing is pushed"} {
		if !strings.Contains(text, order) {
			t.Errorf("%q is missing in\n%s", order, text)
		}
	}
	if shown := strings.Count(text, "#"); kept.LeftOut(text) != 3+3*wishes-shown || !strings.Contains(text, fmt.Sprintf("(%d more directives not shown)", kept.LeftOut(text))) {
		t.Errorf("%d left out, %d shown in\n%s", kept.LeftOut(text), shown, text)
	}
	if whole := kept.Text(10_000, words); kept.LeftOut(whole) != 0 || kept.LeftOut("") != 3+3*wishes {
		t.Errorf("%d of the whole text left out, %d of none", kept.LeftOut(whole), kept.LeftOut(""))
	}
}

// Of orders that contradict each other the newer one holds: both stand with their numbers and the rule that tells them
// apart, and where there is room for one it is the newer.
func TestNewerOrderHoldsOnConflict(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Always indent with tabs, in scripts, in templates, and in the docs as well, whatever the linter says of it.").says("Good.").user("Fix it. From now on, always indent with spaces.").ledger()
	const both = `Directives of the user, word for word; where two conflict, the one with the higher number holds:
#0 Always indent with tabs, in scripts, in templates, and in the docs as well, whatever the linter says of it.
#2 From now on, always indent with spaces.`
	if got := kept.Text(1000, words); got != both {
		t.Errorf("got\n%s\nwant\n%s", got, both)
	}
	alone := 0
	for budget := range words(both) {
		text := kept.Text(budget, words)
		if strings.Contains(text, "tabs") {
			t.Errorf("in %d tokens it keeps the older one:\n%s", budget, text)
		}
		if strings.Contains(text, "spaces") {
			alone++
		}
	}
	if alone == 0 {
		t.Error("the newer one never stands alone")
	}
}
