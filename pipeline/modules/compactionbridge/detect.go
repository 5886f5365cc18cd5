package compactionbridge

import (
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/summary"
)

// The documented score of a request that may follow a compaction of an unknown client. It is
// computed only if a known session goes on with another history. Otherwise each new conversation
// that begins with "continue" would score.
const (
	fewMessages  = 0.4 // of a history of two messages at most
	markerFound  = 0.5 // a summary of a conversation
	shortAndRefs = 0.3 // few words that refer to earlier turns

	few       = 2
	shortText = 600 // characters
	headText  = 400 // characters in which a summary identifies itself
)

// marks match texts that sum up the conversation before them.
var marks = expression.New(`(?i)^[\W_]*(?:` +
	`(?:this|the) (?:session|conversation|chat) (?:is being|was|has been) (?:continued|compacted|summari[sz]ed|condensed)|` +
	`(?:here is|below is|the following is|this is) (?:a|the) (?:\w+ )?summary of (?:the|our|this|what|all|everything)|` +
	`(?:conversation|context|session|chat)(?: history)? (?:summary|was compacted|has been compacted|was summari[sz]ed|has been summari[sz]ed|checkpoint)\b|` +
	`summary of (?:the|our) (?:previous |earlier |prior )?(?:conversation|session|chat|work|context)|` +
	`(?:previous|earlier|prior) (?:conversation|session|context|messages) (?:summary|was|were|has been|have been)\b|` +
	`</?(?:conversation|context|session|compacted)?[-_]?summary>)`)

// references match words that refer to earlier turns.
var references = expression.New(`(?i)\b(?:continue|carry on|go on|resume|pick up|where (?:we|you) left off|as (?:we )?discussed|earlier|previous(?:ly)?)\b`)

// score returns the documented score between 0 and 1 of a request. A history without a summary
// scores 0, however short it is, because it is a new task.
func score(asked *pipeline.Conversation) (float64, error) {
	var texts []string
	messages := 0
	for i := range asked.Digests {
		if asked.Digests[i].Role == conversation.System {
			continue
		}
		if messages++; messages > few+2 {
			break // enough is known
		}
		message, err := asked.Message(i)
		if err != nil {
			return 0, err
		}
		for j := range message.Blocks {
			if block := &message.Blocks[j]; block.Kind == conversation.Text {
				texts = append(texts, strings.TrimSpace(summary.Plain(block.Text)))
			}
		}
	}
	sum, length := 0.0, 0
	found, refers := false, false
	for _, text := range texts {
		length += len(text)
		found = found || marks.MatchString(text[:min(len(text), headText)])
		refers = refers || references.MatchString(text[:min(len(text), headText)]) || references.MatchString(text[max(0, len(text)-headText):])
	}
	if !found {
		return 0, nil
	}
	sum += markerFound
	if messages <= few {
		sum += fewMessages
	}
	if length <= shortText && refers {
		sum += shortAndRefs
	}
	return min(sum, 1), nil
}
