package resume

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// piVersion is the version of pi's session files.
const piVersion = 3

func pi() Target {
	return Target{ID: "pi", Title: "pi", Program: "pi", Tried: "1.6.0", native: piTool, write: writePi, keepsID: true}
}

type piShell struct {
	Command string `json:"command"`
}

type piFile struct {
	Path    string   `json:"path"`
	Content *string  `json:"content,omitempty"`
	Edits   []piEdit `json:"edits,omitempty"`
	Offset  *int     `json:"offset,omitempty"`
	Limit   *int     `json:"limit,omitempty"`
}

type piEdit struct {
	Before string `json:"oldText"`
	After  string `json:"newText"`
}

func piTool(o operation) (string, any) {
	switch {
	case o.kind == runs:
		return "bash", piShell{o.command}
	case o.kind == reads:
		return "read", piFile{Path: o.path, Offset: o.offset, Limit: o.limit}
	case o.kind == writes:
		return "write", piFile{Path: o.path, Content: &o.content}
	case o.kind == edits && !o.isAll:
		return "edit", piFile{Path: o.path, Edits: []piEdit{{o.before, o.after}}}
	}
	return "", nil
}

type piHeader struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
	ID      string `json:"id"`
	At      string `json:"timestamp"`
	Folder  string `json:"cwd"`
}

type piEntry struct {
	Type     string     `json:"type"`
	ID       string     `json:"id"`
	Parent   *string    `json:"parentId"`
	At       string     `json:"timestamp"`
	Provider string     `json:"provider,omitempty"`
	Model    string     `json:"modelId,omitempty"`
	Message  *piMessage `json:"message,omitempty"`
}

type piMessage struct {
	Role     string   `json:"role"`
	CallID   string   `json:"toolCallId,omitempty"`
	Tool     string   `json:"toolName,omitempty"`
	Content  []any    `json:"content"`
	API      string   `json:"api,omitempty"`
	Provider string   `json:"provider,omitempty"`
	Model    string   `json:"model,omitempty"`
	Usage    *piUsage `json:"usage,omitempty"`
	Stop     string   `json:"stopReason,omitempty"`
	Failed   *bool    `json:"isError,omitempty"`
	At       int64    `json:"timestamp"`
}

// piUsage is zero because the prompt has not been counted yet.
type piUsage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	Read   int `json:"cacheRead"`
	Write  int `json:"cacheWrite"`
	Total  int `json:"totalTokens"`
	Cost   struct {
		Input  float64 `json:"input"`
		Output float64 `json:"output"`
		Read   float64 `json:"cacheRead"`
		Write  float64 `json:"cacheWrite"`
		Total  float64 `json:"total"`
	} `json:"cost"`
}

type piImage struct {
	Type string `json:"type"`
	Data string `json:"data"`
	MIME string `json:"mimeType"`
}

type piCall struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input any    `json:"arguments"`
}

func writePi(w *writing) (File, error) {
	family := w.session.family()
	provider, api, model := "palimpsest-"+family, "openai-responses", w.session.modelOf(family)
	if family == ofAnthropic {
		api = "anthropic-messages"
	}
	out := piLines{}
	began := w.at(0)
	out.add(piHeader{"session", piVersion, w.id, stamp(began), w.folder})
	out.entry(piEntry{Type: "model_change", Provider: provider, Model: model}, began)
	for i, one := range w.rounds {
		at := w.at(i)
		if content := piSaid(one.user); len(content) > 0 {
			out.message(piMessage{Role: "user", Content: content}, at)
		}
		if len(one.texts)+len(one.calls) == 0 {
			continue
		}
		answer := piMessage{Role: "assistant", API: api, Provider: provider, Model: model, Usage: &piUsage{}, Stop: "stop"}
		for _, text := range one.texts {
			answer.Content = append(answer.Content, textBlock{"text", text})
		}
		for _, call := range one.calls {
			answer.Content = append(answer.Content, piCall{"toolCall", call.id, call.name, call.input})
			answer.Stop = "toolUse"
		}
		out.message(answer, at)
		for _, call := range one.calls {
			out.message(piMessage{Role: "toolResult", CallID: call.id, Tool: call.name, Content: []any{textBlock{"text", call.result}}, Failed: &call.failed}, at)
		}
	}
	root := w.place.Env("PI_CODING_AGENT_DIR")
	if root == "" {
		root = filepath.Join(w.place.Home, ".pi", "agent")
	}
	project := "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimLeft(w.folder, `/\`)) + "--"
	name := strings.NewReplacer(":", "-", ".", "-").Replace(stamp(w.now)) + "_" + w.id + ".jsonl"
	return File{
		Path: filepath.Join(root, "sessions", project, name), Known: filepath.Join(root, "sessions", "*", "*_"+w.id+".jsonl"),
		Content: out.text, ID: w.id, Arguments: []string{"--session", w.id},
	}, out.err
}

func piSaid(user []said) []any {
	var content []any
	for _, one := range user {
		if one.image != nil {
			content = append(content, piImage{"image", one.image.data, one.image.mime})
			continue
		}
		content = append(content, textBlock{"text", one.text})
	}
	return content
}

// piLines are the lines of a file. Each names the line before it.
type piLines struct {
	lines

	count int
	last  *string
}

func (l *piLines) entry(entry piEntry, at time.Time) {
	id := fmt.Sprintf("%08x", l.count)
	entry.ID, entry.Parent, entry.At = id, l.last, stamp(at)
	l.add(entry)
	l.last = &id
	l.count++
}

func (l *piLines) message(message piMessage, at time.Time) {
	message.At = at.UnixMilli()
	l.entry(piEntry{Type: "message", Message: &message}, at)
}
