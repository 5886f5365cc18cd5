package tenantsdb_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"palimpsest/tenants"
)

// world is who may do what in a workspace, as a model and as the database has it.
type world struct {
	b         bundle
	ctx       context.Context
	workspace tenants.WorkspaceID
	joined    []uuid.UUID // people in the order in which they joined
	roles     map[uuid.UUID]tenants.Role
	keys      []*modelKey
}

type modelKey struct {
	id              uuid.UUID
	hash            []byte
	scopes          []tenants.Scope
	creator, behind uuid.UUID
	revoked         bool
}

// caller is a person or a key that tries something.
type caller struct {
	person uuid.UUID
	key    *modelKey // nil: the person is logged in
}

func (by caller) String() string {
	if by.key != nil {
		return "key " + by.key.id.String()
	}
	return "person " + by.person.String()
}

// canUse is the model's table of scopes and roles.
func canUse(role tenants.Role, scope tenants.Scope) bool {
	switch scope {
	case tenants.ScopeManage:
		return role == tenants.Owner || role == tenants.Admin
	case tenants.ScopeProxy:
		return role == tenants.Owner || role == tenants.Admin || role == tenants.Regular
	default:
		return role == tenants.Owner || role == tenants.Admin || role == tenants.Regular || role == tenants.Viewer
	}
}

