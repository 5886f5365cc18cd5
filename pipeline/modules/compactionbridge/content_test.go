package compactionbridge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// step is a call and its result.
type step struct {
	tool   string
	input  map[string]any
	result string
	failed bool
}

// follow returns what is known of files after some calls; call n stands in message 2n.
func follow(t *testing.T, steps ...step) *contents {
	t.Helper()
	var c contents
	for i, step := range steps {
		arguments, err := json.Marshal(step.input)
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("call", i)
		c.add(2*i, []conversation.Message{
			{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, ID: id, Name: step.tool, Text: string(arguments)}}},
			{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, ID: id, Text: step.result, IsError: step.failed}}},
		})
	}
	return &c
}

// known writes what is known of a file: "1:a|b|c 9:d", an unknown number as "?".
func known(c *contents, path string) string {
	for _, file := range c.files {
		if file.path != path {
			continue
		}
		var parts []string
		for i := range file.stretches {
			number := "?"
			if file.stretches[i].from > 0 {
				number = strconv.Itoa(file.stretches[i].from)
			}
			parts = append(parts, number+":"+strings.ReplaceAll(file.stretches[i].text(), "\n", "|"))
		}
		return strings.Join(parts, " ")
	}
	return "unknown"
}

func read(path, result string) step {
	return step{tool: "Read", input: map[string]any{"file_path": path}, result: result}
}

func edited(path, before, after string) step {
	return step{tool: "Edit", input: map[string]any{"file_path": path, "old_string": before, "new_string": after}, result: "The file has been updated."}
}

// E8: content is what the file has now as far as the conversation tells, never what
// it had before a change.
func TestContentFollowsReadsAndChanges(t *testing.T) {
	t.Parallel()
	const file = "/w/a.go"
	whole := read(file, "     1→alpha one\n     2→beta two\n     3→gamma three")
	part := step{tool: "Read", input: map[string]any{"file_path": file, "offset": 20, "limit": 2}, result: "    20→twenty lines\n    21→and one more"}
	for name, test := range map[string]struct {
		steps []step
		want  string
	}{
		"a read":                              {[]step{whole}, "1:alpha one|beta two|gamma three"},
		"a read without numbers":              {[]step{read(file, "alpha one\nbeta two")}, "1:alpha one|beta two"},
		"two parts":                           {[]step{whole, part}, "1:alpha one|beta two|gamma three 20:twenty lines|and one more"},
		"an edit":                             {[]step{whole, edited(file, "beta two", "BETA")}, "1:alpha one|BETA|gamma three"},
		"an edit that moves what is behind":   {[]step{whole, part, edited(file, "beta two", "b1\nb2\nb3")}, "1:alpha one|b1|b2|b3|gamma three 22:twenty lines|and one more"},
		"an edit within a line":               {[]step{whole, edited(file, "ta tw", "-")}, "1:alpha one|be-o|gamma three"},
		"an edit of what was not read":        {[]step{whole, edited(file, "something else here", "new words")}, "?:new words 1:alpha one|beta two|gamma three"},
		"an edit that reaches into a part":    {[]step{part, edited(file, "nineteenth line\ntwenty lines", "20th line")}, "?:and one more ?:20th line"},
		"an edit of a place that nobody sees": {[]step{whole, edited(file, "x", "y\nz")}, "?:y|z"},
		"a failed edit":                       {[]step{whole, {tool: "Edit", input: edited(file, "alpha one", "z").input, result: "<tool_use_error>String to replace not found in file.</tool_use_error>", failed: true}}, "1:alpha one|beta two|gamma three"},
		"a write":                             {[]step{whole, {tool: "Write", input: map[string]any{"file_path": file, "content": "fresh\nlines\n"}, result: "File written"}}, "1:fresh|lines"},
		"several edits in a call": {[]step{whole, {tool: "MultiEdit", input: map[string]any{"file_path": file, "edits": []map[string]any{
			{"old_string": "alpha", "new_string": "A"}, {"old_string": "gamma", "new_string": "G"},
		}}, result: "ok"}}, "1:A one|beta two|G three"},
		"everywhere": {[]step{read(file, "1\tx = x"), {tool: "Edit", input: map[string]any{"file_path": file, "old_string": "x", "new_string": "yy", "replace_all": true}, result: "ok"}}, "1:yy = yy"},
		"everywhere, perhaps also where nobody looked": {[]step{whole, part, {
			tool: "Edit", input: map[string]any{"file_path": file, "old_string": "beta", "new_string": "b1\nb2", "replace_all": true}, result: "ok",
		}}, "1:alpha one|b1|b2 two|gamma three ?:twenty lines|and one more"},
		"twice in a line": {[]step{whole, {
			tool: "Edit", input: map[string]any{"file_path": file, "old_string": "a", "new_string": "aa", "replace_all": true}, result: "ok",
		}}, "1:aalphaa one|betaa two|gaammaa three"},
		"an edit of what was not read, as many lines": {[]step{whole, part, edited(file, "something else here\nand one more", "new words\nand two more")}, "?:new words|and two more 1:alpha one|beta two|gamma three 20:twenty lines"},
		"a patch of Codex": {[]step{whole, {tool: "apply_patch", input: map[string]any{
			"input": "*** Begin Patch\n*** Update File: /w/a.go\n@@\n alpha one\n-beta two\n+beta 2\n gamma three\n*** End Patch",
		}, result: "Success. Updated the following files:\nM /w/a.go"}}, "1:alpha one|beta 2|gamma three"},
		"Cline's replacement": {[]step{whole, {tool: "replace_in_file", input: map[string]any{
			"path": file, "diff": "------- SEARCH\nbeta two\n=======\nbeta 2\n+++++++ REPLACE",
		}, result: "The content was successfully saved"}}, "1:alpha one|beta 2|gamma three"},
		"a command that prints":             {[]step{{tool: "Bash", input: map[string]any{"command": "sed -n '5,6p' /w/a.go"}, result: "five\nsix"}}, "5:five|six"},
		"a command that changes":            {[]step{whole, {tool: "Bash", input: map[string]any{"command": "sed -i s/alpha/omega/ /w/a.go"}, result: ""}}, ""},
		"a deletion":                        {[]step{whole, {tool: "Bash", input: map[string]any{"command": "rm /w/a.go"}, result: ""}}, "unknown"},
		"a later read wins":                 {[]step{whole, read(file, "     2→BETA")}, "1:alpha one|BETA|gamma three"},
		"reminders are not the file's":      {[]step{read(file, "     1→a\n\n<system-reminder>\n     2→b\n</system-reminder>")}, "1:a"},
		"a search says nothing of contents": {[]step{{tool: "Grep", input: map[string]any{"pattern": "a", "path": file}, result: "1:alpha"}}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := known(follow(t, test.steps...), file); got != test.want {
				t.Errorf("known is %q, want %q", got, test.want)
			}
		})
	}
}

