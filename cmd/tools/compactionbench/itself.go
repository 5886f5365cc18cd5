package compactionbench

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// forgetItself measures a client that compacts itself. Since the text of a model's summary is
// unknown, it assumes that half is people's messages, the newest first, and half is the ledger.
func (f *Forgetting) forgetItself(r *reading, prices Prices, pace Pace) {
	client := &selfCompacting{reading: r}
	f.Itself, _ = charge(r, client, prices, pace)
	f.Itself.Busts = client.compactions
	client = &selfCompacting{reading: r}
	var now *standing
	for request, length := range r.ends {
		before := client.compactions
		prompts := client.prompts(length)
		if client.compactions > before {
			now = &standing{length: length, request: request}
			now.sides = []side{newSide(&f.Client, r.summarized(client.from)+textOf(r.messages[client.from:length]))}
			f.noteKept(r, now)
		}
		if now != nil {
			sent := prompts[len(prompts)-1].forms
			f.used(r, now, request, r.tokens(r.fixed.Tokens+sizeOf(sent)), prices)
		}
	}
}

// summarized returns the assumed text of a client's summary of the first messages.
func (r *reading) summarized(length int) string {
	var text strings.Builder
	left := int(selfSummary / r.model.TokensPerO200k / 2)
	text.WriteString(r.ledgerOf(length).Text(left, r.counter.Text))
	for _, typed := range slices.Backward(r.typed(length)) {
		if left -= r.counter.Text(typed); left < 0 {
			break
		}
		text.WriteString("\n" + typed)
	}
	return text.String()
}

// ledgerOf returns the ledger of the first messages.
func (r *reading) ledgerOf(length int) *ledger.Ledger {
	known := ledger.New()
	for i, turn := range r.turnsOf(length) {
		var messages []conversation.Message
		for j := turn.From; j < min(turn.To, length); j++ {
			messages = append(messages, r.messages[j].Message)
		}
		known.Add(i, turn.From, messages)
	}
	return known
}

// noted returns the decisions and failed attempts in the first messages.
func (r *reading) noted(length int) []string {
	known := r.ledgerOf(length)
	var texts []string
	for _, decision := range known.Decisions {
		texts = append(texts, decision.Text)
	}
	for _, attempt := range known.FailedAttempts() {
		texts = append(texts, attempt.Text)
	}
	return texts
}
