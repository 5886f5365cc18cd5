package rehydrator

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"
)

func TestReferencesAreRecognized(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"What did the migration test print earlier?",
		"what did the linter say about store.go?",
		"Earlier you ran a command to: Format and lint code. What exactly did it print?",
		"Use the config we looked at.",
		"open the config file that we looked at again",
		"which port did we settle on for the proxy?",
		"What was the name of the branch you created at the beginning?",
		"Do you remember the error from the staging deploy?",
		"do you still recall what the retry limit was?",
		"As we agreed, the retries go into client.go. Please do that.",
		"like you suggested, let's use a queue",
		"Let's go back to the plan for the importer.",
		"Did we fix the comment in logger.go?",
		"have you already checked the race in worker_test.go?",
		"The numbers you gave me for p99, can you put them in a table?",
		"take your previous suggestion and apply it to the other package",
		"Compare with the output from the first run please.",
		"I told you at the start which directory is off limits, respect it",
		"You mentioned a timeout previously, how long was it?",
		"why did you rule out the second approach?",
		"how many rows had the backfill reported?",
		"where did we write the helper for retries?",
		"remind me what the flag was called",
		"In the last session we decided on a cache key, which one?",
		"What’s the value you measured earlier?",
		"you said that before.",
		"The stack trace I pasted a while ago, does it match this one?",
		"can you return to the list? I mean, get back to the list of failing tests",
		"what were the results of the benchmark you ran yesterday",
	} {
		if len(refers(text, nil)) == 0 {
			t.Errorf("%q refers to something", text)
		}
	}
}

// The words before and earlier, and what speaks of now or of things to come, refer to
// nothing.
func TestOrdinaryRequestsReferToNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Run the linter before you commit.",
		"Before we start, install the dependencies.",
		"make the check happen earlier in the pipeline",
		"Move this call before the loop.",
		"the earlier the better",
		"Earlier versions of Go are not supported.",
		"Remember to run make vet.",
		"Always remember: never touch generated files.",
		"remember that the API is public",
		"could we fire off an explore agent before starting work to look for related things?",
		"how do we detect other sessions",
		"but there are no local changes, right?",
		"can you fix it?",
		"bring it up to date with main, github is flagging merge conflicts",
		"okay, let's try the pty approach",
		"Add a test that fails before the change and passes after it.",
		"It should return the previous value if the key exists.",
		"Show the last ten lines of the log.",
		"Write a function that goes back to the first page.",
		"the user was redirected before login",
		"Rename it to what the interface says.",
		"please continue",
		"Implement the plan.",
		"commit this please",
		"What does the parser return for an empty body?",
		"fix the failing tests",
		"we need to handle errors earlier",
		"sort by date, newest before oldest",
		"> what did you print earlier?",
		"```\nwhat did the test print earlier?\n```",
	} {
		if found := refers(text, nil); len(found) > 0 {
			t.Errorf("%q refers to nothing, found %q", text, found)
		}
	}
}

func TestPhrasesOfTheConfigCount(t *testing.T) {
	t.Parallel()
	if got := refers("Wie vorhin besprochen: die Datei anlegen. Danke.", []string{"vorhin Besprochen"}); len(got) != 1 || got[0] != "Wie vorhin besprochen: die Datei anlegen." {
		t.Errorf("%q", got)
	}
	if got := refers("Fertig.", []string{""}); len(got) != 0 {
		t.Errorf("an empty phrase matches: %q", got)
	}
}

func TestLongPastedTextIsNotASentence(t *testing.T) {
	t.Parallel()
	if got := refers(strings.Repeat("what did it print earlier, ", 40), nil); len(got) != 0 {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("A line of a log.\n", 2000) + "What did the migration print earlier?"
	if got := refers(long, nil); len(got) != 1 {
		t.Errorf("the end of a long text is not read: %q", got)
	}
}

// Whatever a phrase matches is cued: sentences made from the phrases themselves.
func TestEverySentenceThatAPhraseMatchesIsCued(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, phrase := range phrases() {
		tree, err := syntax.Parse(phrase.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		matched := 0
		for range 2000 {
			sentence := strings.ToLower(sample(tree, random))
			if !phrase.MatchString(sentence) {
				continue // a boundary fell inside a word
			}
			matched++
			if !isCued(sentence) {
				t.Fatalf("%q is not cued, though %s matches it", sentence, phrase)
			}
		}
		if matched < 200 {
			t.Errorf("only %d sentences match %s", matched, phrase)
		}
	}
}

// sample returns a text that an expression matches, but for its boundaries.
func sample(tree *syntax.Regexp, random *rand.Rand) string {
	var text strings.Builder
	repeat := func(least, most int) {
		for range least + random.IntN(most-least+1) {
			text.WriteString(sample(tree.Sub[0], random))
		}
	}
	switch tree.Op {
	case syntax.OpLiteral:
		return string(tree.Rune)
	case syntax.OpCharClass:
		return string(tree.Rune[2*random.IntN(len(tree.Rune)/2)])
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		return string("x -.7"[random.IntN(5)])
	case syntax.OpCapture:
		return sample(tree.Sub[0], random)
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			text.WriteString(sample(sub, random))
		}
	case syntax.OpAlternate:
		return sample(tree.Sub[random.IntN(len(tree.Sub))], random)
	case syntax.OpStar:
		repeat(0, 2)
	case syntax.OpPlus:
		repeat(1, 3)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(tree.Min, max(tree.Min, min(tree.Max, tree.Min+3)))
	default: // boundaries and ends
	}
	return text.String()
}
