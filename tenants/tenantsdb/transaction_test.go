package tenantsdb_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

const insertWindow = "INSERT INTO model_windows (workspace_id, model, window_tokens, source) VALUES ($1, $2, 1000, 'learnt')"

// windows counts what the tests of transactions have stored.
func (b bundle) windows(t *testing.T) (count int) {
	t.Helper()
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM model_windows").Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

// counted returns the database through a relay that counts round trips.
func (b bundle) counted(t *testing.T) (*tenantsdb.DB, *dbtest.Trips) {
	t.Helper()
	address, trips := dbtest.CountTrips(t, b.database.AppURL)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: address, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, trips
}

func TestTransactionTakesNoMoreRoundTripsThanItsAnswersAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	db, trips := b.counted(t)
	read := func(tx *gorm.DB) error {
		return batchdb.Each(tx, func(pgx.CollectableRow) error { return nil }, "SELECT model FROM model_windows WHERE workspace_id = $1", b.workspace)
	}
	for name, test := range map[string]struct {
		most int
		do   func(tx *gorm.DB) error
	}{
		"nothing": {0, func(*gorm.DB) error { return nil }},
		"what no one waits for": {1, func(tx *gorm.DB) error {
			return errors.Join(batchdb.Later(tx, insertWindow, b.workspace, uuid.NewString()), batchdb.Later(tx, insertWindow, b.workspace, uuid.NewString()))
		}},
		"one that is waited for": {2, func(tx *gorm.DB) error { return tx.Exec(insertWindow, b.workspace, uuid.NewString()).Error }},
		"one that is read":       {2, read},
		"two that are read":      {3, func(tx *gorm.DB) error { return errors.Join(read(tx), read(tx)) }},
		"two that no one waits for after one that is read": {2, func(tx *gorm.DB) error {
			return errors.Join(read(tx),
				batchdb.Later(tx, insertWindow, b.workspace, uuid.NewString()), batchdb.Later(tx, insertWindow, b.workspace, uuid.NewString()))
		}},
		"one that gorm reads": {3, func(tx *gorm.DB) error {
			var models []string
			return tx.Raw("SELECT model FROM model_windows WHERE workspace_id = ?", b.workspace).Scan(&models).Error
		}},
	} {
		for range 2 { // the first time the connection has the statements described
			trips.Count()
			if err := db.InTenant(t.Context(), b.workspace, test.do); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if count := trips.Count(); count > test.most {
			t.Errorf("%s: %d round trips, want at most %d", name, count, test.most)
		}
	}
	if count := b.windows(t); count != 2*(2+1+2) {
		t.Errorf("%d rows are stored", count)
	}
}

func TestExchangesAreRecordedInOneRoundTrip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	db, trips := b.counted(t)
	for range 2 {
		trips.Count()
		if err := db.Exchanges.RecordExchanges(t.Context(), b.workspace, []tenants.Exchange{b.exchange(now())}); err != nil {
			t.Fatal(err)
		}
	}
	if count := trips.Count(); count != 1 {
		t.Errorf("%d round trips", count)
	}
}

// A statement that no one waits for fails the transaction all the same, with its own error.
func TestFailureOfWhatNobodyWaitsForIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	refused := func(tx *gorm.DB) error {
		return errors.Join(batchdb.Later(tx, insertWindow, b.workspace, "a"), batchdb.Later(tx, "SELECT 1 / (length($1) - 1)", "x"))
	}
	for name, then := range map[string]func(tx *gorm.DB) error{
		"at the end":             func(*gorm.DB) error { return nil },
		"with a statement":       func(tx *gorm.DB) error { return tx.Exec(insertWindow, b.workspace, "b").Error },
		"and nobody looks":       func(tx *gorm.DB) error { _ = tx.Exec(insertWindow, b.workspace, "b").Error; return nil },
		"before what gorm reads": func(tx *gorm.DB) error { var model string; return tx.Raw("SELECT 'x'").Scan(&model).Error },
		"before a row":           func(tx *gorm.DB) error { var model string; return tx.Raw("SELECT 'x'").Row().Scan(&model) },
		"before what is read": func(tx *gorm.DB) error {
			return batchdb.Each(tx, func(pgx.CollectableRow) error { return nil }, "SELECT 1")
		},
	} {
		err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error { return errors.Join(refused(tx), then(tx)) })
		if err == nil || !isDivision(err) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want a division by zero", name, err)
		}
	}
	if count := b.windows(t); count != 0 {
		t.Errorf("%d rows of transactions that failed", count)
	}
}

