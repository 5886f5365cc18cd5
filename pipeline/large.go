package pipeline

import (
	"encoding/json"
	"slices"
	"sync"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// largeMessage is the size in bytes from which a parsed message is kept for the next module, because each
// parse copies all its texts.
const largeMessage = 1 << 20

// largeMessages caches the parsed large messages of a body. They are safe for concurrent use.
type largeMessages struct {
	mu     sync.Mutex
	parsed map[int]conversation.Message
}

// KeepLarge makes the exchange parse each large message of its body only once. The body must not change
// afterwards.
func (e *Exchange) KeepLarge() {
	e.large = &largeMessages{parsed: make(map[int]conversation.Message)}
}

// message returns message i. The caller owns its blocks.
func (l *largeMessages) message(i int, raw json.RawMessage, codec wire.Codec) (conversation.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	message, known := l.parsed[i]
	if !known {
		var err error
		if message, err = codec.Parse(raw); err != nil {
			return conversation.Message{}, err
		}
		l.parsed[i] = message
	}
	message.Blocks = slices.Clone(message.Blocks)
	return message, nil
}
