package resume

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

func openCode() Target {
	return Target{ID: "opencode", Title: "opencode", Program: "opencode", Tried: "1.18.33", native: openCodeTool, write: writeOpenCode}
}

type openCodeShell struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

type openCodeFile struct {
	Path    string  `json:"filePath"`
	Content *string `json:"content,omitempty"`
	Before  *string `json:"oldString,omitempty"`
	After   *string `json:"newString,omitempty"`
	All     bool    `json:"replaceAll,omitempty"`
	Offset  *int    `json:"offset,omitempty"`
	Limit   *int    `json:"limit,omitempty"`
}

func openCodeTool(o operation) (string, any) {
	switch o.kind {
	case runs:
		return "bash", openCodeShell{o.command, o.description}
	case reads:
		return "read", openCodeFile{Path: o.path, Offset: o.offset, Limit: o.limit}
	case writes:
		return "write", openCodeFile{Path: o.path, Content: &o.content}
	case edits:
		return "edit", openCodeFile{Path: o.path, Before: &o.before, After: &o.after, All: o.isAll}
	}
	return "", nil
}

// openCodeSession is the input of opencode import.
type openCodeSession struct {
	Info struct {
		ID      string       `json:"id"`
		Slug    string       `json:"slug"`
		Project string       `json:"projectID"`
		Folder  string       `json:"directory"`
		Title   string       `json:"title"`
		Version string       `json:"version"`
		Time    openCodeTime `json:"time"`
	} `json:"info"`
	Messages []openCodeMessage `json:"messages"`
}

type openCodeTime struct {
	Created   int64 `json:"created,omitempty"`
	Updated   int64 `json:"updated,omitempty"`
	Completed int64 `json:"completed,omitempty"`
	Start     int64 `json:"start,omitempty"`
	End       int64 `json:"end,omitempty"`
}

type openCodeMessage struct {
	Info  any   `json:"info"`
	Parts []any `json:"parts"`
}

type openCodeModel struct {
	Provider string `json:"providerID"`
	Model    string `json:"modelID"`
}

type openCodeUser struct {
	ID      string        `json:"id"`
	Session string        `json:"sessionID"`
	Role    string        `json:"role"`
	Time    openCodeTime  `json:"time"`
	Agent   string        `json:"agent"`
	Model   openCodeModel `json:"model"`
}

type openCodeAnswer struct {
	ID      string       `json:"id"`
	Session string       `json:"sessionID"`
	Role    string       `json:"role"`
	Time    openCodeTime `json:"time"`
	Parent  string       `json:"parentID"`
	openCodeModel
	Mode  string `json:"mode"`
	Agent string `json:"agent"`
	Path  struct {
		Folder string `json:"cwd"`
		Root   string `json:"root"`
	} `json:"path"`
	Cost   float64        `json:"cost"`
	Tokens openCodeTokens `json:"tokens"`
	Finish string         `json:"finish"`
}

// openCodeTokens are zero because the prompt has not been counted yet.
type openCodeTokens struct {
	Input     int `json:"input"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning"`
	Cache     struct {
		Read  int `json:"read"`
		Write int `json:"write"`
	} `json:"cache"`
}

type openCodePart struct {
	ID      string          `json:"id"`
	Session string          `json:"sessionID"`
	Message string          `json:"messageID"`
	Type    string          `json:"type"`
	Text    *string         `json:"text,omitempty"`
	MIME    string          `json:"mime,omitempty"`
	URL     string          `json:"url,omitempty"`
	Call    string          `json:"callID,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	State   *openCodeState  `json:"state,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Cost    *float64        `json:"cost,omitempty"`
	Tokens  *openCodeTokens `json:"tokens,omitempty"`
}

type openCodeState struct {
	Status   string          `json:"status"`
	Input    json.RawMessage `json:"input"`
	Output   *string         `json:"output,omitempty"`
	Error    string          `json:"error,omitempty"`
	Title    *string         `json:"title,omitempty"`
	Metadata struct{}        `json:"metadata"`
	Time     openCodeTime    `json:"time"`
}

// openCodeBuild is opencode's default agent.
const openCodeBuild = "build"

