package ledger

import (
	"runtime"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// A loop whose variable stands for itself ends.
// S37
func TestLoopThatNamesItselfEnds(t *testing.T) {
	t.Parallel()
	got := readShell("for x in $x a; do cat $x; done; for y in $z; do cat $y; done; for z in $y; do cat $z $y; done")
	if len(got.reads) != 1 || got.reads[0] != "a" {
		t.Errorf("reads %q", got.reads)
	}
}

// What a command costs to read grows with its length, not with its square: each shape is
// read at two lengths, and the longer one may allocate little more than in proportion.
// S37
func TestReadingACommandGrowsWithItsLength(t *testing.T) {
	for name, shape := range map[string]func(n int) string{
		"substitutions":            func(n int) string { return strings.Repeat("$(", n) },
		"substitutions with words": func(n int) string { return strings.Repeat("a $(", n) },
		"arithmetic":               func(n int) string { return strings.Repeat("$((", n) },
		"backquotes":               func(n int) string { return strings.Repeat("`a`", n) },
		"pipes":                    func(n int) string { return strings.Repeat("a | ", n) },
		"documents":                func(n int) string { return strings.Repeat("cat <<A\n", n) },
		"names":                    func(n int) string { return "rm" + distinct(n) },
		"a loop":                   func(n int) string { return "for x in" + distinct(n) + "; do rm" + strings.Repeat(" $x", n) + "; done" },
		"redirections":             func(n int) string { return strings.ReplaceAll(distinct(n), " ", " >") },
		"folders":                  func(n int) string { return strings.Repeat("cd a;", n) + "cat b" },
		"folders and files":        func(n int) string { return strings.Repeat("cd a;cat b;", n) },
	} {
		allocated := func(n int) uint64 {
			var before, after runtime.MemStats
			command := shape(n)
			runtime.ReadMemStats(&before)
			readShell(command)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		allocated(1)
		if short, long := allocated(1_000), allocated(4_000); long > 9*short+1<<16 {
			t.Errorf("%s: %d bytes for 1,000 and %d for 4,000", name, short, long)
		}
	}
}

// Texts of the size of a request are read in one pass: each of these would take more than ten
// minutes, after which go test gives up, if what stands before or behind each tag were read
// again for it.
// S37
func TestTextsOfManyTagsAreRead(t *testing.T) {
	t.Parallel()
	const size = 31 << 20
	for _, piece := range []string{"<system-reminder>", "a<file >", "a<file >\t"} {
		text := strings.Repeat(piece, size/len(piece))
		New().Add(0, 0, []conversation.Message{{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}}})
	}
}

// distinct returns so many words.
func distinct(n int) string {
	var words strings.Builder
	for i := range n {
		words.WriteString(" f" + strings.Repeat("x", 1) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)))
	}
	return words.String()
}
