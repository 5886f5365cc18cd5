package compactionbench

import (
	"slices"
	"strings"
	"testing"
)

// The small talk's last messages take up three names of the first; a
// prompt that says nothing has none of them. Names of arguments don't count: the tools' definitions hold them.
func TestNamesFromBeforeACompactionAreCounted(t *testing.T) {
	t.Parallel()
	r := reads(t, smallTalk())
	// A compaction with the second request; the third and fourth come behind it.
	now := &standing{length: r.ends[1], request: 1}
	var f Forgetting
	now.sides = []side{newSide(&f.Ours, "ResolveLane and src/lane/store.go"), newSide(&f.Sliding, "")}
	for request := 1; request < len(r.ends); request++ {
		f.used(r, now, request, 1_000, Anthropic())
	}
	if f.Ours.Unrepeated != (Share{2, 3}) || f.Sliding.Unrepeated != (Share{0, 3}) {
		t.Errorf("ours %+v, the window %+v", f.Ours, f.Sliding)
	}
	// 48213 stands in two messages, the others in one of them and in the first.
	if f.Ours.Recoveries != 1 || f.Sliding.Recoveries != 2 || f.Ours.Recovery < 100+300 {
		t.Errorf("ours %d, the window %d, %.0f tokens", f.Ours.Recoveries, f.Sliding.Recoveries, f.Ours.Recovery)
	}
}

func TestEditsNeedEveryLineThatTheyReplace(t *testing.T) {
	t.Parallel()
	talk := smallTalk()
	talk.Body = []byte(strings.NewReplacer(
		"ResolveLane failed with 48213", `\tfirst line\n  second line`,
		`"name":"Grep","input":{"pattern":"ResolveLane","path":"src/lane/store.go"}`,
		`"name":"MultiEdit","input":{"file_path":"a.go","edits":[{"old_string":"first line\nsecond line","new_string":"x"},{"old_string":"never seen","new_string":"y"}]}`,
	).Replace(small))
	r := reads(t, talk)
	now := &standing{length: r.ends[1], request: 1}
	edits := r.edited(now, 2)
	if len(edits) != 1 || !slices.Equal(edits[0].lines, []string{"first line", "second line"}) || edits[0].source != 2 {
		t.Fatalf("%+v", edits)
	}
	for text, want := range map[string]Share{"first line": {0, 1}, "second line, first line": {1, 1}} {
		kept := Kept{}
		one := side{kept: &kept, sight: sightOf(text)}
		if missing := one.lacksLines(edits, true); kept.Edits != want || len(missing) != want.Of-want.Kept {
			t.Errorf("%q: %+v, missing %v", text, kept.Edits, missing)
		}
	}
}

// What the model reads again behind a compaction isn't counted as remembered, or lost, by the prompt.
func TestEditsOfTextsSeenAgainAreNotCounted(t *testing.T) {
	t.Parallel()
	talk := smallTalk()
	talk.Body = []byte(strings.NewReplacer(
		"ResolveLane failed with 48213", `first line`, `"content":"denied","is_error":true`, `"content":"first line"`,
		`"name":"Grep","input":{"pattern":"ResolveLane","path":"src/lane/store.go"}`,
		`"name":"Edit","input":{"file_path":"a.go","old_string":"first line","new_string":"x"}`,
	).Replace(small))
	r := reads(t, talk)
	if edits := r.edited(&standing{length: r.ends[1], request: 1}, 2); len(edits) != 0 {
		t.Errorf("behind a compaction with the second request: %+v", edits)
	}
	if edits := r.edited(&standing{length: r.ends[2], request: 2}, 2); len(edits) != 1 || edits[0].source != 4 {
		t.Errorf("behind one with the third: %+v", edits)
	}
}

func TestOpenTasksAreThoseOfTheLatestList(t *testing.T) {
	t.Parallel()
	talk := smallTalk()
	talk.Body = []byte(strings.NewReplacer(
		`"name":"Edit","input":{"file_path":"src/lane/open.go"}`, `"name":"TodoWrite","input":{"todos":[{"content":"old","status":"pending"}]}`,
		`"name":"Grep","input":{"pattern":"ResolveLane","path":"src/lane/store.go"}`, `"name":"TodoWrite","input":{"todos":[{"content":"done","status":"completed"},{"content":"open","status":"in_progress"}]}`,
	).Replace(small))
	r := reads(t, talk)
	if before, after := r.openTasks(r.ends[1]), r.openTasks(len(r.messages)); !slices.Equal(before, []string{"old"}) || !slices.Equal(after, []string{"open"}) {
		t.Errorf("%q, then %q", before, after)
	}
}

func TestLongerSystemPromptIsTheOnlyChange(t *testing.T) {
	t.Parallel()
	longer, err := smallTalk().WithFixed(19_000)
	if err != nil {
		t.Fatal(err)
	}
	short, long := reads(t, smallTalk()), reads(t, longer)
	if grown := long.fixed.Tokens - short.fixed.Tokens; grown < 18_000 || grown > 20_000 || len(long.messages) != len(short.messages) {
		t.Errorf("%d tokens more, %d messages", grown, len(long.messages))
	}
}

// A client that masks results keeps the calls and the words, and gets the names of old results again.
func TestMaskedResultsAreRecovered(t *testing.T) {
	t.Parallel()
	bench, err := New()
	if err != nil {
		t.Fatal(err)
	}
	talk := bench.Generated(5, "anthropic", 40)
	r := reads(t, talk)
	var f Forgetting
	f.forgetMasked(r, Anthropic(), Warm())
	if f.Masked.Recoveries == 0 || f.Masked.Recovery <= 0 || f.Masked.Names.Of == 0 || f.Masking.Busts < 20 || f.Masked.Typed.Kept != f.Masked.Typed.Of {
		t.Errorf("%+v, %+v", f.Masked, f.Masking)
	}
}

// Words, tasks and reasons that a prompt lacks are lost once in a session, however many prompts lack them.
func TestLostTextsAreCountedOnce(t *testing.T) {
	t.Parallel()
	one := newSide(&Kept{}, "We keep this\nreason.")
	one.noteLost([]string{"We keep this reason.", "Use tabs.", "Use tabs."})
	one.noteLost([]string{"Use tabs.", "No emojis."})
	if one.kept.Lost != 2 {
		t.Errorf("%d lost: %v", one.kept.Lost, one.kept.lost)
	}
}
