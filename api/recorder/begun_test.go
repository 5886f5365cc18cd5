package recorder

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/recorder/recordertest"
	"palimpsest/tenants"
)

// S47: what a killed process had begun is recorded at what it may have cost, and what it had
// ended as it ended; what is held for either comes free.
func TestBegunExchangesAreRecordedAfterAKill(t *testing.T) {
	t.Parallel()
	dir, database := t.TempDir(), recordertest.NewDatabase()
	close(database.Open)
	costing := func(id byte, micro int64) tenants.Exchange {
		return tenants.Exchange{ID: uuid.UUID{id}, Workspace: tenants.WorkspaceID{1}, Cost: tenants.ExchangeCost{CostMicroUSD: micro}}
	}
	killed, kept := recorderOf(t, dir, database, database, database)
	killed.Begin(t.Context(), costing(1, 600), []string{"held", "one"})
	killed.Begin(t.Context(), costing(2, 600), []string{"held", "two"})
	ended := costing(2, 100)
	killed.Keep(t.Context(), Job{Exchange: &ended})
	over := killed.Begin(t.Context(), costing(3, 600), []string{"held", "three"})
	over.Withdraw()
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	next, _ := recorderOf(t, dir, database, database, database)
	var released []string
	next.Released = func(_ context.Context, held []string) { released = append(released, held...) }
	next.CatchUp(t.Context())
	costs := map[byte]int64{}
	for _, one := range database.Kept().Exchanges {
		costs[one.ID[0]] = one.Cost.CostMicroUSD
	}
	if len(costs) != 2 || costs[1] != 600 || costs[2] != 100 {
		t.Errorf("recorded are %v", costs)
	}
	if !slices.Equal(released, []string{"held", "one", "held", "two"}) {
		t.Errorf("released is %q", released)
	}
	next.CatchUp(t.Context())
	if recorded := len(database.Kept().Exchanges); recorded != 2 {
		t.Errorf("after another time %d are recorded", recorded)
	}
}
