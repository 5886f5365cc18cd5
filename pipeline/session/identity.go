package session

import (
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// openingID returns the id of the lane that an unknown history opens. It is the same for the same request on
// any process. A history without an answer and without a session name may begin many times, so its id is new
// each time.
func openingID(hint Hint, messages []conversation.Digest, chain []conversation.Hash) uuid.UUID {
	if hint.Kind == Side || hint.Name == "" && !answered(messages) {
		return newID()
	}
	return named("lane", chain[len(messages)])
}

// forkID returns the id of the lane for a request that leaves another lane's history. It is the same for the
// same request on any process.
func forkID(from uuid.UUID, kind Kind, link conversation.Hash) uuid.UUID {
	if kind == Side {
		return newID()
	}
	return named(fmt.Sprintf("fork of %s, %s", from, kind), link)
}

// sessionID returns the id of the session that a lane opens. It is the same for every request with the same
// name in the same scope.
func sessionID(scope Scope, hint Hint, lane uuid.UUID) uuid.UUID {
	if hint.Name == "" {
		return named("session", conversation.Hash(sha256.Sum256(lane[:])))
	}
	return idOf(root(scope, hint.Name, ""))
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// named returns the id that belongs to a link.
func named(what string, link conversation.Hash) uuid.UUID {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s|%x", what, link)
	return idOf(conversation.Hash(hash.Sum(nil)))
}

func idOf(hash conversation.Hash) uuid.UUID {
	id := uuid.UUID(hash[:16])
	id[6] = id[6]&0x0f | 0x80 // version 8: custom
	id[8] = id[8]&0x3f | 0x80
	return id
}

// answersIn returns how many answers messages hold, counting a run of model messages once.
func answersIn(messages []conversation.Digest) int {
	answers := 0
	for i := range messages {
		if isAnswer(messages[i]) && (i == 0 || !isAnswer(messages[i-1])) {
			answers++
		}
	}
	return answers
}
