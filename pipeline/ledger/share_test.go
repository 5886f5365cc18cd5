package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

// No section gets more than it needs, all together no more than there is, and what
// one leaves goes to those that want more.
func TestSharesArePassedOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.IntRange(0, 1000).Draw(t, "budget")
		var sections []*section
		need := 0
		for range rapid.IntRange(0, 8).Draw(t, "sections") {
			s := &section{share: rapid.IntRange(1, 60).Draw(t, "share"), need: rapid.IntRange(1, 400).Draw(t, "need")}
			need += s.need
			sections = append(sections, s)
		}
		used, granted, wanting := share(sections, budget), 0, 0
		for _, s := range sections {
			if s.grant > s.need {
				t.Fatalf("%d granted where %d are needed", s.grant, s.need)
			}
			if s.grant < s.need {
				wanting++
			}
			granted += s.grant
		}
		if granted > budget || used < granted || used > budget {
			t.Fatalf("%d granted, %d used of %d", granted, used, budget)
		}
		if wanting > 0 && granted < budget-wanting { // a share is a whole number
			t.Fatalf("%d of %d granted although %d sections want more", granted, budget, wanting)
		}
		if need <= budget && wanting > 0 {
			t.Fatalf("%d sections want more where %d of %d are needed", wanting, need, budget)
		}
	})
}

func TestASectionThatNeedsLittleLeavesTheRest(t *testing.T) {
	t.Parallel()
	small, large, other := &section{share: 50, need: 10}, &section{share: 25, need: 500}, &section{share: 25, need: 500}
	if used := share([]*section{small, large, other}, 110); used != 110 || small.grant != 10 || large.grant != 50 || other.grant != 50 {
		t.Errorf("%d used: %d, %d, %d", used, small.grant, large.grant, other.grant)
	}
}
