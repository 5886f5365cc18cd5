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
