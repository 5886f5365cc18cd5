package ledger

import (
	"encoding/json"
	"strconv"
	"strings"

	"palimpsest/pipeline/expression"
)

// Task is a step of the model's own plan, as the client's task tool stores it.
type Task struct {
	Place // of the last call that changed it

	Made   int    // index of the message whose call has its text
	ID     string // calls name it so; "" in a list that each call writes completely
	Text   string // in one line
	Status string // as the client writes it, such as "in_progress"
}

// Open reports whether a task is unfinished.
func (t *Task) Open() bool {
	switch t.Status {
	case "completed", "complete", "done", "cancelled", "canceled", "deleted":
		return false
	}
	return true
}

// taskTable are the tasks of a lane, in the client's order.
type taskTable struct{ Tasks []Task }

// maxTasks bounds how many tasks a ledger has; finished ones go first.
const maxTasks = 200

// taskCharacters bounds the text of one task, in bytes.
const taskCharacters = 400

// taskCall holds the arguments of task tools: Claude Code's TodoWrite, TaskCreate and TaskUpdate,
// opencode's todowrite, Kilo's and Roo's update_todo_list, Codex' update_plan, and the checklist
// that Cline has in the arguments of every tool.
type taskCall struct {
	Todos    json.RawMessage `json:"todos"` // a list, or a checklist
	Plan     json.RawMessage `json:"plan"`
	Progress string          `json:"task_progress"`

	ID      string `json:"taskId"`
	Subject string `json:"subject"`
	Status  string `json:"status"`
}

// listedTask is a task of a list.
type listedTask struct {
	Content string `json:"content"`
	Step    string `json:"step"`
	Text    string `json:"text"`
	Title   string `json:"title"`
	Status  string `json:"status"`
}

// createdTask matches the number that a client gives a task.
var createdTask = expression.New(`#(\d+)`)

// addTasks notes the effects of a successful call on the tasks.
func (t *taskTable) addTasks(place Place, call *Made) {
	tool := call.Tool
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+2:] // mcp__server__tool
	}
	tool = strings.ToLower(strings.ReplaceAll(tool, "_", ""))
	switch tool {
	case "todowrite", "updatetodolist", "updateplan", "taskcreate", "taskupdate":
	default:
		if !strings.Contains(call.Block.Text, `"task_progress"`) {
			return
		}
		tool = ""
	}
	var said taskCall
	if json.Unmarshal([]byte(call.Block.Text), &said) != nil {
		return
	}
	switch tool {
	case "":
		t.list(place, checklist(said.Progress))
	case "taskcreate":
		t.create(place, call, &said)
	case "taskupdate":
		t.update(place, &said)
	case "updateplan":
		t.list(place, listOf(said.Plan))
	default:
		t.list(place, listOf(said.Todos))
	}
}

// listOf reads a list of tasks, or a checklist.
func listOf(value json.RawMessage) []listedTask {
	var list []listedTask
	if json.Unmarshal(value, &list) == nil {
		return list
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return nil
	}
	return checklist(text)
}

// checklist reads the tasks of a Markdown checklist: "- [x] done", "[-] being done", "[ ] open".
func checklist(text string) []listedTask {
	var list []listedTask
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSpace(line), "-*+ ")
		if len(line) < 4 || line[0] != '[' || line[2] != ']' {
			continue
		}
		status := "pending"
		switch line[1] {
		case 'x', 'X':
			status = "completed"
		case '-', '~', '/':
			status = "in_progress"
		}
		list = append(list, listedTask{Text: strings.TrimSpace(line[3:]), Status: status})
	}
	return list
}

// list replaces the tasks by a list.
func (t *taskTable) list(place Place, list []listedTask) {
	if list == nil {
		return
	}
	t.Tasks = t.Tasks[:0:0]
	for _, one := range list[:min(len(list), maxTasks)] {
		if text := oneLine(one.Content+one.Step+one.Text+one.Title, taskCharacters); text != "" {
			t.Tasks = append(t.Tasks, Task{Place: place, Made: place.Message, Text: text, Status: one.Status})
		}
	}
}

// create adds a task. Its number is the one that the result names, or the next.
func (t *taskTable) create(place Place, call *Made, said *taskCall) {
	id := strconv.Itoa(len(t.Tasks) + 1)
	if call.Result != nil {
		if found := createdTask.FindStringSubmatch(call.Result.Text); found != nil {
			id = found[1]
		}
	}
	if len(t.Tasks) >= maxTasks {
		t.drop()
	}
	t.Tasks = append(t.Tasks, Task{Place: place, Made: place.Message, ID: id, Text: oneLine(said.Subject, taskCharacters), Status: "pending"})
}

// drop removes the oldest finished task, or the oldest of all.
func (t *taskTable) drop() {
	at := 0
	for i := range t.Tasks {
		if !t.Tasks[i].Open() {
			at = i
			break
		}
	}
	t.Tasks = append(t.Tasks[:at:at], t.Tasks[at+1:]...)
}

