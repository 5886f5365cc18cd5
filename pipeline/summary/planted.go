package summary

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

const (
	// plantedShare is the minimum share of words in common with a tool's result at which an item
	// counts as copied from it.
	plantedShare = 0.7

	// maxPlanted bounds how many sentences of tool results are remembered.
	maxPlanted = 5_000

	// longestOrder is the longest sentence, in words, that counts as an order.
	longestOrder = 60
)

// sayings are sentences with their words.
type sayings struct {
	texts []string
	sets  []wordSet
}

func (s *sayings) add(text string) {
	if set := setOf(text); len(set) > 0 {
		s.texts, s.sets = append(s.texts, text), append(s.sets, set)
	}
}

// closest returns the largest share of words that an item has in common with one of them.
func (s *sayings) closest(item wordSet) float64 {
	most := 0.0
	for _, set := range s.sets {
		most = max(most, item.shares(set))
	}
	return most
}

// addOrders adds the sentences of a tool's output that read like an order.
func (s *sayings) addOrders(text string) {
	for _, sentence := range sentences(text) {
		if len(s.texts) == maxPlanted {
			return
		}
		if isOrder(sentence) {
			s.add(sentence)
		}
	}
}

// isOrder reports whether a sentence gives someone an order.
func isOrder(sentence string) bool {
	list := words(sentence)
	if len(list) < 2 || len(list) > longestOrder {
		return false
	}
	text := " " + strings.Join(list, " ") + " "
	for _, sign := range []string{
		" always ", " never ", " must ", " must-not ", " do not ", " don t ", " shall ", " should ", " ought ", " have to ", " need to ",
		" ignore ", " disregard ", " forget ", " override ", " from now on ", " you are ", " your task ", " your new ", " instruction ",
		" instructions ", " required ", " requirement ", " make sure ", " ensure ", " remember ", " prefer ", " only use ", " refuse ",
		" please ", " immediately ", " without asking ", " system prompt ", " important ", " user wants ", " the user ", " stop ",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// withoutPlanted returns items without orders that only a tool's output has given, and neither the
// person nor an instruction file.
func (f *facts) withoutPlanted(items []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		set := setOf(item)
		planted := f.planted.closest(set)
		return planted >= plantedShare && f.typed.closest(set) < plantedShare
	})
}

// clean removes planted orders from a document. If that empties the goal, the person's first
// request replaces it.
func (f *facts) clean(d *document) {
	d.items[constraints] = f.withoutPlanted(d.items[constraints])
	if items := f.withoutPlanted(d.items[goal]); len(items) < len(d.items[goal]) {
		d.items[goal] = items
	}
	if len(d.items[goal]) == 0 && f.asked != "" {
		d.items[goal] = []string{f.asked}
	}
	// Other sections may mention a tool's output, but not obey it.
	for _, at := range []section{nextSteps, inProgress, decisions} {
		d.items[at] = slices.DeleteFunc(d.items[at], func(item string) bool {
			return isTakeover(item) && len(f.withoutPlanted([]string{item})) == 0
		})
	}
}

// isTakeover reports whether a sentence tries to override earlier instructions.
func isTakeover(sentence string) bool {
	text := " " + strings.Join(words(sentence), " ") + " "
	for _, sign := range []string{
		" ignore ", " disregard ", " forget ", " override ", " from now on ", " you are now ", " system prompt ", " without asking ",
		" previous instructions ", " new instructions ",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// results returns the texts of a message's tool results.
func results(message *conversation.Message) []string {
	var texts []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.ToolResult && block.Text != "" {
			texts = append(texts, block.Text)
		}
	}
	return texts
}
