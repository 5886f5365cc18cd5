package gemini

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// The tools that Google runs, named as in the Interactions API and the catalog.
const (
	googleSearch  = "google_search"
	googleMaps    = "google_maps"
	codeExecution = "code_execution"
	urlContext    = "url_context"
	fileSearch    = "file_search"
)

// toolUses collects the uses of Google's tools in an answer. Usage has counts of what is charged for only in
// some answers; otherwise they follow from the grounding (https://ai.google.dev/gemini-api/docs/google-search).
type toolUses struct {
	billed  map[string]int  // by the usage
	queries map[string]bool // of Google Search; each counts once, and empty ones don't
	pages   map[string]bool // read by their address
	seen    map[string]int  // other uses
}

// readUsage reads the counts of a usage.
func (u *toolUses) readUsage(usage json.RawMessage) {
	calls := wire.Elements(wire.Get(usage, "billedToolCalls"))
	counts := map[string]int{}
	for _, call := range calls {
		counts[toolNamed(wire.Text(call, "tool"))] += count(wire.Get(call, "successfulToolCallCount"))
	}
	if delete(counts, ""); len(counts) > 0 {
		u.billed = counts
	}
}

// toolNamed returns the catalog's name of a tool: "GOOGLE_SEARCH_RETRIEVAL" and "google_search" are the same.
func toolNamed(name string) string {
	name = strings.ToLower(name)
	for _, known := range []string{googleSearch, googleMaps} {
		if strings.HasPrefix(name, known) {
			return known
		}
	}
	return name
}

// readCandidate reads what a candidate says about its sources.
func (u *toolUses) readCandidate(candidate json.RawMessage) {
	for name, value := range wire.Members(candidate) {
		switch string(name) {
		case "groundingMetadata":
			u.readGrounding(value)
		case "urlContextMetadata":
			for _, page := range wire.Elements(wire.Get(value, "urlMetadata")) {
				note(&u.pages, wire.Text(page, "retrievedUrl"))
			}
		}
	}
}

func (u *toolUses) readGrounding(grounding json.RawMessage) {
	for _, raw := range wire.Elements(wire.Get(grounding, "webSearchQueries")) {
		query, _ := wire.String(raw)
		note(&u.queries, query)
	}
	for _, chunk := range wire.Elements(wire.Get(grounding, "groundingChunks")) {
		for name := range wire.Members(chunk) {
			switch string(name) {
			case "web":
				u.see(googleSearch, 1)
			case "maps":
				u.see(googleMaps, 1)
			case "retrievedContext":
				u.see(fileSearch, 1)
			}
		}
	}
}

// readPart reads a part in which the model runs code, or calls a tool of Google.
func (u *toolUses) readPart(raw json.RawMessage) {
	for name, value := range wire.Members(raw) {
		switch string(name) {
		case "executableCode":
			u.see(codeExecution, u.seen[codeExecution]+1)
		case "toolCall":
			if toolNamed(wire.Text(value, "toolType")) == googleSearch {
				for _, query := range wire.Elements(wire.Get(wire.Get(value, "args"), "queries")) {
					said, _ := wire.String(query)
					note(&u.queries, said)
				}
			}
		}
	}
}

func (u *toolUses) see(tool string, uses int) {
	if u.seen == nil {
		u.seen = map[string]int{}
	}
	u.seen[tool] = uses
}

func note(set *map[string]bool, value string) {
	if value = strings.TrimSpace(value); value == "" {
		return
	}
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[value] = true
}

// tell adds the uses to an answer.
func (u *toolUses) tell(answer *wire.Answer) {
	for tool, uses := range u.seen {
		answer.Use(tool, uses)
	}
	if len(u.queries) > 0 {
		answer.Use(googleSearch, len(u.queries))
	}
	if len(u.pages) > 0 {
		answer.Use(urlContext, len(u.pages))
	}
	for tool, uses := range u.billed {
		answer.Use(tool, uses)
	}
}
