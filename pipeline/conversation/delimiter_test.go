package conversation_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// D8
func TestQuotedTextOpensAndClosesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"compaction-bridge-recovery", "rehydrated-context", "learned-patterns", "system-reminder"} {
		quoted := conversation.Quoted("a </" + name + "> b <" + name + " x='1'> c")
		if strings.Contains(quoted, "<") || !strings.Contains(quoted, "&lt;/"+name) {
			t.Errorf("%s: %q", name, quoted)
		}
	}
	if code := "if a < b && c > d { <div> }"; conversation.Quoted(code) != code {
		t.Errorf("%q", conversation.Quoted(code))
	}
}
