package ledger

import (
	"slices"
	"strings"
	"unicode"

	"palimpsest/pipeline/conversation"
)

// ourBlocks are the tags of the blocks that this program puts into prompts; their content was said
// before.
var ourBlocks = []string{"compaction-bridge-recovery", "rehydrated-context", "learned-patterns"}

// ourMarks begin texts of this program that end with their block.
var ourMarks = []string{"[AUTO CONTEXT COMPRESSION]", "[CONTEXT SUMMARY]", "[TOOL OUTPUT ARCHIVED]"}

// summaries begin the texts in which clients sum up, or ask to sum up, the previous conversation.
var summaries = []string{
	"This session is being continued from a previous conversation",
	"Another language model started to solve this problem",
	"The conversation history before this point was compacted",
	"The following is a summary of a branch",
	"Context summary:\n", "## Conversation Summary", "<summary>", "<condense>", "[NOTE] Some previous conversation history",
	"The previous session was interrupted because it got too long",
	"CRITICAL: Respond with TEXT ONLY", "CRITICAL: This summarization request",
	"Your task is to create a detailed summary of the conversation", "You are performing a CONTEXT CHECKPOINT COMPACTION",
	"The current conversation is rapidly running out of context", "Here is the conversation so far:",
}

// recallQuestion is opencode's question before its summary.
const recallQuestion = "What did we do so far?"

// OwnWords returns the new words of a text, without a client's summary or its request for one,
// without reminders, and without blocks of Palimpsest.
func OwnWords(text string) string { return conversation.WithoutReminders(ownWords(text)) }

// ownWords returns the new words of a text, without a client's summary, and without blocks of
// Palimpsest, even if quoted.
func ownWords(text string) string {
	for _, mark := range ourMarks {
		text, _, _ = strings.Cut(text, mark)
	}
	for _, tag := range ourBlocks {
		text = withoutElement(text, tag, false)
	}
	if startsWith(strings.TrimSpace(conversation.WithoutReminders(text)), summaries) {
		return ""
	}
	return text
}

func startsWith(text string, starts []string) bool {
	for _, start := range starts {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// injected begin texts of a user's message that the client wrote.
var injected = []string{
	"Base directory for this skill:", "Caveat: The messages below were generated", "[Request interrupted by user",
	"Stop hook feedback:", "# AGENTS.md instructions for ", "[Image: ", "[Image #", "Called the ", "Ran `",
	"<command-name>/compact</command-name>",
}

// material are the tags that clients put around texts of their own, of tools and of other agents in
// a user's message. Their content may hold anything, including tags, so each extends from its first
// opening to its last closing.
var material = [...]string{
	"task-notification", "local-command-caveat", "local-command-stdout", "local-command-stderr", "bash-input", "bash-stdout", "bash-stderr",
	"command-name", "command-message", "environment_context", "environment_details", "user_instructions", "INSTRUCTIONS", "user_rules",
	"always_applied_workspace_rules", "file", "file_content", "folder_content", "url_content", "attached_files", "document", "documents",
	"additional_data", "open_and_recently_viewed_files", "user_info", "project_layout", "git_status", "ide_selection", "ide_opened_file",
	"terminal_output", "tool_result", "tool_response", "function_results", "search_results", "web_page", "turn_aborted", "skills_instructions",
	"skill", "user-prompt-submit-hook", "SYSTEM_NOTICE", "diagnostics", "new-diagnostics", "subagent_notification", "teammate-message",
	"user_shell_command", "content",
}

// longestTag exceeds the length of each tag of material and the character after it.
const longestTag = 40

// TypedText returns the part of a text in a user's message that a person typed, without text of the
// client, repeated text, and tool results.
func TypedText(text string) string {
	if text = ownWords(text); carriesResults(text) {
		return ""
	}
	return strings.TrimSpace(typed(text))
}

// typed returns the part of a user's text that a person typed.
func typed(text string) string {
	text = strings.TrimSpace(conversation.WithoutReminders(text))
	if startsWith(text, injected) {
		return ""
	}
	if strings.Contains(text, "<") {
		text = withoutMaterial(text, true)
		// A command's typed arguments have their own tag.
		text = strings.NewReplacer("<command-args>", "", "</command-args>", "", "<user_query>", "", "</user_query>", "").Replace(text)
	}
	return withoutFences(text)
}

// withoutMaterial is withoutElement of each tag of material.
func withoutMaterial(text string, atLine bool) string {
	for _, tag := range materialIn(text) {
		text = withoutElement(text, tag, atLine)
	}
	return text
}

// materialIn returns the tags of material that a text may hold. It reads the text once.
func materialIn(text string) []string {
	var found [len(material)]bool
	for rest := text; ; {
		at := strings.IndexByte(rest, '<')
		if at < 0 {
			break
		}
		rest = rest[at+1:]
		name := rest[:min(len(rest), longestTag)]
		if end := strings.IndexAny(name, "<> \n"); end > 0 {
			if i := slices.Index(material[:], name[:end]); i >= 0 {
				found[i] = true
			}
		}
	}
	var tags []string
	for i, tag := range material {
		if found[i] {
			tags = append(tags, tag)
		}
	}
	return tags
}

// withoutElement returns a text without the part from the first <tag …> to the last </tag>. atLine
// requires an opening at the start of a line, because elsewhere a person names the tag. An unclosed
// element extends to the end, unless a person may have typed it.
func withoutElement(text, tag string, atLine bool) string {
	from := opening(text, tag, atLine)
	if from < 0 {
		return text
	}
	closing := "</" + tag + ">"
	end := strings.LastIndex(text, closing)
	if end < from {
		if atLine {
			return text
		}
		return text[:from]
	}
	return text[:from] + text[end+len(closing):]
}

// opening returns the position of <tag> or <tag …>; -1 if absent.
func opening(text, tag string, atLine bool) int {
	for at := 0; ; {
		i := strings.Index(text[at:], "<"+tag)
		if i < 0 {
			return -1
		}
		at += i
		behind := at + 1 + len(tag)
		ends := behind < len(text) && (text[behind] == '>' || text[behind] == ' ' || text[behind] == '\n')
		if ends && (!atLine || startsLine(text[:at])) {
			return at
		}
		at = behind
	}
}

// startsLine reports whether the current line is blank so far, or ends with another element.
func startsLine(before string) bool {
	before = strings.TrimRightFunc(before, func(r rune) bool { return r != '\n' && unicode.IsSpace(r) })
	return before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, ">")
}

// withoutFences leaves out code between fences if each one is closed.
func withoutFences(text string) string {
	const fence = "```"
	if strings.Count(text, fence)%2 == 1 || !strings.Contains(text, fence) {
		return text
	}
	var kept strings.Builder
	for i, part := range strings.Split(text, fence) {
		if i%2 == 0 {
			kept.WriteString(part)
		}
	}
	return kept.String()
}

// carriesResults reports whether a user's text holds the result of a tool, as from clients without
// tool calls: "[read_file for 'a.go'] Result:".
func carriesResults(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.HasPrefix(first, "[") && strings.Contains(first, "] Result:")
}
