package rehydrator_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/rehydrator"
)

// work builds a session call by call.
type work struct{ messages []conversation.Message }

func (w *work) call(name, arguments, result string) {
	id := strconv.Itoa(len(w.messages))
	w.messages = append(w.messages,
		conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, ID: id, Name: name, Text: arguments}}},
		conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, ID: id, Text: result}}})
}

// other adds calls that have nothing to do with any question.
func (w *work) other(number int) {
	for range number {
		w.call("Bash", fmt.Sprintf(`{"command":"ls sub%d","description":"List a folder"}`, len(w.messages)), "a.txt\nb.txt\n")
	}
}

func begin() *work {
	w := &work{messages: []conversation.Message{said(conversation.User, "Set the importer up."), said(conversation.Assistant, "I look around first.")}}
	return w
}

// asks returns what a typed text brings back where only the last messages stand in the prompt.
func (w *work) asks(t *testing.T, typed string, shown int) string {
	t.Helper()
	text, _ := process(t, compressed(t, newCounter(t), codec, bodyOf(t, w.messages, typed), len(w.messages)-shown), nil)
	return text
}

const (
	oldConfig = "retries: 1000\nbackoffCeiling: 5s\n"
	newConfig = "retries: 2000\nbackoffCeiling: 9s\n"
)

func TestOlderVersionOfAFileStaysOut(t *testing.T) {
	t.Parallel()
	read := `{"file_path":"/srv/app/importer/config.yaml"}`
	edit := `{"file_path":"/srv/app/importer/config.yaml","old_string":"retries: 1000","new_string":"retries: 2000"}`
	for name, test := range map[string]struct {
		later        func(w *work)
		want, unwant string
	}{
		"nothing newer":        {func(*work) {}, "retries: 1000", ""},
		"a newer read":         {func(w *work) { w.call("Read", read, newConfig) }, "retries: 2000", "retries: 1000"},
		"an edit":              {func(w *work) { w.call("Edit", edit, "The file has been updated.") }, "new_string", "backoffCeiling: 5s"},
		"an edit that failed":  {func(w *work) { w.call("Edit", edit, "<tool_use_error>String to replace not found</tool_use_error>") }, "retries: 1000", ""},
		"an edit, then a read": {func(w *work) { w.call("Edit", edit, "The file has been updated."); w.call("Read", read, newConfig) }, "retries: 2000", "retries: 1000"},
		"a read, then an edit": {func(w *work) { w.call("Read", read, oldConfig); w.call("Edit", edit, "The file has been updated.") }, "new_string", "backoffCeiling: 5s"},
		"a read of other lines": {func(w *work) {
			w.call("Read", `{"file_path":"/srv/app/importer/config.yaml","offset":90,"limit":5}`, "    90→last: line")
		}, "retries: 1000", ""},
		"a command, another one": {func(w *work) { w.call("Bash", `{"command":"cat other/config.yaml"}`, "nothing") }, "retries: 1000", ""},
	} {
		w := begin()
		w.call("Read", read, oldConfig)
		w.other(3)
		test.later(w)
		w.other(12)
		text := w.asks(t, "Change importer/config.yaml so that it is faster.", 6)
		if !strings.Contains(text, test.want) || test.unwant != "" && strings.Contains(text, test.unwant) {
			t.Errorf("%s: want %q and not %q in %s", name, test.want, test.unwant, text)
		}
	}
}

// A reference to a run of a command of which the prompt shows a newer one brings the older
// one back only if it asks for it.
func TestOlderLogOfACommandInThePromptStaysOut(t *testing.T) {
	t.Parallel()
	w := begin()
	w.call("Bash", `{"command":"make migration-test","description":"Run the migration test"}`, "migration 00042 took 9.3s, flaky table: orders\n")
	w.other(12)
	w.call("Bash", `{"command":"make migration-test","description":"Run it"}`, "ok\n")
	w.other(2)
	if text := w.asks(t, "What did the migration test print about the flaky table orders?", 8); text != "" {
		t.Errorf("the older log comes back: %s", text)
	}
	if text := w.asks(t, "What did the first run of the migration test print about the flaky table orders?", 8); !strings.Contains(text, "took 9.3s") {
		t.Errorf("the first run doesn't come back: %s", text)
	}
}

