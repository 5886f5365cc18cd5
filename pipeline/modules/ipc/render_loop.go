package ipc

import (
	"encoding/json"

	"palimpsest/pipeline/session"
)

// opened moves the records that follow the loop's opener before it.
func (r *renderer) opened(all parts) parts {
	if r.protection.loop < 0 {
		return all
	}
	t := r.history.turns[r.protection.loop]
	all = r.split(r.split(all, t.verbatim), t.To)
	front := session.Part{From: t.verbatim, To: t.To, Level: t.level, Raw: json.RawMessage{}}
	for i := range all {
		if part := &all[i]; part.From >= t.To && part.Level >= 2 && len(part.Raw) > 0 {
			front.Join(part.Raw, part.Messages, part.Tokens)
			part.Raw, part.Messages, part.Tokens = json.RawMessage{}, 0, 0
		}
	}
	if front.Messages == 0 {
		return all
	}
	var moved parts
	for _, part := range all {
		if part.From < t.verbatim || part.To > t.To {
			moved.add(part)
			continue
		}
		for i := part.From; part.Raw == nil && i < part.To; i++ {
			front.Join(r.history.exchange.UnmarkedWithInserts(i), 1, r.history.originals(i, i+1))
		}
		if part.Raw != nil {
			front.Join(part.Raw, part.Messages, part.Tokens)
		}
		if part.To == t.To {
			moved.add(front)
		}
	}
	return moved
}

// split splits the parts at a message, so that no part of the client's own bytes spans it.
func (r *renderer) split(all parts, at int) parts {
	for i, part := range all {
		if part.Raw != nil || part.From >= at || part.To <= at {
			continue
		}
		before, after := r.history.untouched(part.From, at, part.Level), r.history.untouched(at, part.To, part.Level)
		return append(append(append(parts{}, all[:i]...), before, after), all[i+1:]...)
	}
	return all
}