// update changes the task that a call names.
func (t *taskTable) update(place Place, said *taskCall) {
	for i := range t.Tasks {
		task := &t.Tasks[i]
		if task.ID == "" || task.ID != said.ID {
			continue
		}
		task.Place = place
		if said.Status != "" {
			task.Status = said.Status
		}
		if said.Subject != "" {
			task.Text, task.Made = oneLine(said.Subject, taskCharacters), place.Message
		}
	}
}

// shortUse finds "use tabs", "use single quotes".
var shortUse = expression.New(`^use (?:[a-z-]+ ){0,2}[a-z]+s(?: everywhere| only| please|, please)?[.!]?$`)

// pointing are words that refer to one thing of the current work.
var pointing = cuesOf("the", "this", "that", "these", "those", "it", "its", "first", "second", "last", "my", "your", "his", "their")

// shortNo finds "no emojis, please, anywhere".
var shortNo = expression.New(`^no (?:[a-z-]+ ){0,2}[a-z-]+(?:,? (?:please|anywhere|ever|at all|in [a-z ]+))+[.!]?$`)

// wantsForm finds "I want answers in British English": the required form of the reader's work.
var wantsForm = expression.New(`^(?:i|we)(?:'d| would)? (?:want|need|expect|like) (?:your |the |all )?` +
	`(?:answers?|repl(?:y|ies)|responses?|explanations?|comments?|commits?|commit messages?|messages?|names?|docs|documentation|tests?|functions?|code)` +
	` (?:in|to be|to use|to have|as|with|without|that|short|concise)\b`)

// isStated reports whether a sentence in lower case states a rule in a few everyday words.
func isStated(low string) bool {
	if len(low) > longestOrder {
		return false
	}
	low = withoutAsides(low)
	switch {
	case strings.HasPrefix(low, "use "):
		return shortUse.MatchString(low) && !pointing.in(low)
	case strings.HasPrefix(low, "no "):
		return shortNo.MatchString(low)
	case strings.HasPrefix(low, "i ") || strings.HasPrefix(low, "i'd ") || strings.HasPrefix(low, "we ") || strings.HasPrefix(low, "we'd "):
		return wantsForm.MatchString(low)
	}
	return false
}

// withoutQuotes leaves out quotes between backticks or double quotes if the sentence has other
// words too, because quoted words are not the writer's own.
func withoutQuotes(sentence string) string {
	for _, sign := range []string{"`", `"`} {
		if strings.Count(sentence, sign) < 2 || strings.Count(sentence, sign)%2 == 1 {
			continue
		}
		var rest strings.Builder
		for i, part := range strings.Split(sentence, sign) {
			if i%2 == 0 {
				rest.WriteString(part)
			} else {
				rest.WriteString("x")
			}
		}
		if len(strings.Fields(rest.String())) > 2 {
			sentence = rest.String()
		}
	}
	return sentence
}

// pastedLine matches a line that a person doesn't type: a log, a stack, a diff, output, code, a
// quote.
var pastedLine = expression.New(`^(?:>|\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|\$ |@@ |diff --git |[+-]{3} |\s*at [\w.$<>]+ ?\(|\s*File "|E   |={3,}|-> |→|\s*\d+[|│→]\s` +
	`|\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|error|warning|panic|fatal)\]?:|.*[{}]$|.*\);$|//|/\*|\*/|#include|</?\w+[^>]*>$)`)

// review matches the beginning of a comment that a tool or another person wrote on code.
var review = expression.New(`(?m)^(?:\*\*[\w/.-]+\.\w+:\d+|#{1,4} (?:Pull request overview|Summary|Review|Findings)|Reviewed changes|Path: |In [\w/.-]+\.\w+:$|@[\w/.-]+\.\w+:\d+|Comment on lines? )`)

// withoutPasted leaves out the pasted parts of a person's message: quoted lines, logs, output,
// code, comments of a review.
func withoutPasted(text string) string {
	if at := review.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if bare := strings.TrimRight(line, " \r\n"); !isPasted(bare) && !isIndented(bare) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// isPasted reports whether a line is pasted. Most typed lines begin with a word and end without a
// bracket, so that a quick check is enough.
func isPasted(line string) bool {
	if line == "" {
		return false
	}
	if c := line[0] | 0x20; c >= 'a' && c <= 'z' && !strings.ContainsAny(line[len(line)-1:], "{};") && !strings.Contains(line[:min(len(line), 10)], ":") &&
		!startsWith(line, []string{"at ", "diff ", "File ", "E  "}) {
		return false
	}
	return pastedLine.MatchString(line)
}

// isIndented reports whether a line is indented like code, not like a part of a list.
func isIndented(line string) bool {
	if !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t") {
		return false
	}
	line = strings.TrimSpace(line)
	return line != "" && !strings.ContainsRune("-*•0123456789", rune(line[0]))
}
