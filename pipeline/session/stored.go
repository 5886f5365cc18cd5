package session

import "github.com/google/uuid"

// knownAnswers bounds how many answers that providers store are remembered with their sessions.
const knownAnswers = 50_000

// Answered remembers the session of an answer that its provider stores under an id.
func (r *Resolver) Answered(scope Scope, id string, session uuid.UUID) {
	r.answers.Set(answerKey(scope, id), session)
}

// Continue returns the hint of a request that continues a stored answer, with the answer's session if this
// process knows it. Otherwise requests that continue the same answer share a session named after it. A name of
// the client's own comes first.
func (r *Resolver) Continue(scope Scope, hint Hint, answer string) Hint {
	if hint.Name == answer {
		hint.Session, _ = r.answers.Get(answerKey(scope, answer))
	}
	return hint
}

func answerKey(scope Scope, id string) [32]byte { return root(scope, id, "answer") }
