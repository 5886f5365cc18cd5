package search

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// WithoutRecalls returns messages without the calls of the product's own archive tools and their results, and
// whether there were any. The messages keep their places.
func WithoutRecalls(messages []conversation.Message) (others []conversation.Message, had bool) {
	recalls := recallsIn(messages)
	if len(recalls) == 0 {
		return messages, false
	}
	others = slices.Clone(messages)
	for i := range others {
		j := -1
		others[i].Blocks = slices.DeleteFunc(slices.Clone(others[i].Blocks), func(conversation.Block) bool {
			j++
			return recalls[place{i, j}]
		})
	}
	return others, true
}

// recallsIn returns the places of recalls and of their results.
func recallsIn(messages []conversation.Message) map[place]bool {
	var recalls map[place]bool
	var results answers
	for i := range messages {
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if block.Kind != conversation.ToolCall || !isRecall(block.Name) {
				continue
			}
			if recalls == nil {
				recalls, results = map[place]bool{}, resultsOf(messages)
			}
			recalls[place{i, j}] = true
			if at, answered := results.of(i, block.ID); answered {
				recalls[at] = true
			}
		}
	}
	return recalls
}

// isRecall reports whether a tool is one of the product's own archive tools, with or without the server's
// name that clients put in front: "mcp__palimpsest__recall_search".
func isRecall(tool string) bool {
	for _, own := range []string{"recall_search", "recall_get"} {
		if server, found := strings.CutSuffix(tool, own); found && (server == "" || strings.Contains(server, "palimpsest")) {
			return true
		}
	}
	return false
}
