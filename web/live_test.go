package web_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// told returns the next event of a stream that tells something.
func told(t *testing.T, stream *bufio.Scanner) string {
	t.Helper()
	for stream.Scan() {
		if event, is := strings.CutPrefix(stream.Text(), "event: "); is {
			return event
		}
	}
	t.Fatalf("the stream ended: %v", stream.Err())
	return ""
}

// S9: a stream that was opened ends as soon as its reader may not read it any more, before it
// tells anything else.
func TestOpenStreamEndsWithItsReadersRights(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator := product.SignUp(t, "first")
	owner, other := product.SignUp(t, "ant"), product.SignUp(t, "zebra")
	sql := func(statement string, values ...any) {
		t.Helper()
		if _, err := product.Database.Owner(t).Exec(t.Context(), statement, values...); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []struct {
		name string
		by   func(reader *webtest.Person)
	}{
		{"logged out", func(reader *webtest.Person) { reader.Kept().Post("/logout") }},
		{"removed", func(reader *webtest.Person) {
			owner.Post("/members/"+reader.User.ID.String()+"/remove", "confirm", reader.Email)
		}},
		{"moved to another workspace", func(reader *webtest.Person) {
			sql("INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, 'viewer')", other.Workspace.ID, reader.User.ID)
			if page := reader.Post("/workspaces/" + other.Workspace.ID.String() + "/enter"); page.Path != "/overview" {
				t.Fatalf("led to %s", page.Path)
			}
		}},
		{"suspended", func(*webtest.Person) {
			operator.Post("/operator/workspaces/"+owner.Workspace.ID.String()+"/suspend", "reason", "sends spam", "confirm", "ant")
		}},
	} {
		reader := owner.Colleague(tenants.Billing) // who sees every request
		ctx, leave := context.WithCancel(t.Context())
		answer := reader.Stream(ctx, "/live")
		stream := bufio.NewScanner(answer)
		product.Live.Recheck()
		product.Live.Happened(owner.Workspace.ID, uuid.New(), 1)
		if event := told(t, stream); event != "exchanges" {
			t.Fatalf("%s: while they may read: %s", end.name, event)
		}
		end.by(reader)
		product.People.Forget() // as the notification does, which then has streams look
		product.Live.Recheck()
		product.Live.Happened(owner.Workspace.ID, uuid.New(), 1)
		if event := told(t, stream); event != "end" {
			t.Errorf("%s: told %s", end.name, event)
		}
		leave()
		_ = answer.Close()
	}
	if page := owner.Open("/live"); page.Status != http.StatusForbidden {
		t.Errorf("a stream of a suspended workspace opens with %d", page.Status)
	}
}
