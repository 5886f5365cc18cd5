package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"palimpsest/tenants"
)

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
