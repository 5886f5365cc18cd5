package ledger_test

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// D3: of the files that edits in a recorded session really changed, all are in the
// ledger. The edits are found by an independent reading of calls and results.
func TestRecordedSessionsKeepEveryModifiedFile(t *testing.T) {
	t.Parallel()
	recorded(t, func(t *testing.T, name string, l lane) {
		t.Helper()
		kept := l.ledger()
		text := kept.Text(1_000_000, words)
		edited := editedFiles(t, l)
		for file := range edited {
			if !hasModified(kept, file) {
				t.Errorf("%s was changed and is not in the ledger", file)
			}
			if !strings.Contains(text, file) {
				t.Errorf("%s is not in the text", file)
			}
		}
		if len(edited) == 0 && !strings.HasPrefix(name, "tau-") && !strings.HasPrefix(name, "cc-single-ec") && !strings.HasPrefix(name, "sweagent") {
			t.Error("the independent reading found no edit")
		}
		t.Logf("%d edited files, %d in the ledger's list", len(edited), strings.Count(text, "\n"))
	})
}

func hasModified(kept *ledger.Ledger, name string) bool {
	for _, file := range kept.Files {
		if file.Modified != ledger.Never && (file.Path == name || strings.HasSuffix(file.Path, "/"+path.Clean(name))) {
			return true
		}
	}
	return false
}

// editedFiles reads which files successful edits name.
func editedFiles(t *testing.T, l lane) map[string]bool {
	t.Helper()
	results := map[string]conversation.Block{}
	for _, message := range l.messages {
		for _, block := range message.Blocks {
			if block.Kind == conversation.ToolResult {
				results[block.ID] = block
			}
		}
	}
	failure := regexp.MustCompile(`^(<tool_use_error>|ERROR:|Error|Could not|Cannot|The user doesn't want|\[Request interrupted|.*"success":\s*false)`)
	edited := map[string]bool{}
	for _, message := range l.messages {
		for _, block := range message.Blocks {
			var input struct {
				FilePath string `json:"file_path"`
				Notebook string `json:"notebook_path"`
				Path     string `json:"path"`
				Filename string `json:"filename"`
				Command  string `json:"command"`
			}
			if block.Kind != conversation.ToolCall || json.Unmarshal([]byte(block.Text), &input) != nil {
				continue
			}
			switch block.Name {
			case "Edit", "MultiEdit", "Write", "NotebookEdit", "edit", "write", "editor", "create":
			case "str_replace_editor":
				if input.Command == "view" {
					continue
				}
			default:
				continue
			}
			result, answered := results[block.ID]
			if !answered || result.IsError || failure.MatchString(result.Text) {
				continue
			}
			if file := input.FilePath + input.Notebook + input.Path + input.Filename; file != "" {
				edited[file] = true
			}
		}
	}
	return edited
}

// D4: of the directives that a plain reading finds in what people typed, all are
// in the ledger, word for word.
func TestRecordedSessionsKeepEveryTypedDirective(t *testing.T) {
	t.Parallel()
	var (
		reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
		foreign  = regexp.MustCompile(`^\s*(Base directory for this skill|This session is being continued|\[Request interrupted|<task-notification>|<local-command|<bash-|<command-|<file )`)
		orders   = regexp.MustCompile(`(?i)\b(always|never|must|from now on|prefer)\b|^make sure (?:all|each|every|no|that)\b|^(please )?(don't|do not) `)
		tells    = regexp.MustCompile(`(?i)\b(always|never) [a-z]+(s|ed)\b|\b(is|are|was|were|don't|doesn't|should) (always|never)\b|must (have|be something)\b|^(?:ok, )?I think|prefer that$`) // of what is or was
		split    = regexp.MustCompile(`\n|[.!?]\s`)
	)
	recorded(t, func(t *testing.T, _ string, l lane) {
		t.Helper()
		typed := strings.Join(typedOf(l.ledger()), "\n")
		found := 0
		for i, message := range l.messages {
			if message.Role != conversation.User {
				continue
			}
			for _, block := range message.Blocks {
				said := reminder.ReplaceAllString(block.Text, "")
				if block.Kind != conversation.Text || foreign.MatchString(said) || strings.Contains(said, "```") {
					continue
				}
				for start := 0; start < len(said); {
					end := len(said)
					if cut := split.FindStringIndex(said[start:]); cut != nil {
						end = start + cut[0] + 1
					}
					sentence := strings.Trim(said[start:end], " \n\t-*#\"")
					start = end
					if !orders.MatchString(sentence) || tells.MatchString(sentence) || strings.HasSuffix(sentence, "?") || len(sentence) < 12 || len(sentence) > 1000 {
						continue
					}
					found++
					if !strings.Contains(typed, sentence) {
						t.Errorf("message %d: %q is not in the ledger", i, sentence)
					}
				}
			}
		}
		t.Logf("%d directives by a plain reading, %d in the ledger", found, strings.Count(typed, "\n")+1)
	})
}
