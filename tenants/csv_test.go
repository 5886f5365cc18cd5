package tenants_test

import (
	"context"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// A cell that a spreadsheet would compute begins with an apostrophe, whichever of the
// characters begins it (OWASP, CSV injection).
func TestCellsOfCSVAreNoFormulas(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"=", "+", "-", "@", "\t", "\r", "\n", "\r\n=", "＝", "＋", "－", "＠"} {
		if got := tenants.CSVCell(first + "1+1"); got != "'"+first+"1+1" {
			t.Errorf("%q becomes %q", first+"1+1", got)
		}
	}
	for _, harmless := range []string{"", "ada@example.com", "a=b", "1-2", " =1", "'=1", "é"} {
		if got := tenants.CSVCell(harmless); got != harmless {
			t.Errorf("%q becomes %q", harmless, got)
		}
	}
}

// Each cell of the audit log that people can fill is one.
func TestAuditLogHoldsNoFormulas(t *testing.T) {
	t.Parallel()
	const formula = "\t=HYPERLINK(\"https://evil.example\")"
	entry := tenants.AuditEntry{
		ID: uuid.New(), At: time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC),
		Actor:  tenants.Actor{Name: formula, From: formula},
		Change: tenants.Change{Action: tenants.KeyRevoked, Target: formula, Before: tenants.Fields{"name": formula}},
	}
	var out strings.Builder
	pages := func(context.Context, uuid.UUID) ([]tenants.AuditEntry, error) {
		return []tenants.AuditEntry{entry}, nil
	}
	if err := tenants.WriteAuditCSV(t.Context(), &out, pages); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	formulas := 0
	for i, cell := range rows[1] {
		if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
			t.Errorf("%s is %q", rows[0][i], cell)
		}
		if cell == "'"+formula {
			formulas++
		}
	}
	if formulas != 3 {
		t.Errorf("%d cells hold the formula as text, want 3: %q", formulas, rows[1])
	}
}
