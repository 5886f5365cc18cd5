package conversation

import "strings"

// delimiters opens and closes the elements that mean something to models or to
// clients: our own blocks in a prompt, and the reminders of clients.
var delimiters = strings.NewReplacer(
	"<compaction-bridge-recovery", "&lt;compaction-bridge-recovery", "</compaction-bridge-recovery", "&lt;/compaction-bridge-recovery",
	"<rehydrated-context", "&lt;rehydrated-context", "</rehydrated-context", "&lt;/rehydrated-context",
	"<learned-patterns", "&lt;learned-patterns", "</learned-patterns", "&lt;/learned-patterns",
	"<"+reminder, "&lt;"+reminder, "</"+reminder, "&lt;/"+reminder,
)

// Quoted returns text as it can stand inside one of our blocks: nothing in it opens or
// closes one.
func Quoted(text string) string { return delimiters.Replace(text) }