// A patch may change several files, and move one of them.
func TestPatchChangesEachOfItsFiles(t *testing.T) {
	t.Parallel()
	c := follow(t, read("/w/a.go", "     1→alpha one"), read("/w/b.go", "     1→beta two"), step{tool: "apply_patch", input: map[string]any{
		"input": "*** Begin Patch\n*** Update File: /w/b.go\n@@\n-beta two\n+beta 2\n*** Update File: /w/a.go\n*** Move to: /w/c.go\n@@\n-alpha one\n+alpha 1\n*** End Patch",
	}, result: "Success. Updated the following files:\nM /w/b.go\nM /w/c.go"})
	for path, want := range map[string]string{"/w/a.go": "unknown", "/w/b.go": "1:beta 2", "/w/c.go": "?:alpha 1"} {
		if got := known(c, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// A part of what is known is shown with its own line numbers and message.
func TestShownPartHasItsOwnLines(t *testing.T) {
	t.Parallel()
	one := &file{path: "/w/a.go", stretches: []stretch{{from: 10, lines: linesOf(4, "ten\neleven\ntwelve\nthirteen")}}}
	one.stretches[0].lines[3].at = 9
	var text strings.Builder
	chosen{file: one, lines: map[int]map[int]bool{0: {1: true, 2: true}}}.write(&text)
	if want := "--- /w/a.go, lines 11-12 (#4)\neleven\ntwelve\n"; text.String() != want {
		t.Errorf("shown is %q, want %q", text.String(), want)
	}
}

// The head of each file counts against the budget.
func TestHeadsOfManyFilesFitTheirBudget(t *testing.T) {
	t.Parallel()
	var files []*file
	for i := range 40 {
		files = append(files, &file{path: fmt.Sprintf("/w/%d.go", i), stretches: []stretch{{from: 1, lines: linesOf(i, "a line")}}, touched: i})
	}
	const budget = 400
	all := choose(files, 40, budget, func(text string) int { return len(text) }, func(*file) bool { return false })
	if spent := len(all) * (fileHeader + len("a line") + 1); spent > budget || len(all) == 0 {
		t.Errorf("%d files take %d of %d tokens", len(all), spent, budget)
	}
}

// Turns have the places of their messages in the lane: the archive may begin later, and lack one.
func TestTurnsHaveThePlacesOfTheirMessages(t *testing.T) {
	t.Parallel()
	text := func(role conversation.Role, text string) conversation.Message {
		return conversation.Message{Role: role, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}}
	}
	read := historyOf([]conversation.Message{
		text(conversation.User, "Never push to main."), text(conversation.Assistant, "I see."),
		text(conversation.User, "Always run the tests."), text(conversation.Assistant, "I will."),
	}, []int{40, 41, 43, 44})
	if len(read.turns) != 2 || read.turns[0].first != 40 || read.turns[1].first != 43 || read.newest != 44 {
		t.Errorf("turns begin at %+v, the newest message is %d", read.turns, read.newest)
	}
	for i, want := range []int{40, 43} {
		if got := read.ledger.Directives[i].Message; got != want {
			t.Errorf("directive %d stands in message %d, want %d", i, got, want)
		}
	}
}

// A file that was changed and then deleted is not one that a summary can lose.
func TestDeletedFilesAreNotLost(t *testing.T) {
	t.Parallel()
	var messages []conversation.Message
	for i, command := range []string{"echo a > /w/kept.go", "echo b > /w/gone.go", "rm /w/gone.go"} {
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("call", i)
		messages = append(messages,
			conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, ID: id, Name: "Bash", Text: string(arguments)}}},
			conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, ID: id, Text: "ok"}}})
	}
	found := compare(historyOf(messages, []int{0, 1, 2, 3, 4, 5}), 0, present{})
	if counts := found.counts(); counts[Files] != 1 || counts[FilesLost] != 1 {
		t.Errorf("counts %v", counts)
	}
}

