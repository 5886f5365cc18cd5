package recall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// colleague is a member of a workspace with an API key of their own.
type colleague struct {
	user   uuid.UUID
	secret string
}

// join makes a new person a member and gives them a key.
func (w *tenant) join(t *testing.T, name string, role tenants.Role) colleague {
	t.Helper()
	user, _, err := w.db.DB.Accounts.SignUp(t.Context(), name+"@example.com", "hash", name)
	must(t, err)
	w.exec(t, "INSERT INTO members (workspace_id, user_id, role, created_at) VALUES ($1, $2, $3, now())", w.workspace, user.ID, string(tenants.Regular))
	_, secret, err := w.credentials.CreateAPIKey(t.Context(), w.workspace, tenants.APIKey{Name: name, Scopes: []tenants.Scope{tenants.ScopeProxy, tenants.ScopeRecall}, CreatedBy: user.ID})
	must(t, err)
	w.become(t, user.ID, role)
	return colleague{user.ID, secret}
}

// become gives a member another role, at once.
func (w *tenant) become(t *testing.T, user uuid.UUID, role tenants.Role) {
	t.Helper()
	w.exec(t, "UPDATE members SET role = $3 WHERE workspace_id = $1 AND user_id = $2", w.workspace, user, string(role))
	w.keys.Changed(w.workspace.String())
}

func (w *tenant) exec(t *testing.T, statement string, arguments ...any) {
	t.Helper()
	_, err := w.db.Owner(t).Exec(t.Context(), statement, arguments...)
	must(t, err)
}

// policy has the workspace say who may read, as a person does it.
func (w *tenant) policy(t *testing.T, text tenants.TextPolicy) {
	t.Helper()
	must(t, w.db.DB.Data.SetDataSettings(t.Context(), w.workspace, tenants.DataSettings{TimeZone: "UTC", Text: text}))
}

// found returns the sessions that a key finds, and whether it can read a message by its pointer.
func (w *tenant) found(t *testing.T, secret string, of told) (sessions []string, reads bool) {
	t.Helper()
	model := w.model(t, secret)
	var hits hits
	model.call("recall_search", message{"query": "serial-07919"}, &hits)
	for _, hit := range hits.Hits {
		sessions = append(sessions, hit.Session)
	}
	slices.Sort(sessions)
	sessions = slices.Compact(sessions)
	read := 0
	calls := []message{{"pointer": of.name + "#2"}, {"pointer": "#2", "session": of.session}, {"pointer": of.name + "#2", "session": of.session}}
	for _, arguments := range calls {
		if text, failed := model.call("recall_get", arguments, nil); !failed && strings.Contains(text, result(0)) {
			read++
		}
	}
	if read != 0 && read != len(calls) {
		t.Errorf("%s is read by %d of %d calls", of.session, read, len(calls))
	}
	return sessions, read > 0
}

// S44: a key recalls what the person behind it may read now, and nothing else.
func TestKeyRecallsWhatThePersonBehindItMayRead(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.tenant(t, "ant")
	sent := conversations()[conversation.Anthropic]
	owners := w.converse(t, sent[0], sent[1])
	member, viewer := w.join(t, "bee", tenants.Regular), w.join(t, "cat", tenants.Viewer)
	own := *w
	own.key = member.secret
	members := own.converse(t, sent[0], strings.Replace(sent[1], "Do it all.", "Do it all again.", 1))
	both := []string{owners.session, members.session}
	slices.Sort(both)

	ofRole := tenants.TextPolicy{Managers: tenants.ReadsAll, Members: tenants.ReadsOwn, Viewers: tenants.ReadsNone}
	check := func(name, secret string, finds []string, readsOwners, readsMembers bool) {
		t.Helper()
		sessions, reads := w.found(t, secret, owners)
		if !slices.Equal(sessions, finds) || reads != readsOwners {
			t.Errorf("%s finds %q, want %q, and reads the owner's: %t", name, sessions, finds, reads)
		}
		if _, reads = w.found(t, secret, members); reads != readsMembers {
			t.Errorf("%s reads the member's: %t", name, reads)
		}
	}
	check("owner", w.key, both, true, true)
	check("member", member.secret, []string{members.session}, false, true)
	check("viewer", viewer.secret, nil, false, false)

	ofRole.Members, ofRole.Viewers = tenants.ReadsAll, tenants.ReadsAll
	w.policy(t, ofRole)
	check("member who may read all", member.secret, both, true, true)
	check("viewer who may read all", viewer.secret, both, true, true)
	w.model(t, viewer.secret).refused("recall_get", message{"pointer": owners.name + "#2", "session": uuid.NewString()}, "no archive that")

	ofRole.Managers, ofRole.Members = tenants.ReadsOwn, tenants.ReadsOwn
	w.policy(t, ofRole)
	check("owner who reads their own", w.key, []string{owners.session}, true, false)

	w.become(t, member.user, tenants.Viewer)
	check("member who is a viewer now", member.secret, both, true, true)
	w.become(t, member.user, tenants.Billing)
	w.exec(t, "UPDATE api_keys SET scopes = 'proxy' WHERE created_by = $1", member.user)
	if _, err := w.connect(t, carrier{"Authorization": "Bearer " + member.secret}); err == nil {
		t.Error("a key of someone who may only pay connects")
	}
}

