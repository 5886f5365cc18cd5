package resume

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/expression"
)

// longestName is the length beyond which Claude Code shortens the name of a folder below projects.
const longestName = 200

func claudeCode() Target {
	return Target{ID: "claude-code", Title: "Claude Code", Program: "claude", Tried: "2.1.332", native: claudeTool, write: writeClaudeCode, keepsID: true}
}

type claudeShell struct {
	Command     string `json:"command"`
	Description string `json:"description,omitempty"`
}

type claudeFile struct {
	Path    string  `json:"file_path"`
	Content *string `json:"content,omitempty"`
	Before  *string `json:"old_string,omitempty"`
	After   *string `json:"new_string,omitempty"`
	All     bool    `json:"replace_all,omitempty"`
	Offset  *int    `json:"offset,omitempty"`
	Limit   *int    `json:"limit,omitempty"`
}

func claudeTool(o operation) (string, any) {
	switch o.kind {
	case runs:
		return "Bash", claudeShell{o.command, o.description}
	case reads:
		return "Read", claudeFile{Path: o.path, Offset: o.offset, Limit: o.limit}
	case writes:
		return "Write", claudeFile{Path: o.path, Content: &o.content}
	case edits:
		return "Edit", claudeFile{Path: o.path, Before: &o.before, After: &o.after, All: o.isAll}
	}
	return "", nil
}

// claudeLine is a line of Claude Code's file with a message.
type claudeLine struct {
	Parent    *string       `json:"parentUuid"`
	Sidechain bool          `json:"isSidechain"`
	User      string        `json:"userType"`
	Folder    string        `json:"cwd"`
	Session   string        `json:"sessionId"`
	Version   string        `json:"version"`
	Branch    string        `json:"gitBranch"`
	Type      string        `json:"type"`
	Meta      bool          `json:"isMeta,omitempty"` // not shown
	Message   claudeMessage `json:"message"`
	ID        string        `json:"uuid"`
	At        string        `json:"timestamp"`
}

type claudeMessage struct {
	Role    string       `json:"role"`
	ID      string       `json:"id,omitempty"`
	Type    string       `json:"type,omitempty"`
	Model   string       `json:"model,omitempty"`
	Content []any        `json:"content"`
	Stop    string       `json:"stop_reason,omitempty"`
	Usage   *claudeUsage `json:"usage,omitempty"`
}

// claudeUsage is zero because the prompt has not been counted yet.
type claudeUsage struct {
	Input  int `json:"input_tokens"`
	Write  int `json:"cache_creation_input_tokens"`
	Read   int `json:"cache_read_input_tokens"`
	Output int `json:"output_tokens"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type claudeImage struct {
	Type   string `json:"type"`
	Source struct {
		Type string `json:"type"`
		MIME string `json:"media_type"`
		Data string `json:"data"`
	} `json:"source"`
}

type claudeCall struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input any    `json:"input"`
}

type claudeResult struct {
	Type    string `json:"type"`
	ID      string `json:"tool_use_id"`
	Content string `json:"content"`
	Failed  bool   `json:"is_error"`
}

// notInNames matches characters that Claude Code writes as a hyphen in a project's name.
var notInNames = expression.New(`[^a-zA-Z0-9]`)

func writeClaudeCode(w *writing) (File, error) {
	project := notInNames.ReplaceAllString(w.folder, "-")
	if len(project) > longestName {
		return File{}, fmt.Errorf("the path of this folder is longer than %d characters, for which Claude Code makes up a name: run this in a folder nearer to the root", longestName)
	}
	out := claudeLines{w: w}
	for i, one := range w.rounds {
		user := one.user
		if i == 0 { // the note is not shown to the user
			out.isMeta = true
			out.add("user", claudeMessage{Role: "user", Content: claudeSaid(user[:1])}, w.at(i))
			out.isMeta, user = false, user[1:]
		}
		if len(user) > 0 {
			out.add("user", claudeMessage{Role: "user", Content: claudeSaid(user)}, w.at(i))
		}
		if len(one.texts)+len(one.calls) == 0 {
			continue
		}
		var content, results []any
		for _, text := range one.texts {
			content = append(content, textBlock{"text", text})
		}
		stop := "end_turn"
		for _, call := range one.calls {
			content = append(content, claudeCall{"tool_use", call.id, call.name, call.input})
			results = append(results, claudeResult{"tool_result", call.id, call.result, call.failed})
			stop = "tool_use"
		}
		out.add("assistant", claudeMessage{
			Role: "assistant", ID: fmt.Sprintf("msg_carried_%d", i), Type: "message", Model: w.session.modelOf(ofAnthropic), Content: content, Stop: stop, Usage: &claudeUsage{},
		}, w.at(i))
		if len(results) > 0 {
			out.add("user", claudeMessage{Role: "user", Content: results}, w.at(i))
		}
	}
	root := w.place.Env("CLAUDE_CONFIG_DIR")
	if root == "" {
		root = filepath.Join(w.place.Home, ".claude")
	}
	return File{
		Path: filepath.Join(root, "projects", project, w.id+".jsonl"), Known: filepath.Join(root, "projects", "*", w.id+".jsonl"),
		Content: out.text, ID: w.id, Arguments: []string{"--resume", w.id},
	}, out.err
}

// claudeLines are the lines of a file. Each names the line before it.
type claudeLines struct {
	lines

	w      *writing
	last   *string
	isMeta bool
}

func (l *claudeLines) add(kind string, message claudeMessage, at time.Time) {
	id := uuid.NewString()
	l.lines.add(claudeLine{
		Parent: l.last, User: "external", Folder: l.w.folder, Session: l.w.id, Version: l.w.target.Tried, Type: kind, Meta: l.isMeta, Message: message, ID: id, At: stamp(at),
	})
	l.last = &id
}

func claudeSaid(user []said) []any {
	var content []any
	for _, one := range user {
		if one.image == nil {
			content = append(content, textBlock{"text", one.text})
			continue
		}
		block := claudeImage{Type: "image"}
		block.Source.Type, block.Source.MIME, block.Source.Data = "base64", one.image.mime, one.image.data
		content = append(content, block)
	}
	return content
}

// stamp formats a time in JavaScript's format.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
