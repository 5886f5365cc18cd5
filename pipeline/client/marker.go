package client

import (
	"slices"

	"palimpsest/pipeline/conversation"
)

// marker finds the marker of a compaction. name is the client that sent the request.
func (r *reading) marker(name string) Marker {
	none := Marker{From: -1, Boundary: -1}
	if r.body == nil {
		return none
	}
	if r.sealed >= 0 {
		return Marker{From: r.sealed, Boundary: r.sealed, Client: name, Confidence: 1, Source: inItem}
	}
	for _, look := range [...]func(string) (Marker, bool){r.inOpening, r.inLead, r.inAnswer, r.atBranch} {
		if found, ok := look(name); ok {
			found.Source = inText
			return found
		}
	}
	return none
}

// inOpening checks the first user message. A client's summary comes first after injected parts; only Cline
// puts its notice after a request.
func (r *reading) inOpening(name string) (Marker, bool) {
	if len(r.users) == 0 {
		return Marker{}, false
	}
	i, isFirst := r.users[0], true
	for _, said := range r.opening {
		if said = said.typed(); len(said) == 0 {
			continue
		}
		if known, ok := openingOf(said, name); ok && isFirst {
			return Marker{From: i, Boundary: i, Client: known.client, Confidence: 0.9}, true
		}
		if !isFirst && said.starts(clineNotice) && said.contains(clineNoticeEnd) {
			return Marker{From: i, Boundary: i, Client: Cline, Confidence: 0.9}, true
		}
		isFirst = false
	}
	return Marker{}, false
}

// openingOf returns the opening at the start of a text.
func openingOf(said text, name string) (opening, bool) {
	for _, known := range openings {
		if (!known.only || known.client == name) && said.starts(known.words) {
			return known, true
		}
	}
	return opening{}, false
}

// inLead checks the user messages before the first answer. Codex keeps those of the person and puts its
// summary after them; crush labels its summary at the end; Gemini CLI has the context of the session before it.
// The last match counts.
func (r *reading) inLead(name string) (Marker, bool) {
	for n, i := range slices.Backward(r.users) {
		if n > 0 && name == GeminiCLI && r.starts(i, "<state_snapshot>") {
			return Marker{From: i, Boundary: i, Client: GeminiCLI, Confidence: 0.9}, true
		}
		if r.starts(i, codexHandover) {
			return Marker{From: i, Boundary: i, Client: Codex, Confidence: 0.9}, true
		}
		if n > 0 && r.starts(i, crushInterrupted) {
			return Marker{From: r.users[n-1], Boundary: r.users[n-1], Client: Other, Confidence: 0.8}, true
		}
	}
	return Marker{}, false
}

// inAnswer checks the first answer of a conversation with one message before it.
func (r *reading) inAnswer(name string) (Marker, bool) {
	answer := r.answer()
	if answer < 0 || len(r.users) != 1 {
		return Marker{}, false
	}
	question := r.users[0]
	switch {
	case leadingText(r.body.Element(question)).isExactly(openCodeQuestion):
		confidence := 0.6
		if name == OpenCode || r.userStarts(answer+1, openCodeGoOn) {
			confidence = 0.9
		}
		return Marker{From: question, Boundary: answer, Client: OpenCode, Confidence: confidence}, true
	case r.starts(answer, clineNote):
		return Marker{From: answer, Boundary: answer, Client: Cline, Confidence: 0.9}, true
	case r.starts(answer, clineCondense) && r.userStarts(answer+1, clineConsent):
		return Marker{From: answer, Boundary: answer, Client: Cline, Confidence: 0.9}, true
	}
	return Marker{}, false
}

// answer returns the model's first message after the lead; -1 if absent.
func (r *reading) answer() int {
	for i := r.next; i < min(r.body.Len(), r.next+maxAnswer); i++ {
		role, kind := speaker(r.body.Element(i))
		if role == conversation.Assistant {
			return i
		}
		if kind != "reasoning" && kind != "thought" {
			return -1
		}
	}
	return -1
}

// atBranch checks the two newest messages, because pi describes an abandoned branch right before the person
// continues.
func (r *reading) atBranch(string) (Marker, bool) {
	for i := r.last; i >= max(0, r.last-1); i-- {
		if r.userStarts(i, piBranch) {
			return Marker{From: i, Boundary: i, Client: Pi, Confidence: 0.9, Branch: true}, true
		}
	}
	return Marker{}, false
}

// userStarts reports whether message i is a user message that starts with words.
func (r *reading) userStarts(i int, words string) bool {
	if i >= r.body.Len() {
		return false
	}
	role, _ := speaker(r.body.Element(i))
	return role == conversation.User && r.starts(i, words)
}

// trigger returns why the client compacted, if the request shows it: Claude Code repeats a person's command
// in the marker's message or in the newest one.
func (r *reading) trigger(marker Marker) Trigger {
	if marker.Branch {
		return Branch
	}
	if marker.Client != ClaudeCode || marker.Source != inText {
		return ""
	}
	for _, i := range [...]int{marker.Boundary, max(r.last, marker.Boundary)} {
		element := r.body.Element(i)
		if len(element) > 2*farEnd {
			continue
		}
		for _, said := range texts(element) {
			if said.starts(manualCompact) {
				return Manual
			}
		}
	}
	return ""
}
