package members_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/members"
)

// formula is what a spreadsheet would compute.
const formula = "=HYPERLINK(1)@example.com"

// crowd are people whose addresses are formulas.
type crowd struct {
	people
	tenants.Invitations
}

type people interface{ tenants.Members }

// Members implements tenants.Members.
func (crowd) Members(context.Context, tenants.WorkspaceID) ([]tenants.Member, error) {
	return []tenants.Member{{User: tenants.User{ID: uuid.New(), Email: formula}, Role: tenants.Owner}}, nil
}

// Pending implements tenants.Invitations.
func (crowd) Pending(context.Context, tenants.WorkspaceID) ([]tenants.Invitation, error) {
	return []tenants.Invitation{{ID: uuid.New(), Email: formula, Role: tenants.Viewer, InvitedBy: formula}}, nil
}

// Addresses are no formulas in the downloads: neither those of members and of who is
// invited nor that of who invites.
func TestDownloadsOfMembersHoldNoFormulas(t *testing.T) {
	t.Parallel()
	handler := members.New(crowd{}, crowd{}, nil)
	for name, test := range map[string]struct {
		answer func(echo.Context, tenants.Principal) error
		want   map[string]string
	}{
		"members":     {handler.CSV, map[string]string{"email": "'" + formula}},
		"invitations": {handler.InvitationsCSV, map[string]string{"email": "'" + formula, "invited_by": "'" + formula}},
	} {
		recorder := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), recorder)
		if err := test.answer(c, tenants.Principal{}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(recorder.Body.String())).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%s: %d rows, %v", name, len(rows), err)
		}
		for i, column := range rows[0] {
			if want, is := test.want[column]; is && rows[1][i] != want {
				t.Errorf("%s: %s is %q, want %q", name, column, rows[1][i], want)
			}
			if strings.HasPrefix(rows[1][i], "=") {
				t.Errorf("%s: %s is a formula: %q", name, column, rows[1][i])
			}
		}
	}
}
