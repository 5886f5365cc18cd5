package pages_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// ids are those of two members.
func ids() [2]uuid.UUID { return [2]uuid.UUID{{1}, {2}} }

// bills is what members have spent.
type bills struct{ tenants.UsageReader }

// Usage implements tenants.UsageReader.
func (bills) Usage(context.Context, tenants.WorkspaceID, tenants.Dimension, tenants.UsageFilter) ([]tenants.UsageRow, error) {
	return []tenants.UsageRow{{Label: ids()[1].String(), Usage: tenants.Usage{UsageCost: tenants.UsageCost{CostMicroUSD: 1234}}}}, nil
}

// Members implements tenants.Members.
func (crowd) Members(context.Context, tenants.WorkspaceID) ([]tenants.Member, error) {
	return []tenants.Member{
		{User: tenants.User{ID: ids()[0], Email: formula}, Role: tenants.Owner, JoinedAt: time.Unix(1, 0)},
		{User: tenants.User{ID: ids()[1], Email: "b@example.com"}, Role: tenants.Viewer, JoinedAt: time.Unix(2, 0), SeenAt: time.Unix(3, 0)},
	}, nil
}

// Pending implements tenants.Invitations.
func (crowd) Pending(context.Context, tenants.WorkspaceID) ([]tenants.Invitation, error) {
	return []tenants.Invitation{
		{ID: uuid.New(), Email: formula, Role: tenants.Viewer, InvitedBy: formula, CreatedAt: time.Unix(4, 0), SentAt: time.Unix(5, 0), ExpiresAt: time.Unix(6, 0)},
		{ID: uuid.New(), Email: "c@example.com", Role: tenants.Admin, CreatedAt: time.Unix(7, 0), SentAt: time.Unix(8, 0), ExpiresAt: time.Unix(9, 0)},
	}, nil
}

// Downloads have a line for each, with its figures in their columns. Addresses are no formulas: neither
// those of members and of who is invited nor that of who invites.
func TestDownloadsOfMembersHoldNoFormulas(t *testing.T) {
	t.Parallel()
	handler := members.New(crowd{}, crowd{}, bills{}, time.Now)
	at := func(second int) string { return "1970-01-01T00:00:0" + strconv.Itoa(second) + "Z" }
	for name, test := range map[string]struct {
		answer func(echo.Context, tenants.Principal) error
		want   [][]string // without ids
	}{
		"members": {handler.CSV, [][]string{
			{"email", "role", "joined_at", "last_seen_at", "cost_7d_micro_usd"}, {"'" + formula, "owner", at(1), "", "0"}, {"b@example.com", "viewer", at(2), at(3), "1234"},
		}},
		"invitations": {handler.InvitationsCSV, [][]string{
			{"email", "role", "invited_by", "sent_at", "expires_at"}, {"'" + formula, "viewer", "'" + formula, at(5), at(6)}, {"c@example.com", "admin", "", at(8), at(9)},
		}},
	} {
		recorder := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), recorder)
		if err := test.answer(c, tenants.Principal{}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(recorder.Body.String())).ReadAll()
		if err != nil || len(rows) != len(test.want) {
			t.Fatalf("%s: %d rows, %v", name, len(rows), err)
		}
		for i, row := range rows {
			if !slices.Equal(row[1:], test.want[i]) {
				t.Errorf("%s: %q, want %q", name, row[1:], test.want[i])
			}
		}
	}
}
