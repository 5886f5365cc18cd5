package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/wire"
)

const (
	// newestMemory bounds the memory of remembered newest messages, in bytes.
	newestMemory = 16 << 20
	// knownRewritten bounds how many rewritten messages are remembered.
	knownRewritten = 200_000
	// comparedWords is how many words of a message are compared.
	comparedWords = 4096
)

// rewritings recognizes messages that clients change once they are answered. Some clients put open files, the
// time or the state of an editor into the newest message, and leave it out when they send the message again.
type rewritings struct {
	newest *localcache.Cache[[32]byte, newest]            // by the link of the history before it
	first  *localcache.Cache[[32]byte, conversation.Hash] // original identity of a message, by the link after the rewritten one
}

// newest is the remembered newest message of a request.
type newest struct {
	identity conversation.Hash
	besides  uint64   // hash of everything except text
	words    []uint32 // of its texts, in order
}

func newRewritings() (*rewritings, error) {
	messages, err := localcache.New[[32]byte](localcache.Options[newest]{
		MaximumWeight: newestMemory,
		Weigher:       func(n newest) uint32 { return uint32(160 + 4*cap(n.words)) }, //nolint:gosec // comparedWords at most
	})
	if err != nil {
		return nil, fmt.Errorf("newest messages: %w", err)
	}
	first, err := localcache.New[[32]byte](localcache.Options[conversation.Hash]{MaximumSize: knownRewritten})
	if err != nil {
		return nil, fmt.Errorf("rewritten messages: %w", err)
	}
	return &rewritings{newest: messages, first: first}, nil
}

// Follow returns the messages of a history and its links with their original identities, so that a message
// that its client has rewritten since counts as the same one. read returns message i. The caller must not
// change the results.
func (r *Resolver) Follow(ctx context.Context, scope Scope, hint Hint, messages []conversation.Digest, read func(i int) (conversation.Message, error)) ([]conversation.Digest, []conversation.Hash) {
	chain := r.Chain(scope, hint, messages)
	isCopied := false
	for i := range messages {
		if isCopied {
			chain[i+1] = conversation.Extend(chain[i], messages[i].Identity)
		}
		if messages[i].Role != conversation.User || i+1 == len(messages) || !isAnswer(messages[i+1]) {
			continue
		}
		first, isRewritten := r.firstOf(ctx, scope, messages, chain, i, read)
		if !isRewritten {
			continue
		}
		if !isCopied {
			messages, chain, isCopied = slices.Clone(messages), slices.Clone(chain), true
		}
		messages[i].Identity, chain[i+1] = first, conversation.Extend(chain[i], first)
	}
	return messages, chain
}

// firstOf returns the original identity of message i of a history, and whether the message is rewritten.
func (r *Resolver) firstOf(ctx context.Context, scope Scope, messages []conversation.Digest, chain []conversation.Hash, i int, read func(i int) (conversation.Message, error)) (conversation.Hash, bool) {
	link := chain[i+1]
	if _, isKnown := r.heads.Get(link); isKnown {
		return conversation.Hash{}, false
	}
	if first, isKnown := r.first.Get(link); isKnown {
		return first, true
	}
	before, isKnown := r.newest.Get(chain[i])
	if !isKnown || before.identity == messages[i].Identity {
		return conversation.Hash{}, false
	}
	message, err := read(i)
	if err != nil || !before.isSaidBy(newestOf(messages[i].Identity, &message)) {
		return conversation.Hash{}, false
	}
	if r.shared { // another process may know it as a separate message
		asking, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		if _, err := r.store.Stands(asking, scope.Workspace, []conversation.Hash{link}); !errors.Is(err, ErrNotFound) {
			return conversation.Hash{}, false
		}
	}
	r.first.Set(link, before.identity)
	return before.identity, true
}

// Remember keeps the newest message of a resolved request, since its client may rewrite it.
func (r *Resolver) Remember(messages []conversation.Digest, chain []conversation.Hash, read func(i int) (conversation.Message, error)) {
	last := len(messages) - 1
	if last < 0 || messages[last].Role != conversation.User {
		return
	}
	if message, err := read(last); err == nil {
		r.newest.Set(chain[last], newestOf(messages[last].Identity, &message))
	}
}

// newestOf returns the remembered form of a message.
func newestOf(identity conversation.Hash, message *conversation.Message) newest {
	made := newest{identity: identity}
	besides := conversation.Message{Role: message.Role}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text {
			besides.Blocks = append(besides.Blocks, *block)
			continue
		}
		if len(made.words) == comparedWords {
			continue
		}
		for word := range strings.FieldsSeq(conversation.Lasting(block.Text)) {
			if len(made.words) == comparedWords {
				break
			}
			made.words = append(made.words, uint32(xxh3.HashString(word))) //nolint:gosec // a part of the hash
		}
	}
	if len(besides.Blocks) > 0 {
		made.besides = xxh3.Hash(wire.Normalize(besides))
	}
	return made
}

// isSaidBy reports whether now is n without some of its words, in the same order. now is an answered message
// in the place of n. Since n includes all of now, the archive has every word of both.
func (n newest) isSaidBy(now newest) bool {
	if n.besides != now.besides || len(now.words) == 0 && now.besides == 0 {
		return false
	}
	next := 0
	for _, word := range now.words {
		i := slices.Index(n.words[next:], word)
		if i < 0 {
			return false
		}
		next += i + 1
	}
	return true
}
