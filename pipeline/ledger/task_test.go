package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/ledger"
)

// taskLines are the open tasks as the block shows them.
func taskLines(kept *ledger.Ledger) []string {
	text := kept.Text(3000, func(text string) int { return len(text) / 4 })
	_, list, _ := strings.Cut(text, "Open tasks of the list that you keep:\n")
	var lines []string
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func TestTasksOfEveryClientAreKeptInTheirLatestState(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		calls [][3]string // tool, arguments, result
		want  []string
	}{
		{"Claude Code's list", [][3]string{
			{"TodoWrite", `{"todos":[{"content":"Read the code","status":"in_progress"},{"content":"Fix it","status":"pending"}]}`, "saved"},
			{"TodoWrite", `{"todos":[{"content":"Read the code","status":"completed"},{"content":"Fix it","status":"in_progress"},{"content":"Run\n the tests","status":"pending"}]}`, "saved"},
		}, []string{"#3 [in_progress] Fix it", "#3 [pending] Run the tests"}},
		{"Claude Code's tasks", [][3]string{
			{"TaskCreate", `{"subject":"Read","description":"all of it"}`, "Task #4 created successfully: Read"},
			{"TaskCreate", `{"subject":"Fix","description":"the bug"}`, "Task #5 created successfully: Fix"},
			{"TaskUpdate", `{"taskId":"4","status":"completed"}`, "Updated task #4 status"},
			{"TaskUpdate", `{"taskId":"5","status":"in_progress"}`, "Updated task #5 status"},
			{"TaskUpdate", `{"taskId":"5","addBlockedBy":["4"]}`, "Updated task #5"},
		}, []string{"#9 [in_progress] task 5: Fix"}},
		{"Codex", [][3]string{
			{"update_plan", `{"plan":[{"step":"Look","status":"completed"},{"step":"Change","status":"in_progress"}]}`, "Plan updated"},
		}, []string{"#1 [in_progress] Change"}},
		{"opencode", [][3]string{
			{"todowrite", `{"todos":[{"content":"One","status":"cancelled","id":"1"},{"content":"Two","status":"pending","id":"2"}]}`, "[]"},
		}, []string{"#1 [pending] Two"}},
		{"Kilo", [][3]string{
			{"update_todo_list", `{"todos":"[x] One\n[-] Two\n[ ] Three"}`, "updated"},
		}, []string{"#1 [in_progress] Two", "#1 [pending] Three"}},
		{"Cline", [][3]string{
			{"read_file", `{"path":"a.go","task_progress":"- [x] One\n- [ ] Two"}`, "package a"},
		}, []string{"#1 [pending] Two"}},
		{"a server's tool of the same name", [][3]string{
			{"mcp__todo__todo_write", `{"todos":[{"content":"One","status":"pending"}]}`, "ok"},
		}, []string{"#1 [pending] One"}},
		{"arguments without a list", [][3]string{{"TodoWrite", `{"todos":7}`, "ok"}, {"TodoWrite", `[]`, "ok"}}, nil},
		{"an emptied list", [][3]string{
			{"TodoWrite", `{"todos":[{"content":"One","status":"pending"}]}`, "ok"}, {"TodoWrite", `{"todos":[]}`, "ok"},
		}, nil},
	} {
		var c talk
		said := c.user("Go.")
		for _, one := range test.calls {
			said = said.call(one[0], one[1], one[2])
		}
		if lines := taskLines(said.ledger()); !slices.Equal(lines, test.want) {
			t.Errorf("%s: %q, want %q", test.name, lines, test.want)
		}
	}
}

func TestCallThatFailedChangesNoTask(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").
		call("TodoWrite", `{"todos":[{"content":"One","status":"pending"}]}`, "ok").
		fails("TodoWrite", `{"todos":[]}`, "InputValidationError").ledger()
	if lines := taskLines(kept); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
}

func TestTasksAreBounded(t *testing.T) {
	t.Parallel()
	var c talk
	said := c.user("Go.").call("TaskCreate", `{"subject":"the first"}`, "Task #1 created").call("TaskUpdate", `{"taskId":"1","status":"completed"}`, "ok")
	for range 300 {
		said = said.call("TaskCreate", `{"subject":"more"}`, "created")
	}
	kept := said.ledger()
	if len(kept.Tasks) != 200 || kept.Tasks[0].Text == "the first" {
		t.Errorf("%d tasks, the first is %q", len(kept.Tasks), kept.Tasks[0].Text)
	}
}
