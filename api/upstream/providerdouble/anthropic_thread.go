package providerdouble

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// threadBeta is the beta value of requests of a thread.
const threadBeta = "message-threads-2026-08-12"

// threads holds the conversations that clients store on the server, each under the id of its last answer
// (https://platform.claude.com/docs/en/build-with-claude/message-threads).
type threads struct {
	mu   sync.Mutex
	held bounded[*thread]
}

// thread is one conversation: the fields fixed at its start, and its messages with the answer.
type thread struct {
	fixed       members
	messages    []json.RawMessage
	previous    *thread // its predecessor; nil at the start
	isContinued bool
}

// inherited are the members that a request takes from its thread, and fingerprint those that must stay the
// same.
func inherited() []string   { return []string{"system", "tools"} }
func fingerprint() []string { return append(inherited(), "model", "tool_choice", "thinking") }

// begin returns the thread that a request starts or continues, with the request's own messages, and copies
// the thread's content into the request. It is nil without a thread.
func (t *threads) begin(header http.Header, request members) (*thread, *Rejection) {
	if !request.has("thread") || header == nil {
		return nil, nil
	}
	asked, _ := objectMembers(request["thread"])
	kind, _ := asked.text("type")
	switch {
	case !hasBeta(header, threadBeta):
		return nil, refuse("thread: Extra inputs are not permitted")
	case kind == "create":
		list, _ := elements(request["messages"])
		return newThread(request, list, nil), nil
	case kind != "continue":
		return nil, refuse("thread: Input tag '%s' found using 'type' does not match any of the expected tags: 'continue', 'create'", kind)
	}
	previous, _ := asked.text("previous_message_id")
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.held.values[previous]
	switch {
	case found == nil:
		return nil, &Rejection{Status: http.StatusNotFound, Type: "not_found_error", Code: "thread_not_found", Message: "No usable thread was found for previous_message_id " + previous}
	case found.isContinued:
		return nil, refuse("The response %s has already been continued", previous).coded("thread_already_continued")
	}
	if differing := found.differing(request); len(differing) > 0 {
		return nil, refuse("The request does not match its thread; differing field(s): %s", strings.Join(differing, ", ")).coded("thread_fingerprint_mismatch")
	}
	list, _ := elements(request["messages"])
	whole := slices.Concat(found.messages, list)
	request["messages"] = slices.Concat([]byte{'['}, bytes.Join(raws(whole), []byte{','}), []byte{']'})
	for _, name := range inherited() {
		if found.fixed.has(name) {
			request[name] = found.fixed[name]
		}
	}
	return newThread(request, whole, found), nil
}

func raws(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, raw := range list {
		all[i] = raw
	}
	return all
}

func newThread(request members, messages []json.RawMessage, previous *thread) *thread {
	fixed := members{}
	for _, name := range fingerprint() {
		if request.has(name) {
			fixed[name] = bytes.Clone(request[name])
		}
	}
	return &thread{fixed: fixed, messages: messages, previous: previous}
}

// differing returns the fields of a request that differ from its thread's.
func (t *thread) differing(request members) []string {
	var names []string
	for _, name := range fingerprint() {
		if request.has(name) && !bytes.Equal(request[name], t.fixed[name]) {
			names = append(names, name)
		}
	}
	return names
}

// keep stores a thread with its answer, under the answer's id.
func (t *threads) keep(begun *thread, answer anthropicMessage) {
	if begun == nil {
		return
	}
	begun.messages = append(slices.Clip(begun.messages), encode(struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	}{answer.Role, answer.Content}))
	t.mu.Lock()
	defer t.mu.Unlock()
	if begun.previous != nil {
		begun.previous.isContinued, begun.previous = true, nil
	}
	t.held.keep(answer.ID, begun)
}
