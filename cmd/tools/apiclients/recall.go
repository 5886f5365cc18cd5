package apiclients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"palimpsest/api/upstream/providerdouble"
)

// recalledLine is a line of a part that shortened prompts do not hold.
const recalledLine = "Part 2, line 40:"

// recallCase is the case in which the model looks up content that its prompt lost.
func recallCase() Case {
	return Case{
		Name: "recall", window: windowSize, recalls: true, says: says("Read all parts, one after the other, and then look up what you lost."),
		play: recallLine, judge: recalled,
	}
}

// recallTools is an MCP client's configuration of the proxy's recall tools.
type recallTools struct {
	Servers map[string]recallServer `json:"mcpServers,omitempty"`
}

type recallServer struct {
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// recallTools returns the configuration for the session's proxy.
func (s *session) recallTools() recallTools {
	return recallTools{Servers: map[string]recallServer{
		"palimpsest": {Type: "http", URL: s.url + "/mcp", Headers: map[string]string{"Authorization": "Bearer " + s.key}},
	}}
}

// recallSettings returns the configuration as JSON.
func (s *session) recallSettings() (string, error) {
	settings, err := json.Marshal(s.recallTools())
	if err != nil {
		return "", fmt.Errorf("settings of the recall tools: %w", err)
	}

	return string(settings), nil
}

// recallGuide is the section of docs/clients.md with the recall tools.
const recallGuide = "Recall tools (MCP)"

// recallInput is the input of a recall tool: a search in the file of the wanted line, or a pointer.
func recallInput(tool, name, wanted string) providerdouble.Call {
	if tool == "recall_get" {
		return call(name, getInput{Pointer: wanted})
	}

	return call(name, searchInput{Query: wanted, Path: partFile(2)})
}

// searchInput and getInput are the inputs of the recall tools.
type searchInput struct {
	Query string `json:"query"`
	Path  string `json:"path"`
}

type getInput struct {
	Pointer string `json:"pointer"`
}

// recallLine reads all parts, searches for the line, reads the hit by the prompt's name for its archive,
// and repeats the line.
func recallLine(m *model, round int, r providerdouble.Request) providerdouble.Reply {
	switch round - parts {
	case 1:
		return providerdouble.Reply{Text: "I search.", Calls: []providerdouble.Call{m.client.recall("recall_search", recalledLine)}}
	case 2:
		hit := regexp.MustCompile(`([a-z2-7]{8})#(\d+)(?:–#(\d+))?`).FindStringSubmatch(lastOf(r.Results))
		name := regexp.MustCompile(`of archive ([a-z2-7]{8})`).FindSubmatch(r.Body)
		if hit == nil || name == nil {
			return providerdouble.Reply{Text: fmt.Sprintf("Found nothing to point to: hit %q, name %q, result %.300s", hit, name, lastOf(r.Results))}
		}
		archive := string(name[1])
		if m.client.masks {
			archive = hit[1] // the prompt's has the result as the client cut it
		}
		pointer := archive + "#" + cmp.Or(hit[3], hit[2])

		return providerdouble.Reply{Text: "I read it.", Calls: []providerdouble.Call{m.client.recall("recall_get", pointer)}}
	case 3:
		return providerdouble.Reply{Text: finalWord + ". It says: " + lineIn(lastOf(r.Results))}
	default:
		return readParts(parts)(m, round, r)
	}
}

// lineIn returns the line from a text, which may be JSON.
func lineIn(text string) string {
	_, line, _ := strings.Cut(text, recalledLine)
	line, _, _ = strings.Cut(line, ".")

	return recalledLine + line + "."
}

// recalled requires the exact line of the part, from a session that has lost it.
func recalled(t *Trial) (string, error) {
	last := t.Outputs[len(t.Outputs)-1]
	if !strings.Contains(last.Text, lineIn(partText(2))) {
		return "", fmt.Errorf("the client did not recall the line (%w): %.500s", errors.Join(errors.New("it printed something else"), last.Err), last.Text)
	}
	for _, request := range t.Received {
		if strings.Contains(string(request.Body), recordMark) {
			return "", nil
		}
	}

	return "", errors.New("nothing was folded, so nothing had to be recalled")
}

// threadsCase is the case of a client that sends only the new messages of its conversation.
const threadsCase = "message threads past the window"

// threads is the case of Claude Code's behavior without a proxy: the provider holds the conversation, until
// the proxy asks for all of it.
func threads() Case {
	return Case{
		Name: threadsCase, window: windowSize, threads: true, only: claudeCodePackage,
		says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentOnWhole,
	}
}

// wentOnWhole requires that the client continued its thread, was asked for the whole conversation, and
// still worked past its window.
func wentOnWhole(t *Trial) (string, error) {
	whole := *t
	whole.Exchanges = slices.DeleteFunc(slices.Clone(t.Exchanges), Exchange.isAskedForTheWhole)
	if len(whole.Exchanges) == len(t.Exchanges) {
		return "", errors.New("the client went on with no thread: it does not do what the case is about")
	}

	return wentPastTheWindow(&whole)
}

// isAskedForTheWhole reports whether the proxy told the client that its thread is gone.
func (e Exchange) isAskedForTheWhole() bool {
	return e.Status == http.StatusNotFound && strings.Contains(e.Refusal, `"thread_not_found"`) && bytes.Contains(e.Body, []byte(`"continue"`))
}

// receivedUnheld reports whether the provider received a request that begins a thread, without the request
// to hold it.
func (t *Trial) receivedUnheld(exchange Exchange) bool {
	unheld := bytes.Replace(exchange.Body, []byte(`"thread":{"type":"create"}`), []byte(`"thread":null`), 1)

	return t.Case.threads && slices.ContainsFunc(t.Received, func(request providerdouble.Recorded) bool { return bytes.Equal(request.Body, unheld) })
}