// S45: a request that names an end user recalls what was said on their behalf, and nothing of anyone else's.
func TestRequestForAnEndUserRecallsTheirSessions(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.tenant(t, "ant")
	sent := conversations()[conversation.Anthropic]
	of := map[string]told{}
	for _, user := range []string{"alice", "bob"} {
		body := strings.Replace(sent[1], "{", `{"metadata":{"user_id":"`+user+`"},`, 1)
		of[user] = w.converse(t, sent[0], body)
	}
	for _, user := range []string{"alice", "bob", "carol", ""} {
		model := w.model(t, w.key, "X-Palimpsest-User", user)
		var hits hits
		model.call("recall_search", message{"query": "serial-07919"}, &hits)
		var sessions []string
		for _, hit := range hits.Hits {
			sessions = append(sessions, hit.Session)
		}
		slices.Sort(sessions)
		for other, talk := range of {
			may := user == "" || user == other
			if slices.Contains(sessions, talk.session) != may {
				t.Errorf("for %q the session of %s is found: %t", user, other, !may)
			}
			if text, failed := model.call("recall_get", message{"pointer": "#2", "session": talk.session}, nil); !failed != may || strings.Contains(text, result(0)) != may {
				t.Errorf("for %q the session of %s is read: %t", user, other, !may)
			}
			if text, failed := model.call("recall_get", message{"pointer": talk.name + "#2"}, nil); !failed != may || strings.Contains(text, result(0)) != may {
				t.Errorf("for %q the archive of %s is read by its name: %t", user, other, !may)
			}
		}
	}
}

// S44: the key that a former member leaves behind goes on to send requests and reads nothing, though
// an owner answers for it.
func TestKeyOfAFormerMemberRecallsNothing(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.tenant(t, "ant")
	member := w.join(t, "bee", tenants.Regular)
	sent := conversations()[conversation.Anthropic]
	own := *w
	own.key = member.secret
	members := own.converse(t, sent[0], sent[1])

	ctx := tenants.WithActor(t.Context(), tenants.Actor{User: w.user})
	must(t, w.db.DB.Workspaces.RemoveMember(ctx, w.workspace, member.user, false))
	w.keys.Changed(w.workspace.String())
	if sessions, reads := w.found(t, member.secret, members); len(sessions) > 0 || reads {
		t.Errorf("it finds %q, reads %t", sessions, reads)
	}
	w.model(t, member.secret).refused("recall_search", message{"query": "serial-07919"}, "may not read")

	// Back in the workspace, they read with it what they may, not what the owner may.
	w.exec(t, "INSERT INTO members (workspace_id, user_id, role, created_at) VALUES ($1, $2, 'member', now())", w.workspace, member.user)
	owners := w.converse(t, sent[0], strings.Replace(sent[1], "Do it all.", "Do it all again.", 1))
	if sessions, reads := w.found(t, member.secret, owners); !slices.Equal(sessions, []string{members.session}) || reads {
		t.Errorf("back again it finds %q, reads the owner's %t", sessions, reads)
	}
}