// usable returns the scopes that a key may use.
func (w *world) usable(key *modelKey) []tenants.Scope {
	var scopes []tenants.Scope
	for _, scope := range key.scopes {
		if canUse(w.roles[key.behind], scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// acts returns the role that a caller acts in; empty if none.
func (w *world) acts(by caller) tenants.Role {
	if by.key == nil {
		return w.roles[by.person]
	}
	if !by.key.revoked && slices.Contains(w.usable(by.key), tenants.ScopeManage) {
		return tenants.Admin
	}
	return ""
}

func manages(role tenants.Role) bool { return role == tenants.Owner || role == tenants.Admin }

func (w *world) owners() int {
	count := 0
	for _, role := range w.roles {
		if role == tenants.Owner {
			count++
		}
	}
	return count
}

// as returns a context in which a caller acts.
func (w *world) as(by caller) context.Context {
	if by.key != nil {
		return tenants.WithActor(w.ctx, tenants.Actor{APIKey: by.key.id})
	}
	return tenants.WithActor(w.ctx, tenants.Actor{User: by.person})
}

// behind returns the person behind a caller.
func (by caller) behind() uuid.UUID {
	if by.key != nil {
		return by.key.behind
	}
	return by.person
}

func (w *world) create(t *rapid.T, by caller) (may bool, err error) {
	scopes := rapid.SliceOfNDistinct(rapid.SampledFrom([]tenants.Scope{tenants.ScopeProxy, tenants.ScopeRecall, tenants.ScopeRead, tenants.ScopeManage}),
		1, 4, rapid.ID).Draw(t, "scopes")
	key := &modelKey{id: uuid.New(), hash: []byte(uuid.NewString()), scopes: scopes, creator: by.behind(), behind: by.behind()}
	role := w.acts(by)
	may = role == tenants.Regular || manages(role)
	for _, scope := range scopes {
		may = may && canUse(role, scope)
	}
	// Whatever is said of who created it, who asks did.
	stored := tenants.APIKey{ID: key.id, Workspace: w.workspace, Name: "key", Scopes: scopes, CreatedBy: w.joined[0], APIKeyTimes: tenants.APIKeyTimes{CreatedAt: now()}}
	err = w.b.APIKeys.CreateAPIKey(w.as(by), w.workspace, stored, key.hash)
	if may {
		w.keys = append(w.keys, key)
	}
	return may, err
}

// mayChange reports whether a caller may change a key.
func (w *world) mayChange(by caller, key *modelKey) bool {
	role := w.acts(by)
	return manages(role) || role == tenants.Regular && key.creator == by.behind()
}

func (w *world) rotate(t *rapid.T, by caller) (may bool, err error) {
	key := w.anyKey(t)
	may = !key.revoked && w.mayChange(by, key)
	for _, scope := range key.scopes {
		may = may && canUse(w.acts(by), scope)
	}
	hash := []byte(uuid.NewString())
	err = w.b.APIKeys.RotateAPIKey(w.as(by), w.workspace, key.id, tenants.Rotation{Prefix: "plm", Suffix: "abcd", Hash: hash, OldUntil: now()})
	if may {
		key.hash, key.behind = hash, by.behind()
	}
	return may, err
}

func (w *world) revoke(t *rapid.T, by caller) (may bool, err error) {
	key := w.anyKey(t)
	may = w.mayChange(by, key) || by.key == key && !key.revoked // every key that works ends itself
	err = w.b.APIKeys.RevokeAPIKey(w.as(by), w.workspace, key.id)
	key.revoked = key.revoked || may
	return may, err
}

func (w *world) changeRole(t *rapid.T, by caller) (may bool, err error) {
	of := rapid.SampledFrom(w.joined).Draw(t, "of")
	to := rapid.SampledFrom(append(tenants.Roles(), "operator")).Draw(t, "to")
	from, role := w.roles[of], w.acts(by)
	may = from != "" && slices.Contains(tenants.Roles(), to) && (role == tenants.Owner || role == tenants.Admin && from != tenants.Owner && to != tenants.Owner)
	may = may && (from != tenants.Owner || to == tenants.Owner || w.owners() > 1)
	err = w.b.Workspaces.ChangeRole(w.as(by), w.workspace, of, to)
	if may {
		w.roles[of] = to
	}
	return may, err
}

func (w *world) remove(t *rapid.T, by caller) (may bool, err error) {
	of, keep := rapid.SampledFrom(w.joined).Draw(t, "of"), rapid.Bool().Draw(t, "keep")
	from, role := w.roles[of], w.acts(by)
	may = from != "" && (role == tenants.Owner || role == tenants.Admin && from != tenants.Owner) && (from != tenants.Owner || w.owners() > 1)
	err = w.b.Workspaces.RemoveMember(w.as(by), w.workspace, of, !keep)
	if !may {
		return may, err
	}
	delete(w.roles, of)
	heir := by.behind()
	if heir == of {
		heir = w.joined[slices.IndexFunc(w.joined, func(person uuid.UUID) bool { return w.roles[person] == tenants.Owner })]
	}
	for _, key := range w.keys {
		switch {
		case key.behind != of || key.revoked:
		case keep && slices.Contains(key.scopes, tenants.ScopeProxy):
			key.scopes, key.behind = []tenants.Scope{tenants.ScopeProxy}, heir
		default:
			key.revoked = true
		}
	}
	return may, err
}

func (w *world) anyKey(t *rapid.T) *modelKey { return rapid.SampledFrom(w.keys).Draw(t, "key") }

// caller draws a person or a key. A removed member may try, too, and so may a revoked key.
func (w *world) caller(t *rapid.T) caller {
	if rapid.Bool().Draw(t, "by key") {
		return caller{key: w.anyKey(t)}
	}
	return caller{person: rapid.SampledFrom(w.joined).Draw(t, "by")}
}

// compare holds the database against the model.
func (w *world) compare(t *rapid.T) {
	members, err := w.b.Workspaces.Members(w.ctx, w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[uuid.UUID]tenants.Role{}
	for _, member := range members {
		stored[member.User.ID] = member.Role
	}
	if !maps.Equal(stored, w.roles) {
		t.Fatalf("the roles are %v, want %v", stored, w.roles)
	}
	for _, key := range w.keys {
		found, err := w.b.APIKeys.APIKeyByHash(w.ctx, key.hash)
		if err != nil {
			t.Fatal(err)
		}
		if (found.RevokedAt != nil) != key.revoked || !key.revoked && (found.Person != key.behind || !slices.Equal(found.Scopes, w.usable(key))) {
			t.Fatalf("key %s may %v for %s, revoked %v; want %v for %s, revoked %v",
				key.id, found.Scopes, found.Person, found.RevokedAt, w.usable(key), key.behind, key.revoked)
		}
	}
	keys, err := w.b.APIKeys.APIKeys(tenants.OwnWork(w.ctx), w.workspace)
	if err != nil || len(keys) != len(w.keys) {
		t.Fatalf("%d keys, want %d, %v", len(keys), len(w.keys), err)
	}
}

// S3, S34: whatever people and keys try, in whatever order, comes to what the model says.
func TestRandomCallersDoWhatTheModelSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := uuid.NewString()
		owner, workspace := b.signUp(t, name+"@example.com")
		w := &world{b: b, ctx: t.Context(), workspace: workspace, roles: map[uuid.UUID]tenants.Role{owner.ID: tenants.Owner}, joined: []uuid.UUID{owner.ID}}
		for i, role := range []tenants.Role{tenants.Admin, tenants.Regular, tenants.Viewer} {
			person, _ := b.signUp(t, fmt.Sprintf("%d-%s@example.com", i, name))
			const join = "INSERT INTO members (workspace_id, user_id, role, created_at) VALUES ($1, $2, $3, clock_timestamp())"
			if _, err := b.database.Owner(t).Exec(w.ctx, join, workspace, person.ID, string(role)); err != nil {
				rt.Fatal(err)
			}
			w.roles[person.ID] = role
			w.joined = append(w.joined, person.ID)
		}
		first := &modelKey{id: uuid.New(), hash: []byte(name), scopes: []tenants.Scope{tenants.ScopeProxy, tenants.ScopeManage}, creator: w.joined[1], behind: w.joined[1]}
		stored := tenants.APIKey{ID: first.id, Workspace: workspace, Name: "first", Scopes: first.scopes, CreatedBy: first.creator, APIKeyTimes: tenants.APIKeyTimes{CreatedAt: now()}}
		if err := b.APIKeys.CreateAPIKey(w.ctx, workspace, stored, first.hash); err != nil {
			rt.Fatal(err)
		}
		w.keys = []*modelKey{first}
		try := map[string]func(*rapid.T, caller) (bool, error){
			"create": w.create, "rotate": w.rotate, "revoke": w.revoke, "change a role": w.changeRole, "remove": w.remove,
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			what, by := rapid.SampledFrom(slices.Sorted(maps.Keys(try))).Draw(rt, "what"), w.caller(rt)
			if may, err := try[what](rt, by); may != (err == nil) {
				rt.Fatalf("%s, as %s, tries to %s: %v; the model says %v", by, w.acts(by), what, err, may)
			}
			w.compare(rt)
		}
	})
}