func writeOpenCode(w *writing) (File, error) {
	family := w.session.family()
	out := openCodeWriter{w: w, model: openCodeModel{family, w.session.modelOf(family)}}
	out.session.Info.ID = "ses_" + out.id(w.now, true)
	info := &out.session.Info
	info.Slug, info.Project, info.Folder, info.Title, info.Version = "carried-over", "global", w.folder, w.session.Title, w.target.Tried
	info.Time = openCodeTime{Created: w.at(0).UnixMilli(), Updated: w.now.UnixMilli()}
	user := ""
	for i, one := range w.rounds {
		if len(one.user) > 0 {
			user = out.user(one.user, w.at(i))
		}
		if len(one.texts)+len(one.calls) > 0 {
			out.answer(one, user, w.at(i))
		}
	}
	content, err := json.MarshalIndent(out.session, "", "  ")
	root := w.place.Env("XDG_STATE_HOME")
	if root == "" {
		root = filepath.Join(w.place.Home, ".local", "state")
	}
	path := filepath.Join(root, "palimpsest", "resume", info.ID+".json")
	return File{Path: path, Content: content, ID: info.ID, Before: "import", Arguments: []string{"--session", info.ID}}, err
}

// openCodeWriter builds a session for opencode import.
type openCodeWriter struct {
	w       *writing
	session openCodeSession
	model   openCodeModel
	count   int64
}

// id returns the part of an id that determines its order: messages and parts by time, sessions the newest
// first.
func (o *openCodeWriter) id(at time.Time, newestFirst bool) string {
	o.count++
	order := at.UnixMilli()*0x1000 + o.count
	if newestFirst {
		order = ^order
	}
	return fmt.Sprintf("%012x%014d", uint64(order)&(1<<48-1), o.count) //nolint:gosec // the low bits are meant, as opencode takes them
}

func (o *openCodeWriter) part(message, kind string, at time.Time) openCodePart {
	return openCodePart{ID: "prt_" + o.id(at, false), Session: o.session.Info.ID, Message: message, Type: kind}
}

func (o *openCodeWriter) text(message, text string, at time.Time) openCodePart {
	part := o.part(message, "text", at)
	part.Text = &text
	return part
}

func (o *openCodeWriter) user(user []said, at time.Time) string {
	id := "msg_" + o.id(at, false)
	var parts []any
	for _, one := range user {
		if one.image == nil {
			parts = append(parts, o.text(id, one.text, at))
			continue
		}
		file := o.part(id, "file", at)
		file.MIME, file.URL = one.image.mime, one.image.url()
		parts = append(parts, file)
	}
	info := openCodeUser{ID: id, Session: o.session.Info.ID, Role: "user", Time: openCodeTime{Created: at.UnixMilli()}, Agent: openCodeBuild, Model: o.model}
	o.session.Messages = append(o.session.Messages, openCodeMessage{info, parts})
	return id
}

func (o *openCodeWriter) answer(one round, user string, at time.Time) {
	id, milli := "msg_"+o.id(at, false), at.UnixMilli()+1
	parts := []any{o.part(id, "step-start", at)}
	for _, text := range one.texts {
		parts = append(parts, o.text(id, text, at))
	}
	finish := "stop"
	for _, call := range one.calls {
		part := o.part(id, "tool", at)
		state := &openCodeState{Status: "completed", Input: call.input, Time: openCodeTime{Start: milli, End: milli}}
		if call.failed {
			state.Status, state.Error = "error", call.result
		} else {
			state.Output, state.Title = &call.result, new(call.name)
		}
		part.Call, part.Tool, part.State = call.id, call.name, state
		parts, finish = append(parts, part), "tool-calls"
	}
	end := o.part(id, "step-finish", at)
	end.Reason, end.Cost, end.Tokens = finish, new(float64), &openCodeTokens{}
	info := openCodeAnswer{
		ID: id, Session: o.session.Info.ID, Role: "assistant", Time: openCodeTime{Created: milli, Completed: milli}, Parent: user, openCodeModel: o.model,
		Mode: openCodeBuild, Agent: openCodeBuild, Finish: finish,
	}
	info.Path.Folder, info.Path.Root = o.w.folder, o.w.folder
	o.session.Messages = append(o.session.Messages, openCodeMessage{info, append(parts, end)})
}
