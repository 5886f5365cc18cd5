package tenantsdb_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// addSession stores a session with one lane of four messages, and returns both.
func (b bundle) addSession(t *testing.T) (session, lane uuid.UUID) {
	t.Helper()
	session, lane = uuid.New(), uuid.New()
	for _, statement := range []string{
		"INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at) VALUES ($1, $2, $3, 'anthropic', 'header', 'today', 'today')",
		"INSERT INTO lanes (workspace_id, id, session_id, position, created_at, last_at) VALUES ($1, $3, $2, 4, 'today', 'today')",
	} {
		if _, err := b.database.Owner(t).Exec(t.Context(), statement, b.workspace, session, lane); err != nil {
			t.Fatal(err)
		}
	}
	return session, lane
}

func TestCommentOfAFormerMemberStaysWithoutTheirName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session, lane := b.addSession(t)
	comments, stars := b.Comments, b.Stars
	author := b.join(t, "grace@example.com", tenants.Regular)
	added, err := comments.AddComment(t.Context(), b.workspace, tenants.Comment{Session: session, Lane: lane, Message: 3, Author: author.ID, Text: "Look.\r\nHere."})
	if err != nil {
		t.Fatal(err)
	}
	if added.Name != "grace@example.com" || added.Text != "Look.\nHere." || added.Lane != lane || added.Message != 3 || added.At.IsZero() {
		t.Errorf("added %+v", added)
	}
	if err := stars.Star(t.Context(), b.workspace, author.ID, session); err != nil {
		t.Fatal(err)
	}
	ctx := tenants.WithActor(t.Context(), tenants.Actor{User: author.ID, Name: author.Email})
	if err := b.Workspaces.LeaveWorkspace(ctx, author.ID, b.workspace, true); err != nil {
		t.Fatal(err)
	}
	left, err := comments.Comments(t.Context(), b.workspace, session)
	if err != nil || len(left) != 1 || left[0].Author != uuid.Nil || left[0].Name != "" || left[0].Text != added.Text {
		t.Errorf("left of a former member: %+v, %v", left, err)
	}
	if starred, err := stars.Starred(t.Context(), b.workspace, author.ID); err != nil || len(starred) != 0 {
		t.Errorf("a former member has starred %v, %v", starred, err)
	}
	if left[0].MayDelete(uuid.Nil, tenants.Regular.May) || !left[0].MayDelete(b.user.ID, tenants.Owner.May) {
		t.Error("the comment of a former member is not for admins alone to delete")
	}
}

func TestCommentsAndStarsGoWithTheirSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session, _ := b.addSession(t)
	comments, stars := b.Comments, b.Stars
	if _, err := comments.AddComment(t.Context(), b.workspace, tenants.Comment{Session: session, Author: b.user.ID, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := stars.Star(t.Context(), b.workspace, b.user.ID, session); err != nil {
		t.Fatal(err)
	}
	if counts, err := comments.CommentCounts(t.Context(), b.workspace, []uuid.UUID{session, uuid.New()}); err != nil || len(counts) != 1 || counts[session] != 1 {
		t.Errorf("counts %v, %v", counts, err)
	}
	if _, err := b.database.Owner(t).Exec(t.Context(), "DELETE FROM sessions WHERE id = $1", session); err != nil {
		t.Fatal(err)
	}
	if left, err := comments.EveryComment(t.Context(), b.workspace, uuid.Nil, 9); err != nil || len(left) != 0 {
		t.Errorf("comments left: %v, %v", left, err)
	}
	if left, err := stars.EveryStar(t.Context(), b.workspace, tenants.Star{}, 9); err != nil || len(left) != 0 {
		t.Errorf("stars left: %v, %v", left, err)
	}
}

func TestCommentsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session, lane := b.addSession(t)
	comments := b.Comments
	_, err := b.database.Owner(t).Exec(t.Context(), `INSERT INTO session_comments (workspace_id, id, session_id, user_id, text)
		SELECT $1, gen_random_uuid(), $2, $3, 'x' FROM generate_series(1, $4)`, b.workspace, session, b.user.ID, tenants.MaxComments)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := comments.AddComment(t.Context(), b.workspace, tenants.Comment{Session: session, Author: b.user.ID, Text: "one more"}); invalidField(err) != "text" {
		t.Errorf("one comment too many: %v", err)
	}
	other, otherLane := b.addSession(t)
	for name, comment := range map[string]tenants.Comment{
		"a session of nobody":          {Session: uuid.New(), Author: b.user.ID, Text: "x"},
		"a message that is not there":  {Session: other, Lane: otherLane, Message: 4, Author: b.user.ID, Text: "x"},
		"a message before the first":   {Session: other, Lane: otherLane, Message: -1, Author: b.user.ID, Text: "x"},
		"a message of another session": {Session: other, Lane: lane, Author: b.user.ID, Text: "x"},
	} {
		if _, err := comments.AddComment(t.Context(), b.workspace, comment); !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := 0
	for after := uuid.Nil; ; {
		page, err := comments.EveryComment(t.Context(), b.workspace, after, 200)
		if err != nil {
			t.Fatal(err)
		}
		if all += len(page); len(page) < 200 {
			break
		}
		after = page[len(page)-1].ID
	}
	if all != tenants.MaxComments {
		t.Errorf("%d comments in pages, want %d", all, tenants.MaxComments)
	}
}

// Stars of everybody are read in pages, each once.
func TestStarsOfEverybodyAreReadInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	people := []tenants.User{b.user, b.join(t, "grace@example.com", tenants.Viewer)}
	want := map[tenants.Star]bool{}
	for range 3 {
		session, _ := b.addSession(t)
		for _, user := range people {
			if err := b.Stars.Star(t.Context(), b.workspace, user.ID, session); err != nil {
				t.Fatal(err)
			}
			want[tenants.Star{User: user.ID, Session: session}] = true
		}
	}
	var after tenants.Star
	for range len(want) {
		page, err := b.Stars.EveryStar(t.Context(), b.workspace, after, 1)
		if err != nil || len(page) != 1 {
			t.Fatalf("%d stars after %+v (%v), %d are left", len(page), after, err, len(want))
		}
		after = page[0]
		one := tenants.Star{User: after.User, Session: after.Session}
		if !want[one] {
			t.Errorf("%+v comes twice or is nobody's", one)
		}
		delete(want, one)
	}
	if page, err := b.Stars.EveryStar(t.Context(), b.workspace, after, 1); err != nil || len(page)+len(want) > 0 {
		t.Errorf("after the last come %d, and %d are left (%v)", len(page), len(want), err)
	}
}

func TestStarsAreBoundedAndOnesOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session, _ := b.addSession(t)
	stars := b.Stars
	if err := stars.Star(t.Context(), b.workspace, b.user.ID, uuid.New()); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("a session of nobody: %v", err)
	}
	for _, statement := range []string{
		`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at)
			SELECT $1, gen_random_uuid(), $2, 'anthropic', 'header', 'today', 'today' FROM generate_series(1, ` + strconv.Itoa(tenants.MaxStars-1) + `)`,
		"INSERT INTO session_stars (workspace_id, user_id, session_id) SELECT workspace_id, $2, id FROM sessions WHERE workspace_id = $1",
		"DELETE FROM session_stars WHERE workspace_id = $1 AND user_id = $2 AND session_id = (SELECT max(session_id::text)::uuid FROM session_stars)",
	} {
		if _, err := b.database.Owner(t).Exec(t.Context(), statement, b.workspace, b.user.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := stars.Unstar(t.Context(), b.workspace, b.user.ID, session); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is starred stays so, at the bound too
		if err := stars.Star(t.Context(), b.workspace, b.user.ID, session); err != nil {
			t.Fatal(err)
		}
	}
	starred, err := stars.Starred(t.Context(), b.workspace, b.user.ID)
	if err != nil || len(starred) < tenants.MaxStars-1 || starred[0] != session {
		t.Fatalf("%d starred, %v", len(starred), err)
	}
	for len(starred) < tenants.MaxStars {
		more, _ := b.addSession(t)
		if err := stars.Star(t.Context(), b.workspace, b.user.ID, more); err != nil {
			t.Fatal(err)
		}
		starred = append(starred, more)
	}
	beyond, _ := b.addSession(t)
	if err := stars.Star(t.Context(), b.workspace, b.user.ID, beyond); invalidField(err) != "session" {
		t.Errorf("one star too many: %v", err)
	}
	colleague := b.join(t, "grace@example.com", tenants.Viewer)
	if others, err := stars.Starred(t.Context(), b.workspace, colleague.ID); err != nil || len(others) != 0 {
		t.Errorf("a colleague has starred %v, %v", others, err)
	}
}

// invalidField returns the field that an error says can be mended; "" if it does not.
func invalidField(err error) string {
	invalid, _ := errors.AsType[tenants.Invalid](err)
	return strings.TrimSpace(invalid.Field)
}
