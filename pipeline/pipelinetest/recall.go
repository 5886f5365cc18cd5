package pipelinetest

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// Recall counts the identifiers in shortened messages that the session uses again later, and how many of them
// are kept: by the projection, and by first sentences of the same messages with as many tokens. Each
// identifier counts once.
type Recall struct {
	Wanted int `json:"wanted"`          // identifiers of shortened messages that a later turn uses
	Kept   int `json:"kept"`            // of these, the ones in the projection's own texts
	First  int `json:"first_sentences"` // of these, the ones in first sentences of the same size

	Tokens      int `json:"tokens"`       // of the projection's own texts
	FirstTokens int `json:"first_tokens"` // of the first sentences: about as many, never fewer
}

// Share returns the kept share of the wanted identifiers, by the projection and by first sentences; 1 and 1
// if there aren't any.
func (r Recall) Share() (kept, first float64) {
	if r.Wanted == 0 {
		return 1, 1
	}
	return float64(r.Kept) / float64(r.Wanted), float64(r.First) / float64(r.Wanted)
}

// Add returns the sum of both.
func (r Recall) Add(other Recall) Recall {
	return Recall{
		Wanted: r.Wanted + other.Wanted, Kept: r.Kept + other.Kept, First: r.First + other.First,
		Tokens: r.Tokens + other.Tokens, FirstTokens: r.FirstTokens + other.FirstTokens,
	}
}

// Shortened is a session at a prompt whose first messages are replaced by a projection.
type Shortened struct {
	Codec      wire.Codec
	Session    *fidelity.Names     // of the whole session, including the messages after the prompt
	Sent       int                 // messages in the prompt
	Turns      []conversation.Turn // of these messages
	Projection *session.Projection // nil if no message is shortened

	// Since is the first message whose uses count. With 0, all uses after an identifier's turn count. With
	// Sent, only uses count that the projection could not know, and identifiers in unshortened messages of
	// the prompt don't count.
	Since int
}

// RecallOf measures a projection. count counts the tokens of a text.
func RecallOf(of Shortened, count func(string) int) (Recall, error) {
	if of.Projection == nil {
		return Recall{}, nil
	}
	shortened, own, err := of.texts()
	if err != nil {
		return Recall{}, err
	}
	wanted := of.wanted(shortened)
	recall := Recall{Wanted: len(wanted), Tokens: count(own)}
	var first string
	first, recall.FirstTokens = firstSentences(of.Session.Messages, shortened, recall.Tokens, count)
	for identifier := range wanted {
		if strings.Contains(own, identifier) {
			recall.Kept++
		}
		if strings.Contains(first, identifier) {
			recall.First++
		}
	}
	return recall, nil
}

// wanted returns the identifiers of shortened messages that later turns use.
func (s *Shortened) wanted(shortened map[int]bool) map[string]bool {
	seen, lastUse, wanted := map[string]bool{}, map[string]int{}, map[string]bool{}
	for i := range s.Sent {
		if s.Since > 0 && !shortened[i] {
			for _, identifier := range s.Session.All[i] {
				seen[identifier] = true
			}
		}
	}
	for i, used := range s.Session.Written {
		for _, identifier := range used {
			lastUse[identifier] = i
		}
	}
	for _, turn := range s.Turns {
		for i := turn.From; i < turn.To && i < s.Sent; i++ {
			if !shortened[i] {
				continue
			}
			for _, identifier := range s.Session.All[i] {
				if last, used := lastUse[identifier]; used && last >= max(s.Since, turn.To) && !seen[identifier] {
					wanted[identifier] = true
				}
			}
		}
	}
	return wanted
}

// texts returns which messages the projection has shortened, and its text for them.
func (s *Shortened) texts() (shortened map[int]bool, own string, err error) {
	shortened = map[int]bool{}
	var text strings.Builder
	for _, part := range s.Projection.Parts {
		if part.Raw == nil {
			continue
		}
		for i := part.From; i < part.To; i++ {
			shortened[i] = true
		}
		if len(part.Raw) == 0 {
			continue
		}
		list := slices.Concat([]byte("["), part.Raw, []byte("]"))
		for _, raw := range wire.Elements(list) {
			message, err := s.Codec.Parse(raw)
			if err != nil {
				return nil, "", fmt.Errorf("projection, messages %d to %d: %w", part.From, part.To, err)
			}
			text.WriteString(fidelity.Written(&message) + "\n" + fidelity.Returned(&message) + "\n")
		}
	}
	return shortened, text.String(), nil
}

// firstSentences returns the first sentences of messages. All messages have the same limit of characters, the
// smallest one that results in at least the given number of tokens.
func firstSentences(session []conversation.Message, shortened map[int]bool, tokens int, count func(string) int) (string, int) {
	var texts []string
	for i := range session {
		if shortened[i] {
			texts = append(texts, strings.TrimSpace(fidelity.Written(&session[i])+"\n"+fidelity.Returned(&session[i])))
		}
	}
	render := func(characters int) string {
		var text strings.Builder
		for _, one := range texts {
			text.WriteString(beginning(one, characters) + "\n")
		}
		return text.String()
	}
	low, high := 0, 1<<20
	for low < high {
		middle := (low + high) / 2
		if middle > 1<<14 || count(render(middle)) >= tokens {
			high = middle
		} else {
			low = middle + 1
		}
	}
	text := render(low)
	return text, count(text)
}

// beginning returns as many whole sentences of a text as fit into a number of characters, or the beginning of
// the first one if even that doesn't fit.
func beginning(text string, characters int) string {
	runes := []rune(text[:min(len(text), 4*characters)])
	if len(runes) <= characters {
		return string(runes)
	}
	runes = runes[:characters]
	for i := len(runes) - 1; i > 0; i-- {
		if runes[i] == '\n' || runes[i] == ' ' && strings.ContainsRune(".!?", runes[i-1]) {
			return string(runes[:i])
		}
	}
	return string(runes)
}
