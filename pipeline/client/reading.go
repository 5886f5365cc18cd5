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
	for _, name := range [...]string{"system", "instructions", "systemInstruction", "system_instruction"} {
		if prompt, ok := r.body.Member(name); ok {
			if len(prompt) > 0 && prompt[0] == '{' {
				prompt = contentOf(prompt)
			}
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

// opening is the start of a user message with a client's summary.
type opening struct {
	words  string
	client string
	only   bool // counts only if the client is known from another sign
}

// openings start the first message of a compacted conversation, after the client's injected parts.
var openings = [...]opening{
	{"This session is being continued from a previous conversation that ran out of context. The summary below covers", ClaudeCode, false},
	{"This session is being continued from a previous conversation that ran out of context. The conversation is summarized below:", ClaudeCode, false},
	{"The conversation history before this point was compacted into the following summary:\n\n<summary>", Pi, false},
	{"Context summary:\n\n", Cline, true},
	{"## Conversation Summary\n", Roo, true},
	{"Some of the conversation history has been summarized to free up context.\n\nYou were originally given instructions from a user", Copilot, false},
	{"<state_snapshot>", QwenCode, true},
	{"A previous instance of Droid has summarized the conversation thus far as follows:\n\n<summary>", Droid, false},
	{"<state_snapshot>", GeminiCLI, true},
}

const (
	codexHandover    = "Another language model started to solve this problem and produced a summary of its thinking process."
	piBranch         = "The following is a summary of a branch that this conversation came back from:\n\n<summary>"
	openCodeQuestion = "What did we do so far?"
	openCodeGoOn     = "Continue if you have next steps"
	clineNotice      = "<SYSTEM_NOTICE>\nEarlier context was compacted. Summary of your actions"
	clineNoticeEnd   = "</SYSTEM_NOTICE>"
	clineNote        = "[NOTE] Some previous conversation history with the user has been removed to maintain optimal context window length."
	clineCondense    = "<condense>"
	clineConsent     = "The user has accepted the condensed conversation summary you generated."
	crushInterrupted = "The previous session was interrupted because it got too long, the initial user request was: `"
	manualCompact    = "<command-name>/compact</command-name>"
)

// request is the start of the last text of a history in which a client asks something on its own.
type request struct {
	words   string
	witness string // further words in the text; "" if not needed
	kind    Kind
	client  string
}

var requests = [...]request{
	{"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.", "Tool calls will be rejected and you will fail the task.", Compaction, ClaudeCode},
	{"Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests", "<analysis>", Compaction, ClaudeCode},
	{"You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM", "", Compaction, Codex},
	{"CRITICAL: This summarization request is a SYSTEM OPERATION, not a user message.", "Your task is to create a detailed summary", Compaction, Roo},
	{"The current conversation is rapidly running out of context. Now, your urgent task is to create a comprehensive detailed summary", "", Compaction, Cline},
	{"Please create a detailed summary of the conversation so far. The history is being compacted", "<checkpoint_title>", Compaction, Copilot},
	{"You are the component that summarizes a conversation when its context window is about to overflow.", "<state_snapshot>", Compaction, QwenCode},
	{"Please provide a concise summary of our conversation so far, capturing the key context, decisions made, and current state.", "prior to compaction", Compaction, Continue},

	{"Analyze *only* the content and structure of your immediately preceding response", "", Auxiliary, GeminiCLI},

	// Claude Code's requests while a person uses it. Qwen Code sends some of them too.
	{"[SUGGESTION MODE: Suggest what the user might naturally type next", "Reply with ONLY the suggestion", Auxiliary, ""},
	{"The user stepped away and is coming back. Recap in under 40 words", "", Auxiliary, ClaudeCode},
	{"Generate a short kebab-case name (2-4 words) that captures the main topic of this conversation.", "", Title, ClaudeCode},
	{"Describe your most recent action in 3-5 words using present tense (-ing).", "Do not use tools.", Auxiliary, ClaudeCode},
	{memoryErrand, "", Auxiliary, ClaudeCode},
}

const (
	// memoryErrand starts the only such request that takes the model several turns.
	memoryErrand = "You are now acting as the memory extraction subagent. Analyze the most recent ~"

	// fetchedPage starts Claude Code's question about a fetched page.
	fetchedPage = "Web page content:\n---\n"

	// sideQuestion starts the message in which Claude Code passes on a person's side question (/btw).
	sideQuestion = "<system-reminder>This is a side question from the user. You must answer this question directly"
)

// head is the start of a system prompt, or of one of its first blocks, that identifies the purpose or the
// sender of the request.
type head struct {
	words  string
	kind   Kind // "" for an ordinary request of the client
	client string
	single bool   // counts only for a single unanswered question
	user   string // start of that question; "" for any
}

var heads = [...]head{
	{"You are a title generator.", Title, OpenCode, true, ""},
	{"You are a context summarization agent.", Compaction, OpenCode, true, "Here is the conversation so far:"},
	{"You are a context summarization assistant.", Compaction, Pi, true, "<conversation>"},
	{"You are Droid, an AI software engineering agent built by Factory. You excel at creating and maintaining summaries", Compaction, Droid, true, "Please summarize the following conversation:"},
	{"Summarize the provided coding session into a concise continuation note", Compaction, Cline, true, "Summarize this session for continuation."},
	{"You are a helpful AI assistant tasked with summarizing conversations", Compaction, "", false, ""},
	{"You are the component that summarizes a conversation when its context window is about to overflow.", Compaction, QwenCode, false, ""},
	{"You are a specialized system component responsible for distilling chat history into a structured XML <state_snapshot>.", Compaction, GeminiCLI, false, ""},
	{"You are a specialized Task Routing AI.", Auxiliary, GeminiCLI, false, ""},
	{"You are a diagnostic agent that determines whether a conversational AI assistant is stuck", Auxiliary, GeminiCLI, false, ""},
	{"You are an expert code-editing assistant specializing in debugging and correcting failed search-and-replace", Auxiliary, GeminiCLI, true, ""},
	{"Generate a concise, sentence-case title (3-7 words)", Title, ClaudeCode, true, ""},
	{"Generate a short kebab-case name (2-4 words) that captures", Title, ClaudeCode, true, "<conversation>"},
	{"You are now acting as the managed memory extraction subagent for an AI coding assistant.", Auxiliary, QwenCode, false, ""},
	{"You are naming a coding session so the user can pick it out of a long list of sessions.", Title, ClaudeCode, true, "<session>"},
	{"Analyze if this message indicates a new conversation topic.", Title, ClaudeCode, true, ""},
	{"You are Kilo's session digest updater.", Auxiliary, Kilo, true, ""},
	{"You are Kilo's typed memory consolidation step.", Auxiliary, Kilo, true, ""},
	{"Summarize this coding conversation in under 50 characters.", Title, ClaudeCode, true, ""},
	{"Your task is to process Bash commands that an AI coding agent wants to run.", Auxiliary, ClaudeCode, true, ""},
	{"You are a security monitor for autonomous AI coding agents.", Auxiliary, ClaudeCode, true, ""},
	{"You are evaluating a hook in Claude Code.", Auxiliary, ClaudeCode, true, ""},
	{"You are evaluating a stop-condition hook in Claude Code.", Auxiliary, ClaudeCode, true, ""},
	{"You are selecting memories that will be useful to Claude Code as it processes a user", Auxiliary, ClaudeCode, true, ""},
	{"You are Claude. The record below is your own conversation so far, shortened,", SideReply, ClaudeCode, true, ""},
	{"You are an assistant for performing a web search tool use", Auxiliary, ClaudeCode, true, ""},

	{"x-anthropic-billing-header: ", "", ClaudeCode, false, ""},
	{"You are Claude Code, Anthropic's official CLI for Claude", "", ClaudeCode, false, ""},
	{"You are an expert coding assistant operating inside pi, a coding agent harness.", "", Pi, false, ""}, // in earlier versions
	{"You are a coding assistant running inside pi, a coding agent harness.", "", Pi, false, ""},
	{"You are OpenCode, ", "", OpenCode, false, ""},
	{"You are Cline, ", "", Cline, false, ""},
	{"You are Roo, ", "", Roo, false, ""},
	{"You are Kilo, ", "", Kilo, false, ""},
	{"You are Kilo Code, ", "", Kilo, false, ""},
	{"You are an agent in the Continue CLI.", "", Continue, false, ""},
	{"You are a coding agent running in the Codex CLI", "", Codex, false, ""},
	{"You are the GitHub Copilot CLI, ", "", Copilot, false, ""},
	{"You are Qwen Code, ", "", QwenCode, false, ""},
	{"You are Gemini CLI, ", "", GeminiCLI, false, ""},
	{"You are Droid, ", "", Droid, false, ""},
}

// subagentBilling is in the first block of a system prompt of Claude Code's agents.
const subagentBilling = "cc_is_subagent=true;"
