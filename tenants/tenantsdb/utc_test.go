package tenantsdb_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
)

// Exports and API answers hold the same text on every replica, whatever its zone.
func TestTimesAreReadInUTC(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	const statement = "SELECT now(), ARRAY[now()]"

	var one time.Time
	var many []time.Time
	if err := database.DB.Pool().QueryRow(t.Context(), statement).Scan(&one, &many); err != nil {
		t.Fatal(err)
	}
	var byGorm struct{ At time.Time }
	err := database.DB.InTenant(t.Context(), tenants.NewWorkspaceID(), func(tx *gorm.DB) error {
		return tx.Raw("SELECT now() AS at").Scan(&byGorm).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{"a time": one, "an array's": many[0], "gorm's": byGorm.At} {
		if at.Location() != time.UTC {
			t.Errorf("%s is in %s", name, at.Location())
		}
	}
}
