package prompt

import (
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/ledger"
)

const (
	// maxTitle bounds a session's title, in characters.
	maxTitle = 120
	// titleMessages is how many messages are searched for one.
	titleMessages = 40
	// titleText is how much of a text is searched, in bytes.
	titleText = 128 << 10
)

var (
	// wrapper is an element in which clients put a person's text.
	wrapper = expression.New(`(?is)<(task|user_query|user_message|user-message|user_input|userRequest|user_request|prompt)>(.*?)</(?:task|user_query|user_message|user-message|user_input|userRequest|user_request|prompt)>`)
	// surroundings are elements that clients put beside a person's text, with their content.
	surroundings = expression.New(`(?is)<(context|session_context|attachments?|attached_files?|editorContext|workspace_info|reminderInstructions|uploaded_files|files|instructions|rules|project_instructions|system)>.*?</(?:context|session_context|attachments?|attached_files?|editorContext|workspace_info|reminderInstructions|uploaded_files|files|instructions|rules|project_instructions|system)>`)
	// marks are placeholders for pasted content.
	marks = expression.New(`(?i)<image\b[^>]*>|</image>|\[(?:image|pasted text) #?\d+[^\]]*\]`)
	// command is one of the client's own commands.
	command     = expression.New(`(?s)<command-name>\s*(.*?)\s*</command-name>`)
	commandArgs = expression.New(`(?s)<command-args>\s*(.*?)\s*</command-args>`)
)

// clientTexts are the beginnings of user messages that clients write automatically.
var clientTexts = []string{
	"This is the Gemini CLI.", "This is the Qwen Code.", "I have *added these files to the chat", "I am not sharing any files",
	"Here are summaries of some files present in my git repository", "Here are the files in the chat", "Repo-map:",
	"# AGENTS.md", "# CLAUDE.md", "# Context from my IDE setup:", "The user has attached", "Contents of ", "[System:", "[system",
	"No tools were used", "[ERROR]", "[Request interrupted",
}

// problems are the beginnings of a client's own error reports in user messages. A person may paste such a
// text as well, so it is used only if there is no other text.
var problems = []string{"Error:", "error:", "ERROR:", "API Error", "Warning:", "WARNING:", "Request failed", "Failed to "}

// isTitled reports whether a person has typed something in messages.
func isTitled(messages []conversation.Digest) bool {
	return slices.ContainsFunc(messages, func(digest conversation.Digest) bool {
		return digest.Role == conversation.User && digest.Flags.Has(conversation.HasTyped)
	})
}

// title returns the start of the first text that a person typed.
func title(asked *pipeline.Conversation) string {
	problem := ""
	for i, digest := range asked.Digests[:min(len(asked.Digests), titleMessages)] {
		if digest.Role == conversation.Assistant && problem != "" {
			break
		}
		if digest.Role != conversation.User || !digest.Flags.Has(conversation.HasTyped) {
			continue
		}
		message, err := asked.Message(i)
		if err != nil {
			break
		}
		for _, block := range message.Blocks {
			if block.Kind != conversation.Text {
				continue
			}
			switch typed := typedIn(block.Text); {
			case typed == "":
			case startsWith(typed, problems):
				if problem == "" {
					problem = typed
				}
			default:
				return shorten(typed)
			}
		}
	}
	return shorten(problem)
}

// typedIn returns the part of a user's text that a person typed, or "".
func typedIn(text string) string {
	text = strings.TrimSpace(conversation.WithoutEnvironment(conversation.WithoutReminders(text)))
	text = strings.ToValidUTF8(text[:min(len(text), titleText)], "") // the cut may be inside a character
	if found := wrapper.FindStringSubmatch(text); found != nil && strings.TrimSpace(found[2]) != "" {
		text = found[2]
	}
	if found := command.FindStringSubmatch(text); found != nil {
		return commandIn(found[1], text)
	}
	text = strings.TrimSpace(marks.ReplaceAllString(surroundings.ReplaceAllString(text, ""), ""))
	if startsWith(text, clientTexts) {
		return ""
	}
	text = ledger.TypedText(text)
	if len(text) > 1 && text[0] == '"' && strings.IndexByte(text[1:], '"') == len(text)-2 { // as opencode passes its start argument
		text = text[1 : len(text)-1]
	}
	return strings.TrimSpace(text)
}

// commandIn returns a client's command as a person typed it, or "" if it asks the model no question.
func commandIn(name, text string) string {
	switch strings.TrimPrefix(name, "/") {
	case "compact", "clear", "model", "resume", "exit", "quit", "login", "logout", "status", "config", "cost", "context", "mcp", "help":
		return ""
	}
	if found := commandArgs.FindStringSubmatch(text); found != nil && found[1] != "" {
		name += " " + found[1]
	}
	return name
}

func startsWith(text string, starts []string) bool {
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) })
}

// shorten returns the first line of text, at most maxTitle characters long.
func shorten(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return excerpts.Start(text, maxTitle)
}
