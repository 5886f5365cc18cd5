package client

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// The limits for reading a body of any size.
const (
	maxLead   = 256 // messages to check before the first answer
	maxHeads  = 4   // texts of the system prompt to check
	maxAnswer = 3   // items after the lead in which to look for an answer

	// farEnd is how far from its end a long last message is searched for words of its last text.
	farEnd = 32 << 10

	maxErrand = 12 // elements before the newest in which to look for an errand
)

// reading holds the relevant parts of a body: its head, the messages before the first answer, and its last
// message.
type reading struct {
	body *wire.Envelope

	client  string // from the system prompt; "" if unknown
	head    head   // the matching line of heads, for the purpose of the request
	isAgent bool

	users    []int  // user messages of the lead, in order
	opening  []text // texts of the first user message
	sealed   int    // item or message that only the provider can read, if the lead ends with one; otherwise -1
	next     int    // first element after the lead
	last     int    // the last element except system messages; -1 if absent
	lastRole conversation.Role
	lastType string // of an item other than a message
}

// readBody reads the relevant parts of a body, which may be nil.
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

// readSystem reads the head of a system prompt outside the list.
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

// checkHead drops a head for a single unanswered question if there are more messages, and one that requires
// missing user words.
func (r *reading) checkHead() {
	known := r.head
	if known.single && !r.isQuestion() || known.user != "" && !r.starts(r.users[0], known.user) {
		r.head = head{}
	}
}

// isQuestion reports whether the conversation has no answer yet.
func (r *reading) isQuestion() bool { return len(r.users) > 0 && r.next == r.body.Len() }

// isBareQuestion reports whether the conversation has no answer yet and offers no tools.
func (r *reading) isBareQuestion() bool {
	if r.body == nil || !r.isQuestion() {
		return false
	}
	tools, _ := r.body.Member("tools")

	return !wire.HasElements(tools)
}

// readLast finds the last element other than a system message.
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

// ownRequest returns the known client request that the last text starts with; ok is false if absent.
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

// isErrand reports whether a recent user text sent the model on an unfinished errand of the client.
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

// endsWithRequest reports whether the end of a message contains the start of one of the requests.
func endsWithRequest(end json.RawMessage) bool {
	for _, known := range requests {
		if text(end).containsRaw(known.words) {
			return true
		}
	}
	return false
}

// isQuotaProbe recognizes Claude Code's question for testing its key.
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
