package client

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
	{"Summarize the provided coding session into a concise continuation note", Compaction, Cline, true, "Summarize this session for continuation."},
	{"You are a helpful AI assistant tasked with summarizing conversations", Compaction, "", false, ""},
	{"You are the component that summarizes a conversation when its context window is about to overflow.", Compaction, QwenCode, false, ""},
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
	{"You are Droid, ", "", Droid, false, ""},
}

// subagentBilling is in the first block of a system prompt of Claude Code's agents.
const subagentBilling = "cc_is_subagent=true;"
