package rotation_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"palimpsest/tenants/rotation"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// S15: afterwards the newer master key alone opens every row, and the older one opens no row.
func TestEveryRowIsResealedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range kinds() {
		for _, want := range []int{rows, 0} {
			if resealed, err := kind.reseal(t.Context(), b.DB, b.both); resealed != want || err != nil {
				t.Errorf("%s: resealed %d, %v, want %d", kind.table, resealed, err, want)
			}
		}
		if newer, older := b.opened(t, kind, b.newer), b.opened(t, kind, b.older); newer != rows || older != 0 {
			t.Errorf("%s: the newer key opens %d rows, and the older key %d", kind.table, newer, older)
		}
	}
}

// A row that does not open is named in the error wherever it stands, so that the older key stays,
// and all other rows are sealed again.
func TestRowThatDoesNotOpenIsReportedAndStopsNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range kinds() {
		for _, at := range b.places[kind.table] {
			for _, one := range b.places[kind.table] {
				safe := b.older
				if one == at {
					safe = b.foreign
				}
				sealed, err := kind.seal(safe, one, secretOf(one))
				if err != nil {
					t.Fatal(err)
				}
				b.put(t, kind, one, sealed)
			}
			before := b.stored(t, kind, at)
			resealed, err := kind.reseal(t.Context(), b.DB, b.both)
			if resealed != rows-1 || !errors.Is(err, vault.ErrSealedElsewhere) || !strings.Contains(err.Error(), at.id.String()) {
				t.Errorf("%s: resealed %d, %v, want an error about %s", kind.table, resealed, err, at.id)
			}
			if !bytes.Equal(before, b.stored(t, kind, at)) {
				t.Errorf("%s: the row that does not open was changed", kind.table)
			}
			if opened := b.opened(t, kind, b.newer); opened != rows-1 {
				t.Errorf("%s: the newer key opens %d rows", kind.table, opened)
			}
			// It is reported every time, also if no other row needs anything.
			if resealed, err := kind.reseal(t.Context(), b.DB, b.both); resealed != 0 || !errors.Is(err, vault.ErrSealedElsewhere) {
				t.Errorf("%s: a second time: resealed %d, %v", kind.table, resealed, err)
			}
		}
	}
}

// Two rows that do not open are both reported.
func TestEveryRowThatDoesNotOpenIsReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range kinds() {
		places := b.places[kind.table]
		for _, at := range places {
			b.put(t, kind, at, []byte("damaged"))
		}
		_, err := kind.reseal(t.Context(), b.DB, b.both)
		for _, at := range places {
			if err == nil || !strings.Contains(err.Error(), at.id.String()) {
				t.Errorf("%s: %v does not name %s", kind.table, err, at.id)
			}
		}
	}
}

// A write that fails is reported, leaves its row as it was, and is done by the next round.
func TestResealThatFailsAtOneWriteIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range kinds() {
		for nth := 1; nth <= rows; nth++ {
			for _, at := range b.places[kind.table] {
				sealed, err := kind.seal(b.older, at, secretOf(at))
				if err != nil {
					t.Fatal(err)
				}
				b.put(t, kind, at, sealed)
			}
			repair := b.failAt(t, kind, nth)
			if resealed, err := kind.reseal(t.Context(), b.DB, b.both); resealed != rows-1 || err == nil || !strings.Contains(err.Error(), "planned failure") {
				t.Errorf("%s: write %d fails: resealed %d, %v", kind.table, nth, resealed, err)
			}
			if newer, older := b.opened(t, kind, b.newer), b.opened(t, kind, b.older); newer != rows-1 || older != 1 {
				t.Errorf("%s: write %d failed: the newer key opens %d rows, and the older key %d", kind.table, nth, newer, older)
			}
			repair()
			if resealed, err := kind.reseal(t.Context(), b.DB, b.both); resealed != 1 || err != nil {
				t.Errorf("%s: the round after write %d failed: resealed %d, %v", kind.table, nth, resealed, err)
			}
			if newer := b.opened(t, kind, b.newer); newer != rows {
				t.Errorf("%s: the newer key opens %d rows", kind.table, newer)
			}
		}
	}
}

// A secret that someone replaced since it was read stays.
func TestSecretThatWasReplacedMeanwhileStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range kinds() {
		first, second := b.places[kind.table][0], b.places[kind.table][1]
		read, other := b.stored(t, kind, first), b.stored(t, kind, second)
		replaced, err := kind.seal(b.newer, first, "given since")
		if err != nil {
			t.Fatal(err)
		}
		b.put(t, kind, first, replaced)
		if err := kind.replace(t.Context(), b.DB, first, read, []byte("of the old secret")); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.stored(t, kind, first), replaced) || !bytes.Equal(b.stored(t, kind, second), other) {
			t.Errorf("%s: a secret that was replaced meanwhile is overwritten", kind.table)
		}
	}
}

// Without an answer of the database no kind reports that it is done.
func TestResealWithoutDatabaseFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, kind := range kinds() {
		if resealed, err := kind.reseal(ended, b.DB, b.both); resealed != 0 || err == nil {
			t.Errorf("%s: resealed %d, %v", kind.table, resealed, err)
		}
	}
	if _, err := rotation.Proof(ended, b.DB, b.both); err == nil {
		t.Error("the proof is done without the database")
	}
}

// A channel for mails holds no secret.
func TestChannelsWithoutSecretNeedNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, "UPDATE alert_channels SET kind = 'email', sealed = NULL")
	if resealed, err := rotation.AlertChannels(t.Context(), b.DB, b.foreign); resealed != 0 || err != nil {
		t.Errorf("resealed %d, %v", resealed, err)
	}
}

func TestProofIsResealedOnceAndReportedIfItDoesNotOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, "DELETE FROM master_proof")
	if needed, err := rotation.Proof(t.Context(), b.DB, b.both); needed || err != nil {
		t.Errorf("without a proof: %t, %v", needed, err)
	}
	proof, err := b.older.Proof()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenantsdb.KeepMasterProof(t.Context(), b.OwnerURL, proof); err != nil {
		t.Fatal(err)
	}
	if needed, err := rotation.Proof(t.Context(), b.DB, b.foreign); needed || !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("with a foreign key: %t, %v", needed, err)
	}
	for _, want := range []bool{true, false} {
		if needed, err := rotation.Proof(t.Context(), b.DB, b.both); needed != want || err != nil {
			t.Errorf("%t, %v, want %t", needed, err, want)
		}
	}
	kept, err := tenantsdb.StoredMasterProof(t.Context(), b.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.newer.OpensProof(kept); err != nil {
		t.Errorf("the newer key: %v", err)
	}
	if err := b.older.OpensProof(kept); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("the older key: %v", err)
	}
}
