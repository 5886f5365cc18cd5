package compactionbench

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

// The parameters of the stateless policy, from the original documentation.
const (
	statelessShare = 0.75 // maximum share of the window for a prompt
	cutCharacters  = 200  // of a tool result at L1
	lineCharacters = 80   // of a turn at L3
)

// stateless compresses the oldest turns again for every request, just enough: all to L1, the oldest first,
// then to L2, then to L3.
type stateless struct {
	*reading

	levels []*[4][]*form // of each turn, nil if not made yet
}

func newStateless(r *reading) *stateless {
	return &stateless{reading: r, levels: make([]*[4][]*form, len(r.turns))}
}

func (s *stateless) prompts(length int) []sending {
	turns := s.turnsOf(length)
	forms := s.originals(0, s.turns[0].From)
	size := s.fixed.Tokens + s.sums[length]
	chosen := make([]int, len(turns))
	for level := 1; level <= 3; level++ {
		for i := 0; i < len(turns)-kept && float64(size) > statelessShare*s.limit; i++ {
			if shorter := s.at(i, level); sizeOf(shorter) < sizeOf(s.at(i, chosen[i])) {
				size += sizeOf(shorter) - sizeOf(s.at(i, chosen[i]))
				chosen[i] = level
			}
		}
	}
	for i, turn := range turns {
		if chosen[i] == 0 {
			forms = append(forms, s.originals(turn.From, min(turn.To, length))...)
			continue
		}
		forms = append(forms, s.at(i, chosen[i])...)
	}
	return []sending{{forms: forms}}
}

// at returns a turn at a level.
func (s *stateless) at(index, level int) []*form {
	if s.levels[index] == nil {
		s.levels[index] = new([4][]*form)
	}
	made := &s.levels[index][level]
	if *made == nil {
		*made = s.make(index, level)
	}
	return *made
}

func (s *stateless) make(index, level int) []*form {
	turn := s.turns[index]
	forms := s.originals(turn.From, turn.To)
	switch level {
	case 0:
		return forms
	case 1:
		for i := turn.From; i < turn.To; i++ {
			if s.messages[i].flags.Has(conversation.HasResult) {
				forms[i-turn.From] = s.withResults(i, firstCharacters)
			}
		}
		return forms
	case 2:
		return []*form{s.said(s.firstSentences(turn, 400))}
	default:
		line := fmt.Sprintf("[turn %d] %s", index+1, strings.Join(strings.Fields(s.firstSentences(turn, lineCharacters)), " "))
		return []*form{s.said(cut(line, lineCharacters))}
	}
}

// said returns a text as a message.
func (s *stateless) said(text string) *form {
	return s.formOf(conversation.Message{
		Role: conversation.User, Changed: true, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}},
	})
}

// firstSentences returns the first sentence of each message of a turn, each limited to a number of
// characters.
func (s *stateless) firstSentences(turn conversation.Turn, characters int) string {
	var lines []string
	for i := turn.From; i < turn.To; i++ {
		for _, block := range s.messages[i].Blocks {
			if block.Kind == conversation.Text {
				lines = append(lines, cut(firstSentence(block.Text), characters))
				break
			}
		}
	}
	return strings.Join(lines, "\n")
}

// firstSentence returns a text up to its first end of a sentence or line.
func firstSentence(text string) string {
	text = strings.TrimSpace(conversation.WithoutReminders(text))
	if line, _, found := strings.Cut(text, "\n"); found {
		text = line
	}
	if sentence, _, found := strings.Cut(text, ". "); found {
		return sentence + "."
	}
	return text
}

// firstCharacters is the original L1 form of a tool result.
func firstCharacters(result string) string {
	if utf8.RuneCountInString(result) <= cutCharacters {
		return result
	}
	return fmt.Sprintf("%s… [%d chars]", cut(result, cutCharacters), utf8.RuneCountInString(result))
}

// cut returns the first characters of a text.
func cut(text string, characters int) string {
	if len(text) <= characters {
		return text
	}
	end := 0
	for range characters {
		_, size := utf8.DecodeRuneInString(text[end:])
		if size == 0 {
			break
		}
		end += size
	}
	return text[:end]
}

func sizeOf(forms []*form) int {
	size := 0
	for _, form := range forms {
		size += form.Tokens
	}
	return size
}
