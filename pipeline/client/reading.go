package client

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// The bounds of what is read of a body, whatever its size.
const (
	maxLead   = 256 // messages before the first answer that are looked at
	maxHeads  = 4   // texts of the system prompt that are looked at
	maxAnswer = 3   // items after the lead among which an answer is looked for

	// farEnd is how far from its end a long last message is searched for words that
	// stand in its last text.
	farEnd = 32 << 10

	maxErrand = 12 // elements before the newest among which the order for an errand is looked for
)

// reading is what was read of a body: its head, the messages before the first
// answer, and its last message.
type reading struct {
	body *wire.Envelope

	client  string // by the system prompt; empty if it does not tell
	head    head   // the line of heads that says what the request is for
	isAgent bool

	users    []int  // user messages of the lead, in order
	opening  []text // texts of the first of them
	sealed   int    // item or message that only the provider can read, where the lead ends with one; -1: none
	next     int    // first element behind the lead
	last     int    // the last element, system messages aside; -1: none
	lastRole conversation.Role
	lastType string // of an item that is not a message
}

// readBody reads what is needed of a body, which may be nil.
func readBody(body *wire.Envelope) *reading {
	r := &reading{body: body, sealed: -1, last: -1}
	if body == nil {
		return r
	}
	seen := r.readSystem()
	for ; r.next < min(body.Len(), maxLead); r.next++ {
		element := body.Element(r.next)
		role, kind := speaker(element)
		if kind == "compaction" || kind == "compaction_summary" {
			r.sealed = r.next
			break
		}
		if role == conversation.System {
			seen = r.readHeads(texts(element), seen)
			continue
		}
		if role != conversation.User {
			break
		}
		if r.users = append(r.users, r.next); len(r.users) == 1 {
			for _, said := range texts(element) {
				r.opening = append(r.opening, said)
			}
		}
	}
	if r.sealed < 0 && r.next == 0 && r.next < body.Len() && blockType(body.Element(0)) == "compaction" {
		r.sealed = 0
	}
	r.readLast()
	r.checkHead()
	return r
}

// readSystem reads the head of a system prompt that stands outside the list.
func (r *reading) readSystem() (seen int) {
	for _, name := range [...]string{"system", "instructions"} {
		if prompt, ok := r.body.Member(name); ok {
			seen = r.readHeads(textsOf(prompt), seen)
		}
	}
	return seen
}

// readHeads reads the texts of a system prompt; seen counts those read before.
func (r *reading) readHeads(prompt func(func(int, text) bool), seen int) int {
	for _, said := range prompt {
		if seen++; seen > maxHeads {
			break
		}
		r.readHead(said)
	}
	return seen
}

func (r *reading) readHead(said text) {
	for _, known := range heads {
		if !said.starts(known.words) {
			continue
		}
		if r.client == "" {
			r.client = known.client
		}
		if known.kind != "" && r.head.kind == "" {
			r.head = known
		}
		if known.client == ClaudeCode && known.kind == "" {
			r.isAgent = r.isAgent || len(said) < 1024 && said.containsRaw(subagentBilling)
		}
		return
	}
}

// checkHead drops a head that belongs to one question without an answer where
// there is more, and one that needs words of the user's where they are not.
func (r *reading) checkHead() {
	known := r.head
	if known.single && !r.isQuestion() || known.user != "" && !r.starts(r.users[0], known.user) {
		r.head = head{}
	}
}

// isQuestion reports whether nobody has answered yet.
func (r *reading) isQuestion() bool { return len(r.users) > 0 && r.next == r.body.Len() }

// isBareQuestion reports whether nobody has answered yet, and the model is offered no tools.
func (r *reading) isBareQuestion() bool {
	if r.body == nil || !r.isQuestion() {
		return false
	}
	tools, _ := r.body.Member("tools")

	return !wire.HasElements(tools)
}

// readLast finds the last element that is not a system message.
func (r *reading) readLast() {
	for i := r.body.Len() - 1; i >= max(0, r.body.Len()-2); i-- {
		role, kind := speaker(r.body.Element(i))
		if role == conversation.System {
			continue
		}
		r.last, r.lastRole, r.lastType = i, role, kind
		return
	}
}

// starts reports whether message i starts with words.
func (r *reading) starts(i int, words string) bool {
	return leadingText(r.body.Element(i)).starts(words)
}

// ownRequest returns what the client itself asks with the last text of the request,
// in its own words; ok is false if a person asks, or nobody.
func (r *reading) ownRequest() (asked request, ok bool) {
	if r.last < 0 || r.lastRole != conversation.User {
		return request{}, false
	}
	element := r.body.Element(r.last)
	if len(element) > 2*farEnd && !endsWithRequest(element[len(element)-farEnd:]) {
		return request{}, false
	}
	said := lastText(element)
	for _, known := range requests {
		if said.starts(known.words) && (known.witness == "" || said.contains(known.witness)) {
			return known, true
		}
	}
	return request{}, false
}

// isErrand reports whether the newest text of a user's, a few messages back, sent the
// model on an errand of the client's own, from which it has not come back yet.
func (r *reading) isErrand() bool {
	for i := r.last; i >= max(0, r.last-maxErrand); i-- {
		element := r.body.Element(i)
		if role, _ := speaker(element); role != conversation.User {
			continue
		}
		if said := leadingText(element).typed(); len(said) > 0 {
			return said.starts(memoryErrand)
		}
	}
	return false
}

// endsWithRequest reports whether the end of a message holds words that one of the
// requests starts with.
func endsWithRequest(end json.RawMessage) bool {
	for _, known := range requests {
		if text(end).containsRaw(known.words) {
			return true
		}
	}
	return false
}

// isQuotaProbe knows the question with which Claude Code asks whether its key works.
func (r *reading) isQuotaProbe() bool {
	if r.body == nil || r.body.Len() != 1 || len(r.users) != 1 {
		return false
	}
	limit, _ := r.body.Member("max_tokens")
	if string(limit) != "1" {
		return false
	}
	for _, said := range texts(r.body.Element(0)) {
		return said.isExactly("quota")
	}
	return false
}
