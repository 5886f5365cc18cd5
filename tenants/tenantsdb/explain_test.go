package tenantsdb_test

import (
	"encoding/json"
	"strings"
	"testing"

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
	return plans[0].Plan
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

func (p plan) scansAll() bool {
	if p.Kind == "Seq Scan" {
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
