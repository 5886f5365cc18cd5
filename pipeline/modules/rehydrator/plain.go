package rehydrator

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
)

// The parameters for a plain question, one that refers to no earlier turn. If people ask for a
// fact, the earlier words about it in a compressed turn come back. The values come from make
// bench-memory on the published sets, and on messages typed in the middle of coding sessions, where
// almost no turn should come back.
const (
	plainShare  = 0.36  // of the setting similarityThreshold, which the best document must reach if the history is only talk
	besideShare = 0.4   // of the best document's score, which others must reach
	plainTokens = 1_000 // limit of the block
	leastWanted = 3     // minimum of terms in a question
	mostMatches = 40    // documents that are examined
)

// asking begins sentences that ask for a fact, and not for an action.
var asking = expression.New(`^(?:(?:and|but|so|ok|okay|hey|hi|also|then|now|well|just|by the way|again)[, ]+)*(?:` +
	`what|when|where|who|whose|whom|which|why|how (?:many|much|long|often|old|far|did|does|do|has|have|had|was|were)|` +
	`(?:in|on|at|for|from|to|with) (?:what|which|whom|how)|did|does|do i|is|are|was|were|has|have|had|am i|` +
	`(?:can|could|would|will) you (?:please |also )?(?:list|summari[sz]e|recap|tell me|walk me through|give me (?:an?|the) (?:[a-z-]+ )*(?:summary|overview|recap|timeline|list))` +
	`)\b`)

// askingElsewhere begins such sentences in other languages with Latin letters.
var askingElsewhere = expression.New(`^[¿¡ ]*(?:(?:und|et|y|e|aber|mais|pero|ma|mas) )?(?:` +
	`wann|wo|wer|wem|wen|wessen|wie (?:viele?|lange|oft|alt|weit|heißt|hieß|war|ist|hat|habe)|wieso|warum|was|welche[rsmn]?|wohin|woher|(?:in|auf|an|mit|von|zu|für|seit|bis) (?:wann|wem|wen|welche[rsmn]?)|` +
	`quand|où|qui|que|quoi|comment|combien|pourquoi|quel(?:le)?s?|qu'|est-ce|(?:à|de|en|pour|avec|chez|dans|sur|depuis) (?:qui|quoi|quel(?:le)?s?)|` +
	`cuándo|dónde|quién(?:es)?|qué|cómo|cuál(?:es)?|cuánt[oa]s?|por qué|(?:a|de|en|con|para) (?:quién|qué|cuál)|` +
	`quando|dove|chi|che cosa|cosa|come|quale|quali|quant[oiae]|perché|onde|quem|o que|qual|quais|por que|` +
	`wanneer|waar|wie|wat|welke?|hoeveel|kiedy|gdzie|kto|co|jak|ile` +
	`)(?:[ ,']|$)`)

// asks reports whether a sentence in lower case asks for a fact. In other scripts than Latin
// only the question mark identifies a question.
func asks(low string) bool {
	if end, _ := utf8.DecodeLastRuneInString(low); end != '?' && end != '？' && end != '؟' {
		return false
	}
	isForeign := func(r rune) bool { return unicode.IsLetter(r) && !unicode.In(r, unicode.Latin, unicode.Common) }
	return strings.ContainsFunc(low, isForeign) || asking.MatchString(low) || askingElsewhere.MatchString(low)
}

// plain returns the sentences of a typed text that ask for a fact.
func plain(typed string) []string {
	var found []string
	for _, sentence := range sentences(typed) {
		if asks(strings.ToLower(strings.ReplaceAll(sentence, "’", "'"))) {
			found = append(found, sentence)
		}
	}
	return found
}

// fromTalk returns hidden text messages that answer words, best first. It returns no messages if
// calls, or messages in plain sight, answer better, since a model can call again.
func (q *question) fromTalk(hidden part, words string) ([]found, error) {
	config := configOf(q.exchange)
	asked := search.Ask(words)
	terms := 0
	for _, wanted := range asked.Wanted {
		if !search.IsHint(wanted.Text) {
			terms++
		}
	}
	if terms < leastWanted {
		return nil, nil
	}
	turns, err := q.candidates(hidden, asked)
	if err != nil {
		return nil, err
	}
	matches := search.NewMemory(documentsOf(turns)).Search(asked, 0, mostMatches)
	least := config.SimilarityThreshold
	if !q.hasCalls() {
		least *= plainShare
	}
	if len(matches) == 0 || matches[0].Score < least {
		return nil, nil
	}
	var back []found
	for i := range matches {
		document := &matches[i].Document
		isHidden, isCall := hidden.messages[document.From], document.Kind == search.Call
		if i == 0 && (isCall || !isHidden) || len(back) == config.MaxRehydrated {
			break
		}
		if isCall || !isHidden || matches[i].Score < besideShare*matches[0].Score {
			continue
		}
		one, err := q.back(&matches[i])
		if err != nil {
			return nil, err
		}
		if !q.isBack(one.item) {
			back = append(back, one)
		}
	}
	return back, nil
}

// hasCalls reports whether the model has called tools before. Then it can look again, and older
// statements about files and commands may be outdated.
func (q *question) hasCalls() bool {
	return slices.ContainsFunc(q.exchange.Conversation.Digests[:q.newest], func(d conversation.Digest) bool { return d.Flags.Has(conversation.HasResult) })
}
