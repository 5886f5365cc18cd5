package resume

import (
	"path/filepath"
	"time"

	"palimpsest/pipeline/conversation"
)

func codex() Target {
	return Target{ID: "codex", Title: "Codex", Program: "codex", Tried: "0.171.0", native: codexTool, write: writeCodex, keepsID: true}
}

type codexShell struct {
	Command string `json:"cmd"`
}

// codexTool supports only the shell, because Codex reads files through it and changes them by patches.
func codexTool(o operation) (string, any) {
	if o.kind == runs {
		return "exec_command", codexShell{o.command}
	}
	return "", nil
}

type codexLine struct {
	At      string `json:"timestamp"`
	Type    string `json:"type"`
	Payload any    `json:"payload"`
}

type codexMeta struct {
	ID         string `json:"id"`
	At         string `json:"timestamp"`
	Folder     string `json:"cwd"`
	Originator string `json:"originator"`
	Version    string `json:"cli_version"`
	Source     string `json:"source"`
}

type codexMessage struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type codexImage struct {
	Type string `json:"type"`
	URL  string `json:"image_url"`
}

type codexCall struct {
	Type      string `json:"type"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	ID        string `json:"call_id"`
}

type codexResult struct {
	Type   string `json:"type"`
	ID     string `json:"call_id"`
	Output string `json:"output"`
}

// codexEvent is Codex's display of a message when it opens the session.
type codexEvent struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func writeCodex(w *writing) (File, error) {
	var out lines
	began := w.at(0)
	out.add(codexLine{stamp(began), "session_meta", codexMeta{w.id, stamp(began), w.folder, "palimpsest", w.target.Tried, "cli"}})
	for i, one := range w.rounds {
		at := stamp(w.at(i))
		item := func(payload any) { out.add(codexLine{at, "response_item", payload}) }
		event := func(kind, text string) { out.add(codexLine{at, "event_msg", codexEvent{kind, text}}) }
		var content []any
		for _, said := range one.user {
			if said.image != nil {
				content = append(content, codexImage{"input_image", said.image.url()})
				continue
			}
			content = append(content, textBlock{"input_text", said.text})
			if conversation.IsTyped(said.text) {
				event("user_message", said.text)
			}
		}
		if len(content) > 0 {
			item(codexMessage{"message", "user", content})
		}
		for _, text := range one.texts {
			event("agent_message", text)
			item(codexMessage{"message", "assistant", []any{textBlock{"output_text", text}}})
		}
		for _, call := range one.calls {
			item(codexCall{"function_call", call.name, string(call.input), call.id})
		}
		for _, call := range one.calls {
			item(codexResult{"function_call_output", call.id, call.result})
		}
	}
	root := w.place.Env("CODEX_HOME")
	if root == "" {
		root = filepath.Join(w.place.Home, ".codex")
	}
	local := w.now.In(time.Local)
	name := "rollout-" + local.Format("2006-01-02T15-04-05") + "-" + w.id + ".jsonl"
	return File{
		Known: filepath.Join(root, "sessions", "*", "*", "*", "rollout-*-"+w.id+".jsonl"),
		Path:  filepath.Join(root, "sessions", local.Format("2006"), local.Format("01"), local.Format("02"), name), Content: out.text, ID: w.id, Arguments: []string{"resume", w.id},
	}, out.err
}
