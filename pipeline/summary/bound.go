package summary

import (
	"fmt"
	"slices"
)

const (
	// maxTokens is the maximum of tokens of a summary, in any window.
	maxTokens = 8_000

	// maxShare is its maximum share of the window.
	maxShare = 0.05

	// longItem is the size, in characters, to which longer items are cut before any item is
	// dropped.
	longItem = 600
)

// Budget returns how many tokens a summary may have in a window.
func Budget(window int) int { return min(maxTokens, int(maxShare*float64(window))) }

// bound takes items out of a document until its text has at most so many tokens, always in the same
// order: first those that other parts of the prompt and the archive can replace, last a person's
// orders, and of each list the oldest.
func (d *document) bound(budget int, count func(string) int) {
	if count(d.String()) <= budget {
		return
	}
	for s := range d.items {
		for i, item := range d.items[s] {
			if section(s) != constraints && len(item) > longItem {
				d.items[s][i] = shortened(item, longItem)
			}
		}
	}
	gone := map[*[]string]int{}
	for _, keep := range []int{5, 1, 0} {
		for _, step := range d.steps() {
			for len(*step.items)-kept(gone[step.items]) > keep {
				if count(d.String()) <= budget {
					return
				}
				// Drop several at once, so that long lists are not counted again for each of their
				// items.
				n := max(1, (len(*step.items)-keep-kept(gone[step.items]))/8)
				drop(step.items, n, step.fromEnd, gone)
			}
		}
	}
}

// step is a list from which items are taken.
type step struct {
	items   *[]string
	fromEnd bool // items at the end go first
}

func (d *document) steps() []step {
	return []step{
		{&d.identifiers, true},
		{&d.read, true},
		{&d.items[done], false},
		{&d.items[critical], true},
		{&d.items[decisions], false},
		{&d.modified, true},
		{&d.items[nextSteps], true},
		{&d.items[inProgress], false},
		{&d.items[blocked], false},
		{&d.items[constraints], false},
		{&d.items[goal], true},
	}
}

// kept is 1 for a list with a line about dropped items.
func kept(gone int) int { return min(gone, 1) }

// drop takes n items from one end of a list and leaves a line about all items dropped there.
func drop(items *[]string, n int, fromEnd bool, gone map[*[]string]int) {
	note := kept(gone[items])
	list := *items
	if fromEnd {
		list = list[:len(list)-note-n]
	} else {
		list = list[note+n:]
	}
	gone[items] += n
	text := fmt.Sprintf("(%d more in the archive)", gone[items])
	if fromEnd {
		*items = slices.Concat(list, []string{text})
		return
	}
	*items = slices.Concat([]string{text}, list)
}