func TestWhatACommandMayHaveChangedIsMarked(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"git stash && go test ./...": "git stash", "npm run format": "npm run format", "gofmt -w .": "gofmt -w",
		"go test ./...": "", "git status": "", "git log --oneline": "", "make test": "",
	} {
		c := follow(t, read("/w/a.go", "     1→alpha"), step{tool: "Bash", input: map[string]any{"command": command}, result: "ok"})
		if got := c.files[0].stretches[0].doubt; got != want {
			t.Errorf("%s: the file is in doubt by %q, want %q", command, got, want)
		}
		if where := c.files[0].stretches[0].where(); strings.Contains(where, "as it was before") != (want != "") {
			t.Errorf("%s: the file is shown as %q", command, where)
		}
	}
}

func TestFilesAreChosenWithinTheirBudget(t *testing.T) {
	t.Parallel()
	long := func(name string) string {
		var text strings.Builder
		for i := range 400 {
			fmt.Fprintf(&text, "%6d→%s says that line %d is here\n", i+1, name, i+1)
		}
		return text.String()
	}
	c := follow(t,
		read("/w/old.go", long("old")), read("/w/new.go", long("new")),
		edited("/w/old.go", "old says that line 200 is here", "OLD LINE"),
	)
	count := func(text string) int { return len(text)/4 + 1 }
	none := func(*file) bool { return false }
	for _, budget := range []int{0, 50, 200, 1000, 5000} {
		total := 0
		for _, one := range choose(c.files, 6, budget, count, none) {
			var text strings.Builder
			one.write(&text)
			total += count(text.String())
		}
		if total > budget {
			t.Errorf("of %d tokens the files take %d", budget, total)
		}
	}
	var first strings.Builder
	chosen := choose(c.files, 6, 300, count, none)
	chosen[0].write(&first)
	if !strings.Contains(first.String(), "OLD LINE") || !strings.Contains(first.String(), "/w/old.go, lines ") {
		t.Errorf("what was changed last does not come first:\n%s", first.String())
	}
	if left := choose(c.files, 6, 300, count, func(*file) bool { return true }); len(left) != 0 {
		t.Errorf("files that are not needed are chosen: %d", len(left))
	}
}
