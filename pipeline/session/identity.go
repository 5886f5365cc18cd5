package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
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
	if hint.Session != uuid.Nil {
		return hint.Session
	}
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

// Erased counts the deleted data of an end user.
type Erased struct {
	Sessions int64 // with their archive, search index, summaries and inserts
	Requests int64 // requests that no longer name the end user; their figures remain
	Answers  int64 // cached answers
	Patterns int64 // patterns found only in their sessions
}

// None reports whether all counts are zero.
func (e Erased) None() bool { return e == Erased{} }

// Add returns the sum of both.
func (e Erased) Add(other Erased) Erased {
	return Erased{e.Sessions + other.Sessions, e.Requests + other.Requests, e.Answers + other.Answers, e.Patterns + other.Patterns}
}

// Counts returns the counts by kind, as in the audit log.
func (e Erased) Counts() map[string]string {
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]string{"sessions": count(e.Sessions), "requests": count(e.Requests), "answers": count(e.Answers), "patterns": count(e.Patterns)}
}

// EraseAll deletes the data of end users in parts and returns the counts. Requests from before at are not
// recorded afterwards. Each part has its own transaction, in which note records it. The first part is
// recorded even if it is empty. After an error, another call continues.
func EraseAll(
	ctx context.Context, records Records, workspace tenants.WorkspaceID, users []string, at time.Time,
	together func(ctx context.Context, tenant tenants.Tenant, do func(tenant tenants.Tenant) error) error,
	note func(tenant tenants.Tenant, user string, erased Erased) error,
) (all Erased, err error) {
	for _, user := range users {
		for isFirst, isLast := true, false; !isLast; isFirst = false {
			var part Erased
			err := together(ctx, workspace, func(tenant tenants.Tenant) (err error) {
				if part, err = records.Erase(ctx, tenant, user, at); err != nil || part.None() && !isFirst {
					return err
				}
				return note(tenant, user, part)
			})
			if err != nil {
				return all, err
			}
			all, isLast = all.Add(part), part.None()
		}
	}
	return all, nil
}

// EndUserIDs returns the possible ids for a person's name of an end user: the hash of the application's own
// id, and the name itself if it has the form of an EndUserID.
func EndUserIDs(workspace tenants.WorkspaceID, name string) []string {
	ids := []string{EndUserID(workspace, name)}
	if IsEndUserID(name) {
		ids = append(ids, name)
	}
	return ids
}

// IsEndUserID reports whether an id has the form of an EndUserID.
func IsEndUserID(id string) bool {
	decoded, err := hex.DecodeString(id)
	return err == nil && len(decoded) == endUserBytes && strings.ToLower(id) == id
}

// endUserBytes is the length of the hash in an EndUserID.
const endUserBytes = 16

// EndUserID returns the id under which a workspace's end user is stored: 32 hexadecimal digits of a hash of
// the application's own id, or "" for "". The same person has different ids in two workspaces.
func EndUserID(workspace tenants.WorkspaceID, id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "end user|%s|%s", workspace, id))
	return hex.EncodeToString(sum[:endUserBytes])
}

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
