package limits_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"palimpsest/api/limits"
	"palimpsest/api/redistest"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is what limiters of a test share: a clock and the ledger.
type bundle struct {
	mu         sync.Mutex
	now        time.Time
	day, month int64
	asked      int
	broken     error
}

// setup returns a bundle at noon on the 10th of a month.
func setup() *bundle { return &bundle{now: time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)} }

func (b *bundle) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bundle) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// spend says what the database knows to be spent.
func (b *bundle) spend(day, month int64, broken error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.day, b.month, b.broken = day, month, broken
}

// Spent is what the database says.
func (b *bundle) Spent(context.Context, tenants.WorkspaceID, tenants.Spender, time.Time, time.Time) (day, month int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	return b.day, b.month, b.broken
}

func (b *bundle) local() *limits.Limiter {
	return limits.New(limits.Config{Spend: b.Spent, Now: b.clock})
}

// replica is a limiter that counts in Redis.
type replica struct {
	*limits.Limiter

	alone atomic.Int32 // decisions without Redis
}

func (b *bundle) replica(t *testing.T, address string) *replica {
	t.Helper()
	r := &replica{}
	r.Limiter = limits.New(limits.Config{
		Spend: b.Spent, Now: b.clock, Redis: redistest.Client(t, address), Alone: func() { r.alone.Add(1) },
		Patience: time.Minute, // of a loaded machine
	})
	return r
}

func newSubject() limits.Subject {
	return limits.Subject{Workspace: tenants.NewWorkspaceID(), Spender: tenants.Spender{Kind: tenants.KeySpends, ID: uuid.NewString()}}
}

// admit lets a request begin and fails the test if it may not.
func admit(t *testing.T, limiter *limits.Limiter, subject limits.Subject, quota tenants.Quota) *limits.Ticket {
	t.Helper()
	ticket, err := limiter.Admit(t.Context(), limits.Held{Subject: subject, Quota: quota})
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return ticket
}

// refused returns which limit a request meets and for how long.
func refused(t *testing.T, limiter *limits.Limiter, subject limits.Subject, quota tenants.Quota) limits.Exceeded {
	t.Helper()
	_, err := limiter.Admit(t.Context(), limits.Held{Subject: subject, Quota: quota})
	exceeded, is := errors.AsType[limits.Exceeded](err)
	if !is {
		t.Fatalf("let in: %v", err)
	}
	return exceeded
}
