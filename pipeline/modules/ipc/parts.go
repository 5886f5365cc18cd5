package ipc

import (
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// parts are a projection's parts in order.
type parts []session.Part

// add appends parts. It merges a part of the client's own bytes into the previous part if that one
// precedes it directly at the same level.
func (p *parts) add(more ...session.Part) {
	for _, part := range more {
		if part.From == part.To {
			continue
		}
		if n := len(*p); n > 0 && part.Raw == nil {
			if last := &(*p)[n-1]; last.Raw == nil && last.Level == part.Level {
				last.To, last.Tokens, last.Messages = part.To, last.Tokens+part.Tokens, last.Messages+part.Messages
				continue
			}
		}
		*p = append(*p, part)
	}
}

// endWithSystem reports whether the last message so far is a system message within the
// conversation, which an answer must follow.
func (p *parts) endWithSystem(digests []conversation.Digest) bool {
	if len(*p) == 0 {
		return false
	}
	last := (*p)[len(*p)-1]
	return last.Raw == nil && last.To > conversation.Lead(digests) && digests[last.To-1].Role == conversation.System
}
