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

// Erased counts what was deleted of an end user.
type Erased struct {
	Sessions int64 // with their archive, search index, summaries and inserts
	Requests int64 // that name the end user no more; their figures stay
	Answers  int64 // that were kept for the same question
	Patterns int64 // that only their sessions have shown
}

// None reports whether nothing was deleted.
func (e Erased) None() bool { return e == Erased{} }

// Add returns the sum of both.
func (e Erased) Add(other Erased) Erased {
	return Erased{e.Sessions + other.Sessions, e.Requests + other.Requests, e.Answers + other.Answers, e.Patterns + other.Patterns}
}

// Counts returns the counts by what was deleted, as the audit log has them.
func (e Erased) Counts() map[string]string {
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]string{"sessions": count(e.Sessions), "requests": count(e.Requests), "answers": count(e.Answers), "patterns": count(e.Patterns)}
}

// EraseAll deletes what is kept of end users, part by part, and returns of what. Of their requests from before a time
// nothing is recorded any more. Each part has a transaction of its own, in which note notes it: also that there was nothing.
// After an error, calling it again goes on.
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

// EndUserIDs returns the ids that someone may mean who names an end user: by the application's own id, or
// by the id of EndUserID, which may look like one of an application.
func EndUserIDs(workspace tenants.WorkspaceID, name string) []string {
	ids := []string{EndUserID(workspace, name)}
	if IsEndUserID(name) {
		ids = append(ids, name)
	}
	return ids
}

// IsEndUserID reports whether an id has the form of those that EndUserID returns.
func IsEndUserID(id string) bool {
	decoded, err := hex.DecodeString(id)
	return err == nil && len(decoded) == endUserBytes && strings.ToLower(id) == id
}

// endUserBytes is how much of the hash names an end user.
const endUserBytes = 16

// EndUserID returns the id by which a workspace's end user is stored and told from others: 32
// hexadecimal digits of a hash of the application's own id; "" for "". Two workspaces store the same
// person under different ids.
func EndUserID(workspace tenants.WorkspaceID, id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "end user|%s|%s", workspace, id))
	return hex.EncodeToString(sum[:endUserBytes])
}
