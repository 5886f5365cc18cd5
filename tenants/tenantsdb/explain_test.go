package tenantsdb_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// plan is how the database went about a statement: EXPLAIN (ANALYZE, FORMAT JSON).
type plan struct {
	Kind  string  `json:"Node Type"`
	Index string  `json:"Index Name"`
	Table string  `json:"Relation Name"`
	Rows  float64 `json:"Actual Rows"`
	Loops float64 `json:"Actual Loops"`
	Gone  float64 `json:"Rows Removed by Filter"`
	Plans []plan  `json:"Plans"`
}

// explain reads a page as the program's own login does, and returns how.
func (b bundle) explain(t *testing.T, filter tenants.ExchangeFilter) plan {
	t.Helper()
	statement, values, err := tenantsdb.ListStatement(b.workspace, filter)
	if err != nil {
		t.Fatal(err)
	}
	return b.explainStatement(t, statement, values...)
}

// explainStatement runs a statement as the program's own login does, and returns how.
func (b bundle) explainStatement(t *testing.T, statement string, values ...any) plan {
	t.Helper()
	var encoded string
	err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		return tx.Raw("EXPLAIN (ANALYZE, FORMAT JSON) "+statement, values...).Scan(&encoded).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan plan `json:"Plan"`
	}
	if err := json.Unmarshal([]byte(encoded), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.ofAll(b.indexes(t))
}

// indexes returns which index of all partitions each index of a partition is part of.
func (b bundle) indexes(t *testing.T) map[string]string {
	t.Helper()
	rows, err := b.database.Owner(t).Query(t.Context(), `SELECT c.relname::text, p.relname::text FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
		JOIN pg_class p ON p.oid = h.inhparent WHERE c.relkind = 'i'`)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	var part, whole string
	if _, err := pgx.ForEachRow(rows, []any{&part, &whole}, func() error { of[part] = whole; return nil }); err != nil {
		t.Fatal(err)
	}
	return of
}

// ofAll returns the plan with the names of indexes of all partitions.
func (p plan) ofAll(indexes map[string]string) plan {
	if whole, is := indexes[p.Index]; is {
		p.Index = whole
	}
	for i := range p.Plans {
		p.Plans[i] = p.Plans[i].ofAll(indexes)
	}
	return p
}

// split cuts the exchanges into partitions at times, the oldest first.
func (b bundle) split(t *testing.T, times ...time.Time) {
	t.Helper()
	from, statements := "MINVALUE", []string{"CREATE TEMP TABLE every AS TABLE exchanges", "ALTER TABLE exchanges DISABLE TRIGGER USER", "DROP TABLE exchanges_first"}
	for i, at := range times {
		until := fmt.Sprintf("'%012x00000000000000000000'", at.UnixMilli())
		statements = append(statements, fmt.Sprintf("CREATE TABLE exchanges_%d PARTITION OF exchanges FOR VALUES FROM (%s) TO (%s)", i, from, until))
		from = until
	}
	statements = append(statements, "CREATE TABLE exchanges_last PARTITION OF exchanges FOR VALUES FROM ("+from+") TO (MAXVALUE)",
		"INSERT INTO exchanges TABLE every", "ALTER TABLE exchanges ENABLE TRIGGER USER", "VACUUM ANALYZE exchanges")
	connection, err := b.database.Owner(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Release()
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// reads reports whether a plan reads a table.
func (p plan) reads(table string) bool {
	return p.Table == table || slices.ContainsFunc(p.Plans, func(below plan) bool { return below.reads(table) })
}

func (p plan) uses(index string) bool {
	if p.Index == index {
		return true
	}
	for _, below := range p.Plans {
		if below.uses(index) {
			return true
		}
	}
	return false
}

// scansAll reports whether a plan reads all rows of a table; a partition without rows has nothing else.
func (p plan) scansAll() bool {
	if p.Kind == "Seq Scan" && p.Rows+p.Gone > 0 {
		return true
	}
	for _, below := range p.Plans {
		if below.scansAll() {
			return true
		}
	}
	return false
}

// rows returns how many rows the busiest node read.
func (p plan) rows() float64 {
	most := (p.Rows + p.Gone) * p.Loops
	for _, below := range p.Plans {
		most = max(most, below.rows())
	}
	return most
}

// String shows the nodes that read a table.
func (p plan) String() string {
	var text strings.Builder
	p.write(&text, 0)
	return text.String()
}

func (p plan) write(text *strings.Builder, depth int) {
	text.WriteString(strings.Repeat("  ", depth) + p.Kind + " " + p.Table + " " + p.Index + "\n")
	for _, below := range p.Plans {
		below.write(text, depth+1)
	}
}
