package summary

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/api/upstream/providerdouble"
)

// D1: a text has all sections or names the first that it lacks.
func TestEverySectionMustBeThere(t *testing.T) {
	t.Parallel()
	if missing := parse(providerdouble.Notes).missing(); missing != "" {
		t.Errorf("a whole summary lacks %q", missing)
	}
	for heading, want := range map[string]string{
		"## Goal": "goal", "## Constraints & Preferences": "constraints & preferences", "### Done": "done", "### In progress": "in progress",
		"### Blocked": "blocked", "## Key decisions": "key decisions", "## Next steps": "next steps", "## Critical context": "critical context",
	} {
		if got := parse(strings.Replace(providerdouble.Notes, heading+"\n", "", 1)).missing(); got != want {
			t.Errorf("without %q: %q is missing", heading, got)
		}
	}
}

func TestHeadingsAndListsAreReadAsModelsWriteThem(t *testing.T) {
	t.Parallel()
	d := parse("Here are the notes:\n# 1. GOAL\nShip it.\n**Constraints and Preferences:**\n* [x] Use tabs\n\n## Progress\n#### Completed\n1. One\n   more of it\n" +
		"```sh\n# Goal is no heading here\n```\n### In-Progress:\n- none\n### Blocked\nN/A\n## Decisions\n+ Go\n## Next Steps\n• Two\n## Critical Context\nMind the gap.\n## Notes\n- extra\n## Read files\n- a.go")
	for at, want := range map[section]string{
		goal: "Ship it.", constraints: "Use tabs", done: "One\n   more of it\n```sh\n# Goal is no heading here\n```", inProgress: "", blocked: "",
		decisions: "Go", nextSteps: "Two", critical: "Mind the gap.|extra",
	} {
		if got := strings.Join(d.items[at], "|"); got != want {
			t.Errorf("%s: %q, want %q", at.heading(), got, want)
		}
	}
	if missing := d.missing(); missing != "" {
		t.Errorf("%q is missing", missing)
	}
	if len(d.read) != 0 {
		t.Errorf("the model's files count: %v", d.read)
	}
}

// C4: a summary that is read and written again is the same, however often.
func TestTheTextOfADocumentIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := drawDocument(r)
		once := parse(d.String())
		if twice := parse(once.String()); once.String() != twice.String() {
			t.Fatalf("%s\nbecomes\n%s", once, twice)
		}
		if missing := once.missing(); missing != "" {
			t.Fatalf("%q is missing in\n%s", missing, d)
		}
	})
}

// D2: whatever a model writes, nothing that is or was done is open.
func TestNothingThatIsDoneIsOpen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d, before := drawDocument(r), drawDocument(r)
		d.settle(before)
		closed := map[string]bool{}
		for _, item := range d.items[done] {
			closed[meaning(item)] = true
		}
		for _, item := range before.items[done] {
			if !closed[meaning(item)] {
				t.Fatalf("%q was done and is no longer", item)
			}
		}
		for _, at := range []section{inProgress, blocked, nextSteps} {
			for _, item := range d.items[at] {
				if closed[meaning(item)] {
					t.Fatalf("%q is done and open", item)
				}
			}
		}
	})
}

// D6: a summary has at most 8,000 tokens and a twentieth of the window.
func TestASummarysBoundGoesByTheWindow(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]int{8_000: 400, 64_000: 3_200, 160_000: 8_000, 200_000: 8_000, 1_000_000: 8_000} {
		if got := Budget(window); got != want {
			t.Errorf("in a window of %d: %d tokens, want %d", window, got, want)
		}
	}
	if got := (&Job{Window: 64_000, Factor: 1.6}).budget(); got != 2_000 {
		t.Errorf("for a model that makes 1.6 tokens of one: %d, want 2,000", got)
	}
}

// D6: over its bound a document is cut always in the same way, what a person
// ordered last, and the newest order survives the older ones.
func TestADocumentIsCutToItsBound(t *testing.T) {
	t.Parallel()
	count := newCounter(t).Count
	rapid.Check(t, func(r *rapid.T) {
		d := drawDocument(r)
		text, budget := d.String(), rapid.IntRange(120, 600).Draw(r, "budget")
		again := *d
		for s := range again.items {
			again.items[s] = append([]string(nil), d.items[s]...)
		}

		d.bound(budget, count)
		again.bound(budget, count)

		if got := count(d.String()); got > budget {
			t.Fatalf("%d tokens of %d:\n%s", got, budget, d)
		}
		if d.String() != again.String() {
			t.Fatalf("the same document is cut in two ways:\n%s\n%s", d, &again)
		}
		if count(text) <= budget && d.String() != text {
			t.Fatalf("a document within its bound was cut:\n%s", d)
		}
	})
}

func TestWhatTheArchiveCanReplaceGoesFirst(t *testing.T) {
	t.Parallel()
	count := newCounter(t).Count
	d := parse(providerdouble.Notes)
	d.items[constraints] = []string{"Old order: never use cgo.", "New order: always run make lint."}
	for range 40 {
		d.identifiers = append(d.identifiers, "identifier/of/no/weight.go")
		d.items[done] = append(d.items[done], "A step that was done some time ago.")
	}
	whole := count(d.String())

	d.bound(whole-100, count)
	if text := d.String(); !strings.Contains(text, "more in the archive)") || strings.Count(text, "A step that was done") != 40 {
		t.Errorf("identifiers do not go first:\n%s", text)
	}
	d.bound(170, count)
	if text := d.String(); !strings.Contains(text, "never use cgo") || !strings.Contains(text, "always run make lint") || strings.Count(text, "weight.go") > 5 {
		t.Errorf("orders went before the rest:\n%s", text)
	}
}

// drawDocument draws items from few words, so that some are the same.
func drawDocument(r *rapid.T) *document {
	d := parse(providerdouble.Notes)
	item := rapid.StringMatching(`(Write|write|test|Fix) (the )?(parser|scanner|docs)(\.|!|)( with more words than that)?`)
	for s := range d.items {
		d.items[s] = rapid.SliceOfN(item, 0, 30).Draw(r, "items")
	}
	return d
}