// Of what a name brings back only the lines around the name stand in the prompt.
func TestNamesBringSnippetsBack(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	for i := range 900 {
		if i == 500 {
			fmt.Fprintf(&file, "%6d→func reconcileLedger(total int) error {\n", i)
			continue
		}
		fmt.Fprintf(&file, "%6d→	// line %d of something long that nobody asks for\n", i, i)
	}
	w := begin()
	w.call("Read", `{"file_path":"/srv/app/ledger.go"}`, file.String()+"<system-reminder>Consider whether this is malware.</system-reminder>")
	w.other(12)
	text := w.asks(t, "Let reconcileLedger return the total.", 6)
	if !strings.Contains(text, "func reconcileLedger(total int) error {") || !strings.Contains(text, "// line 499 ") || !strings.Contains(text, "// line 501 ") {
		t.Errorf("the lines around the name are missing: %s", text)
	}
	if tokens := newCounter(t).Count(text); tokens > 400 || strings.Contains(text, "malware") || strings.Contains(text, "line 890") {
		t.Errorf("%d tokens: %s", tokens, text)
	}
}

func TestAThousandTokensComeBackAtMost(t *testing.T) {
	t.Parallel()
	if got := rehydrator.DefaultConfig().MaxTokens; got > 1000 {
		t.Fatalf("maxTokens is %d", got)
	}
	w := begin()
	w.call("Bash", `{"command":"make migration-test","description":"Run the migration test"}`, strings.Repeat("migration applied to one more table of the schema\n", 2000))
	w.other(12)
	text := w.asks(t, "What did the migration test print earlier?", 6)
	if tokens := newCounter(t).Count(text); tokens == 0 || tokens > 1000 {
		t.Errorf("%d tokens", tokens)
	}
}

// A quotation of two short words is a way to write a command rather than the name of something.
func TestShortQuotedCommandsAreNoNames(t *testing.T) {
	t.Parallel()
	w := begin()
	w.call("Read", `{"file_path":"/srv/research/README.md"}`, "# Notes\nWhoever runs git commit --amend rewrites the newest commit.\n")
	w.other(12)
	if text := w.asks(t, "when someone does a `commit --amend` later it's not feasible to update again", 6); text != "" {
		t.Errorf("brought back: %s", text)
	}
}

func TestNamesInPastedLogsAreNoReferences(t *testing.T) {
	t.Parallel()
	w := begin()
	w.call("Bash", `{"command":"tail app.log"}`, "session_id=1a52bbe6-a046 opened by worker_seven\n")
	w.other(12)
	log := "Feb  9 09:56:27.990 |DEBU| hook completed session_id=1a52bbe6-a046 agent=worker_seven"
	if text := w.asks(t, "Logs don't show the transitions anymore:\n"+log, 6); text != "" {
		t.Errorf("brought back: %s", text)
	}
	if text := w.asks(t, "What is worker_seven?\n"+log, 6); !strings.Contains(text, "opened by worker_seven") {
		t.Errorf("the name isn't found: %s", text)
	}
}

// The beginning of a long file says nothing about it.
func TestLongFileDoesNotComeBackByItsPathAlone(t *testing.T) {
	t.Parallel()
	w := begin()
	w.call("Read", `{"file_path":"/srv/app/importer/big_ledger.go"}`, strings.Repeat("     1→// a line of code\n", 300))
	w.other(12)
	if text := w.asks(t, "Move the checks to big_ledger.go.", 6); text != "" {
		t.Errorf("brought back: %s", text)
	}
}

func TestNewestEditOfTheSameLinesComesBack(t *testing.T) {
	t.Parallel()
	lines := "var attribution *Attribution\\nif headRef, err := repo.Head(); err == nil {\\n\\tcalculateNothing(headRef)\\n"
	w := begin()
	w.call("Edit", `{"file_path":"/srv/app/hooks.go","old_string":"a","new_string":"`+lines+`\tlogFirst()\n}"}`, "The file has been updated.")
	w.call("Edit", `{"file_path":"/srv/app/hooks.go","old_string":"b","new_string":"`+lines+`\tlogSecond()\n}"}`, "The file has been updated.")
	w.other(12)
	if text := w.asks(t, "Log the errors of calculateNothing, please.", 6); !strings.Contains(text, "logSecond") || strings.Contains(text, "logFirst") {
		t.Errorf("brought back: %s", text)
	}
}
