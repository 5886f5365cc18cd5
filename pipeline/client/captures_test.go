package client_test

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/wire"
)

// lanes remembers which histories were sent, as a session does.
type lanes struct {
	seen    map[[sha256.Size]byte]bool // every beginning of every request
	windows int
	asked   bool
}

// known returns what is known of a request's lane and takes the request in.
func (l *lanes) known(body *wire.Envelope, class client.Class) client.Known {
	if l.seen == nil {
		l.seen = map[[sha256.Size]byte]bool{}
	}
	known, link := client.Known{Windows: l.windows, Asked: l.asked}, [sha256.Size]byte{}
	for i := range body.Len() {
		link = sha256.Sum256(append(link[:], withoutMarkers(body.Element(i))...))
		if l.seen[link] {
			known.Messages = i + 1
		}
		if !class.IsSide() {
			l.seen[link] = true
		}
	}
	l.asked = class.Kind == client.Compaction
	l.windows = max(l.windows, class.Window+1)
	return known
}

// withoutMarkers returns a message without its cache markers, which move.
func withoutMarkers(element json.RawMessage) []byte {
	return []byte(strings.NewReplacer(`,"cache_control":{"type":"ephemeral"}`, "", `, "cache_control": {"type": "ephemeral"}`, "").Replace(string(element)))
}

// replay classifies the requests of a case one after another.
func replay(t *testing.T, name string, without ...string) []client.Class {
	t.Helper()
	var memory lanes
	var classes []client.Class
	for _, request := range pipelinetest.Captures(t, name) {
		envelope := open(t, codecAt(strings.TrimPrefix(request.Path, "/w/ws1")), request.Body)
		class := client.Classify(request.HeaderWithout(without...), request.Path, envelope)
		classes = append(classes, class.Finalize(memory.known(envelope, class)))
	}
	return classes
}

// kinds returns what the requests of a case are for.
func kinds(classes []client.Class) string {
	var words []string
	for _, class := range classes {
		words = append(words, string(class.Kind))
	}
	return strings.Join(words, ",")
}

// W43, W44: every request of Claude Code, with its hint headers and without.
func TestClaudeCodesRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"claude-code/01-tool-turn":                 "main,main",
		"claude-code/02-manual-compact":            "main,main,main,compaction,after-compaction",
		"claude-code/03-auto-compact":              "main,main,compaction,after-compaction,compaction,after-compaction",
		"claude-code/05-prompt-too-long-reactive":  "main,main,main,main,compaction,after-compaction,main",
		"claude-code/06-subagent":                  "main,main,subagent,main",
		"claude-code/07-hint-headers-auth-token":   "main,main,main,subagent,main,main",
		"claude-code/08-hint-headers-compact":      "main,main,compaction,after-compaction",
		"claude-code/09-hint-headers-auto-compact": "main,main,compaction,after-compaction,compaction,after-compaction",
	} {
		for _, without := range [][]string{nil, {"x-claude-code-request", "x-claude-code-compaction", "x-claude-code-context", "x-claude-1p"}} {
			classes := replay(t, name, without...)
			if got := kinds(classes); got != want {
				t.Errorf("%s without %v:\n got %s\nwant %s", name, without, got, want)
			}
			for i, class := range classes {
				if class.Client != client.ClaudeCode || class.Kind == client.AfterCompaction && class.Marker.Boundary != 0 {
					t.Errorf("%s, request %d: %+v", name, i+1, class)
				}
			}
		}
	}
}

// W43: the headers say how the compaction came about.
func TestClaudeCodesHintsAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	byHand := replay(t, "claude-code/08-hint-headers-compact")
	if got := byHand[2]; got.Trigger != client.Manual || got.Confidence != 1 || got.Source != "header x-claude-code-compaction" {
		t.Errorf("asked by hand: %+v", got)
	}
	if got := byHand[3]; got.Trigger != client.Manual || got.Source != "text" {
		t.Errorf("after it: %+v", got)
	}
	byItself := replay(t, "claude-code/09-hint-headers-auto-compact")
	for _, i := range []int{2, 4} {
		if asks, goesOn := byItself[i], byItself[i+1]; asks.Trigger != client.Auto || goesOn.Trigger != client.Auto || goesOn.Source != "header x-claude-code-context-compacted" {
			t.Errorf("requests %d and %d: %+v, %+v", i+1, i+2, asks, goesOn)
		}
	}
}

// W44: the marker lies behind reminders, and the kept tail is behind it.
func TestReactiveCompactionLeavesItsTailBehindTheBoundary(t *testing.T) {
	t.Parallel()
	requests := pipelinetest.Captures(t, "claude-code/05-prompt-too-long-reactive")
	codec := codecAt(requests[5].Path)
	envelope := open(t, codec, requests[5].Body)
	class := client.Classify(requests[5].HeaderWithout(), requests[5].Path, envelope)
	if class.Marker.Boundary != 0 || envelope.Len() != 5 {
		t.Errorf("marker %+v of %d messages", class.Marker, envelope.Len())
	}
}

// W45: the windows count up; the sealed item is the boundary.
func TestCodexRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		kinds    string
		windows  []int
		boundary []int
	}{
		"codex/01-basic":                          {"main,main,main", []int{0, 0, 0}, []int{-1, -1, -1}},
		"codex/02-auto-compact":                   {"main,compaction,after-compaction,compaction,after-compaction", []int{0, 0, 1, 1, 2}, []int{-1, -1, 4, 4, 4}},
		"codex/04-openai-provider-remote-compact": {"main,compaction,after-compaction,compaction,after-compaction", []int{0, 0, 1, 1, 2}, []int{-1, -1, 4, 4, 4}},
	} {
		for _, without := range [][]string{nil, {"x-codex"}} {
			classes := replay(t, name, without...)
			if got := kinds(classes); got != want.kinds {
				t.Errorf("%s without %v:\n got %s\nwant %s", name, without, got, want.kinds)
			}
			for i, class := range classes {
				if class.Window != want.windows[i] || class.Marker.Boundary != want.boundary[i] || class.Client != client.Codex {
					t.Errorf("%s without %v, request %d: %+v", name, without, i+1, class)
				}
			}
		}
	}
}

// W46, W38: the clients that say nothing in headers.
func TestRequestsOfOtherClientsAreToldApart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ kinds, client string }{
		"pi/01-basic-compact":             {"main,main,main,compaction,after-compaction,main,main,main,compaction,after-compaction,main,main", client.Pi},
		"pi/02-builtin-anthropic-v1-base": {"main", client.Pi},
		"opencode/01-basic":               {"title,main,main,title,main,main,title,main,main", client.OpenCode},
		"opencode/02-autocompact-errors":  {"title,main,compaction", client.OpenCode},
		"cline/01-basic":                  {"main", client.Cline},
		"cline/02-errors":                 {"main,main,main", client.Cline},
	} {
		classes := replay(t, name)
		if got := kinds(classes); got != want.kinds {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want.kinds)
		}
		for i, class := range classes {
			compacted := class.Client == client.Pi && class.Kind == client.Compaction
			if class.Client != want.client && !compacted {
				t.Errorf("%s, request %d is %s's", name, i+1, class.Client)
			}
		}
	}
	for i, class := range replay(t, "sdk-js/01-basic") {
		if wanted := map[bool]client.Kind{true: client.Compaction, false: client.Unknown}[i == 5]; class.Kind != wanted || class.Client != client.AnthropicSDK && class.Client != client.OpenAISDK {
			t.Errorf("sdk-js, request %d: %+v", i+1, class)
		}
	}
}
