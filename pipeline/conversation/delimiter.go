package conversation

import "strings"

// delimiters escapes the opening and closing tags of elements with a meaning to models or clients: our own
// blocks in a prompt, and the reminders of clients.
var delimiters = strings.NewReplacer(
	"<compaction-bridge-recovery", "&lt;compaction-bridge-recovery", "</compaction-bridge-recovery", "&lt;/compaction-bridge-recovery",
	"<rehydrated-context", "&lt;rehydrated-context", "</rehydrated-context", "&lt;/rehydrated-context",
	"<learned-patterns", "&lt;learned-patterns", "</learned-patterns", "&lt;/learned-patterns",
	"<"+reminder, "&lt;"+reminder, "</"+reminder, "&lt;/"+reminder,
)

// Quoted returns text with escaped tags, so that it can't open or close one of our blocks.
func Quoted(text string) string { return delimiters.Replace(text) }