// The error that the transaction's function makes of a failed statement is told, even if others were sent with it.
func TestFailureOfAnAwaitedStatementKeepsTheErrorMadeOfIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		if err := errors.Join(batchdb.Write(tx, insertWindow, b.workspace, "a"), batchdb.Write(tx, "SELECT ?::text", "x")); err != nil {
			return err
		}
		if err := tx.Exec(insertWindow, b.workspace, "a").Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
			t.Errorf("%v, want a duplicate", err)
		}
		return tenants.ErrConflict
	})
	if !errors.Is(err, tenants.ErrConflict) || b.windows(t) != 0 {
		t.Errorf("%v, want %v; %d rows", err, tenants.ErrConflict, b.windows(t))
	}
}

// A query whose context has ended makes database/sql drop the connection, which the pool closes
// meanwhile: the transaction does not touch it any more.
func TestDroppedConnectionIsNotUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
			if err := tx.Exec(insertWindow, b.workspace, "a").Error; err != nil {
				return err
			}
			var model string
			if err := tx.WithContext(ended).Raw("SELECT 'x'").Scan(&model).Error; err == nil {
				t.Error("a query runs after its context has ended")
			}
			return batchdb.Later(tx, insertWindow, b.workspace, "b")
		})
		if !errors.Is(err, sql.ErrConnDone) {
			t.Fatalf("%v, want %v", err, sql.ErrConnDone)
		}
	}
	if count := b.windows(t); count != 0 {
		t.Errorf("%d rows of transactions that failed", count)
	}
}

// Where a statement is not understood, the beginning that was sent with it has not run either:
// nothing of the rest runs outside of the transaction.
func TestNothingRunsWithoutItsTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		err := batchdb.Later(tx, "SELECT FROM WHERE")
		for i := range 3 {
			if tx.Exec("SELECT 1").Error == nil {
				t.Errorf("statement %d ran", i)
			}
		}
		var one int
		if tx.Raw("SELECT 1").Row().Scan(&one) == nil {
			t.Error("a row was read")
		}
		return err
	})
	if err == nil {
		t.Error("no error")
	}
}

func TestConnectionIsUsedAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	db, _ := b.counted(t)
	process := func() (process int) {
		err := db.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error { return tx.Raw("SELECT pg_backend_pid()").Scan(&process).Error })
		if err != nil {
			t.Fatal(err)
		}
		return process
	}
	before := process()
	func() {
		defer func() { _ = recover() }()
		_ = db.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
			_ = tx.Exec(insertWindow, b.workspace, "a")
			panic("in the middle")
		})
	}()
	if after := process(); after != before || b.windows(t) != 0 {
		t.Errorf("a panic: connection %d, before %d; %d rows", after, before, b.windows(t))
	}
	err := db.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		return errors.Join(tx.Exec(insertWindow, b.workspace, "a").Error, errors.New("no"))
	})
	if after := process(); err == nil || after != before || b.windows(t) != 0 {
		t.Errorf("%v; connection %d, before %d; %d rows", err, after, before, b.windows(t))
	}
	err = db.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		err := tx.Exec(insertWindow, b.workspace, "a").Error
		_ = tx.Exec("SELECT 1 / (length(?) - 1)", "x") // and nobody looks
		return err
	})
	if after := process(); !errors.Is(err, pgx.ErrTxCommitRollback) || after != before || b.windows(t) != 0 {
		t.Errorf("a failure that nobody tells: %v; connection %d, before %d; %d rows", err, after, before, b.windows(t))
	}
}

func TestTransactionThatPanicsOrIsLeftIsUndone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	func() {
		defer func() { _ = recover() }()
		_ = b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
			if err := tx.Exec(insertWindow, b.workspace, "a").Error; err != nil {
				t.Error(err)
			}
			panic("in the middle")
		})
	}()
	ctx, leave := context.WithCancel(t.Context())
	err := b.InTenant(ctx, b.workspace, func(tx *gorm.DB) error {
		defer leave()
		return tx.Exec(insertWindow, b.workspace, "b").Error
	})
	if !errors.Is(err, context.Canceled) || b.windows(t) != 0 {
		t.Errorf("%d rows (%v)", b.windows(t), err)
	}
	if err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error { return tx.Exec(insertWindow, b.workspace, "c").Error }); err != nil || b.windows(t) != 1 {
		t.Errorf("%d rows after one that went well (%v)", b.windows(t), err)
	}
}

// What a savepoint undoes does not fail the transaction around it.
func TestSavepointUndoesItsStatementsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		if err := batchdb.Later(tx, insertWindow, b.workspace, "a"); err != nil {
			return err
		}
		err := tx.Transaction(func(tx *gorm.DB) error { return tx.Exec("SELECT 1 / (length(?) - 1)", "x").Error })
		if !isDivision(err) {
			t.Errorf("inside: %v", err)
		}
		return tx.Exec(insertWindow, b.workspace, "b").Error
	})
	if err != nil || b.windows(t) != 2 {
		t.Errorf("%d rows (%v)", b.windows(t), err)
	}
}

func isDivision(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == "22012"
}
