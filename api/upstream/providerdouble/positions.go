package providerdouble

import (
	"crypto/sha256"
	"encoding/json"
)

// position is a place of a prompt where a cached prefix may end.
type position struct {
	sum    [sha256.Size]byte // of everything up to its end
	tokens int               // o200k, of it alone
	cache  *cacheMarker
}

// positions lists a prompt in the order in which it is cached: tools, system,
// messages.
func (r *anthropicRequest) positions() []position {
	var list []position
	running := sha256.Sum256([]byte(r.modelID))
	add := func(label string, sum [sha256.Size]byte, tokens int, cache *cacheMarker) {
		running = chain(running).with(label, sum)
		list = append(list, position{sum: running, tokens: tokens, cache: cache})
	}
	for _, t := range r.tools {
		add("tool", t.sum, t.tokens, t.cache)
	}
	for _, b := range r.system {
		add("system", b.sum, b.tokens, b.cache)
	}
	running = chain(running).with("settings", r.settings())
	for i, m := range r.messages {
		overhead := messageTokens
		for _, b := range m.blocks {
			cache := b.cache
			for _, part := range b.inner {
				if cache == nil {
					cache = part.cache
				}
			}
			if r.isForgotten(i, b) {
				continue
			}
			add(m.role, b.sum, b.tokens+overhead, cache)
			overhead = 0
		}
	}
	if r.automatic != nil && len(list) > 0 && list[len(list)-1].cache == nil {
		list[len(list)-1].cache = r.automatic
	}
	return list
}

// settings is the sum of the members whose change invalidates the cache of the messages.
func (r *anthropicRequest) settings() [sha256.Size]byte {
	thinking, _ := objectMembers(r.members["thinking"])
	output, _ := objectMembers(r.members["output_config"])
	parts := []json.RawMessage{canonical(r.members["tool_choice"]), thinking["type"], thinking["budget_tokens"], output["effort"]}
	joined := []byte{}
	for _, part := range parts {
		joined = append(append(joined, part...), 0)
	}
	return sha256.Sum256(joined)
}

// positionList builds the positions of a prompt without markers.
type positionList struct {
	all     []position
	running chain
}

func newPositions(scope string) *positionList {
	return &positionList{running: sha256.Sum256([]byte(scope))}
}

func (l *positionList) add(label string, sum [sha256.Size]byte, tokens int) {
	l.running = l.running.with(label, sum)
	l.all = append(l.all, position{sum: l.running, tokens: tokens})
}
