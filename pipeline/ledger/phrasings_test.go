package ledger_test

import (
	_ "embed"
	"strings"
	"testing"
)

// People put orders and preferences in many ways, and in many languages. The sentences were
// invented before the words of the code were looked at, and after they were first changed.
var (
	//go:embed testdata/orders.txt
	ordersInManyWords string
	//go:embed testdata/other.txt
	otherSentences string
)

// D4: nine of ten orders and preferences are kept, however they are put, and one of twenty
// sentences that order nothing for later.
func TestOrdersInManyWordsAreKept(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name, sentences string
		least, most     int // of a hundred that are kept
	}{
		{"orders", ordersInManyWords, 90, 100}, {"other sentences", otherSentences, 0, 5},
	} {
		var kept, dropped []string
		for sentence := range strings.Lines(of.sentences) {
			if len(typedOf(new(talk).user(sentence).says("ok").ledger())) > 0 {
				kept = append(kept, sentence)
			} else {
				dropped = append(dropped, sentence)
			}
		}
		whole := len(kept) + len(dropped)
		t.Logf("%s: %d of %d kept", of.name, len(kept), whole)
		if 100*len(kept) < of.least*whole || 100*len(kept) > of.most*whole {
			t.Errorf("%s: %d of %d kept:\n%s\nnot kept:\n%s", of.name, len(kept), whole, strings.Join(kept, ""), strings.Join(dropped, ""))
		}
	}
}

// An order for a case that may come again goes before one that holds throughout, where not
// both fit.
func TestOrdersOfOneCaseAreWeaker(t *testing.T) {
	t.Parallel()
	var c talk
	c.user("From here on write short sentences.").user("If you see a typo in a comment or in the docs, fix it.")
	if text := c.ledger().Text(46, words); !strings.Contains(text, "short sentences") || strings.Contains(text, "typo") {
		t.Errorf("the text is\n%s", text)
	}
}
