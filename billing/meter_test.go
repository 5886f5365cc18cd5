package billing_test

import (
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/billing"
	"palimpsest/billing/billingdb"
	"palimpsest/billing/stripetest"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

const meterPath = "/v1/billing/meter_events"

// S30: what counts is written with the exchanges, once, however often they are.
func TestMeterHoldsWhatTheExchangesHold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exchange := func(change func(*tenants.Exchange)) tenants.Exchange {
		made := tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: noon, Request: tenants.ExchangeRequest{APIKey: uuid.New(), Endpoint: "/v1/messages"},
			Answer: tenants.ExchangeAnswer{Status: http.StatusOK, Attempts: 1},
		}
		change(&made)
		return made
	}
	batch := []tenants.Exchange{
		exchange(func(*tenants.Exchange) {}),
		exchange(func(e *tenants.Exchange) { e.Request.Stream = true }),
		exchange(func(e *tenants.Exchange) { e.Answer.Attempts = 2 }), // an emergency pass: still one
		exchange(func(e *tenants.Exchange) { e.Request.Endpoint = "/v1/*" }),
		exchange(func(e *tenants.Exchange) { e.At = noon.Add(time.Hour) }),
		// None of these counts.
		exchange(func(e *tenants.Exchange) { e.Answer.Attempts = 0 }), // answered from the cache
		exchange(func(e *tenants.Exchange) { e.Answer.Status, e.Answer.ErrorFrom = http.StatusBadGateway, "proxy" }),
		exchange(func(e *tenants.Exchange) {
			e.Answer.Status, e.Answer.ErrorFrom = http.StatusTooManyRequests, "provider"
		}),
		exchange(func(e *tenants.Exchange) { e.Answer.ErrorFrom = "provider" }), // the stream ended early
		exchange(func(e *tenants.Exchange) { e.Answer.Status = 499 }),
		exchange(func(e *tenants.Exchange) { e.Request.Endpoint = "/v1/messages/count_tokens" }),
		exchange(func(e *tenants.Exchange) { e.Request.Endpoint = "/v1/responses/input_tokens" }),
		exchange(func(e *tenants.Exchange) { e.Request.Class = "summary" }),
		exchange(func(e *tenants.Exchange) { e.Request.Class = "embedding" }),
	}
	for range 2 { // a batch may be written again
		if err := b.database.DB.Exchanges.RecordExchanges(t.Context(), b.workspace.ID, batch); err != nil {
			t.Fatal(err)
		}
	}
	used := func(from, to time.Time) int64 {
		count, err := b.store.Used(t.Context(), b.workspace.ID, from, to)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if all, counted := used(noon, noon.Add(2*time.Hour)), b.counted(t); all != 5 || counted != 5 {
		t.Errorf("the meter has %d, the exchanges %d, want 5", all, counted)
	}
	if first := used(noon, noon.Add(time.Hour)); first != 4 {
		t.Errorf("%d in the first hour, want 4", first)
	}
}

// S30: calls that break before or after Stripe has an event are made again until the
// sums agree.
func TestUsageIsReportedOnceThroughFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	b.use(t, 7, noon.Add(-time.Hour)) // before the subscription: nobody pays for it
	for hour := range 30 {
		b.use(t, 10+hour, noon.Add(time.Duration(hour)*time.Hour))
	}
	b.double.SetNow(noon.Add(30 * time.Hour))
	var calls int
	b.double.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == meterPath {
			if calls++; calls%7 == 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
		}
		return false
	}
	b.double.After = func(r *http.Request) bool { return r.URL.Path != meterPath || calls%5 != 4 } // the answer is lost
	for range 40 {
		if err := b.Pass(t.Context()); err == nil && b.double.Reported(customer) == b.counted(t)-7 {
			break
		}
		b.double.SetNow(b.double.Now().Add(6 * time.Minute))
	}
	if got, want := b.double.Reported(customer), b.counted(t)-7; got != want {
		t.Errorf("stripe has %d exchanges, we have %d", got, want)
	}
	// More in an hour that has been reported, and nothing twice.
	b.use(t, 3, noon)
	b.double.Before, b.double.After = nil, nil
	b.double.SetNow(b.double.Now().Add(6 * time.Minute))
	for range 2 { // S28
		b.pass(t)
	}
	if got, want := b.double.Reported(customer), b.counted(t)-7; got != want {
		t.Errorf("stripe has %d exchanges, we have %d", got, want)
	}
}

// S30: once Stripe may have forgotten an identifier, its sums say whether it has the
// event; once it is too old to be taken, it is billed now.
func TestEventInDoubtIsComparedOnceItsIdentifierIsForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost  bool // on the way there, not back
		after time.Duration
	}{
		"arrived, a day later":       {after: 25 * time.Hour},
		"arrived, after 36 days":     {after: 36 * 24 * time.Hour},
		"lost, a day later":          {lost: true, after: 25 * time.Hour},
		"lost, and too old by then":  {lost: true, after: 36 * 24 * time.Hour},
		"arrived, at once":           {after: 6 * time.Minute},
		"lost, and sent at once":     {lost: true, after: 6 * time.Minute},
		"arrived, just known still":  {after: 22 * time.Hour},
		"arrived, 35 days less some": {after: 35*24*time.Hour - 2*time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			customer := b.buy(t, "pro")
			b.use(t, 5, noon)
			b.use(t, 4, noon.Add(time.Hour))
			b.double.SetNow(noon.Add(90 * time.Minute))
			b.double.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == meterPath && c.lost {
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				return false
			}
			b.double.After = func(r *http.Request) bool { return r.URL.Path != meterPath }
			if err := b.Pass(t.Context()); err == nil {
				t.Fatal("nothing failed")
			}
			b.double.Before, b.double.After = nil, nil
			b.double.SetNow(b.double.Now().Add(c.after))
			for range 2 {
				b.pass(t)
			}
			if got := b.double.Reported(customer); got != 9 {
				t.Errorf("stripe has %d exchanges, we have 9", got)
			}
		})
	}
}

// Where the sums cannot be explained nothing is guessed: someone has to look.
func TestSumsThatDoNotFitStopTheReports(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	b.use(t, 5, noon)
	b.double.After = func(r *http.Request) bool { return r.URL.Path != meterPath }
	if err := b.Pass(t.Context()); err == nil {
		t.Fatal("nothing failed")
	}
	b.double.After = nil
	if _, err := b.database.Owner(t).Exec(t.Context(), "UPDATE meter_events SET exchanges = 3"); err != nil {
		t.Fatal(err)
	}
	b.double.SetNow(noon.Add(25 * time.Hour))
	if err := b.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "stripe counts 5 exchanges") {
		t.Errorf("%v", err)
	}
	if got := b.double.Reported(customer); got != 5 {
		t.Errorf("stripe has %d exchanges", got)
	}
}

func TestUsageAfterTheSubscriptionIsNotReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	b.use(t, 5, noon)
	b.pass(t)
	b.double.SetCard(customer, true)
	end := noon.AddDate(0, 2, 15)
	b.double.Advance(end)
	b.read(t)
	if status := b.account(t).Status; status != billing.Canceled {
		t.Fatalf("the subscription is %s", status)
	}
	b.use(t, 8, end.Add(time.Hour))
	b.double.Advance(end.Add(2 * time.Hour))
	b.pass(t)
	if got := b.double.Reported(customer); got != 5 {
		t.Errorf("stripe has %d exchanges, want 5", got)
	}
}

// kills is how often the process that reports is killed.
const kills = 12

// S30: the process that reports is killed, with SIGKILL, at every kind of moment: before
// Stripe has an event, after, and before that is noted. In the end the sums are equal.
func TestKilledReporterReportsEveryExchangeOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	for hour := range 40 {
		b.use(t, 1+hour%5, noon.Add(time.Duration(hour)*time.Hour))
	}
	b.double.SetNow(noon.Add(40 * time.Hour))

	var mu sync.Mutex
	var child *os.Process
	calls, killed := 0, 0
	kill := func(at int) bool { // every third call, in turn before and after it counts
		mu.Lock()
		defer mu.Unlock()
		if child == nil || killed >= kills || calls%3 != 0 || killed%2 != at {
			return false
		}
		killed++
		_ = child.Signal(syscall.SIGKILL)
		return true
	}
	b.double.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != meterPath {
			return false
		}
		mu.Lock()
		calls++
		mu.Unlock()
		return kill(0)
	}
	b.double.After = func(r *http.Request) bool { return r.URL.Path != meterPath || !kill(1) }

	for run := 0; ; run++ {
		if run > 3*kills {
			t.Fatal("the reporter does not come to an end")
		}
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReporterProcess$")
		command.Env = append(os.Environ(), "BILLING_REPORTER="+b.database.AppURL, "BILLING_WORKER="+b.database.WorkerURL, "BILLING_STRIPE="+b.double.URL,
			"BILLING_NOW="+b.double.Now().Add(time.Duration(run)*6*time.Minute).Format(time.RFC3339))
		var output strings.Builder
		command.Stdout, command.Stderr = &output, &output
		mu.Lock() // its calls wait until it is known
		err := command.Start()
		child = command.Process
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err = command.Wait(); err == nil {
			break
		}
		if status, is := command.ProcessState.Sys().(syscall.WaitStatus); !is || !status.Signaled() {
			t.Fatalf("%v\n%s", err, &output)
		}
	}
	if killed != kills {
		t.Errorf("killed %d times, want %d", killed, kills)
	}
	if got, want := b.double.Reported(customer), b.counted(t); got != want || want == 0 {
		t.Errorf("after %d kills stripe has %d exchanges, we have %d", killed, got, want)
	}
}

// TestReporterProcess is the process that TestKilledReporterReportsEveryExchangeOnce
// kills.
func TestReporterProcess(t *testing.T) {
	t.Parallel()
	logins := tenantsdb.Config{URL: os.Getenv("BILLING_REPORTER"), WorkerURL: os.Getenv("BILLING_WORKER")}
	if logins.URL == "" { // of a workspace that has nothing to report
		b := setup(t)
		logins = tenantsdb.Config{URL: b.database.AppURL, WorkerURL: b.database.WorkerURL}
	}
	db, err := tenantsdb.Open(t.Context(), logins)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now, err := time.Parse(time.RFC3339, os.Getenv("BILLING_NOW"))
	if err != nil {
		now = noon
	}
	config := config(&stripetest.Server{URL: os.Getenv("BILLING_STRIPE")})
	reporter := billing.New(config, billing.Deps{Store: billingdb.New(db), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	if err := reporter.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The workspaces with nothing to do are left alone.
func TestPassLooksAtWhatHasChangedOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	due := func() []tenants.WorkspaceID {
		found, err := b.store.Due(t.Context(), b.double.Now(), 10)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := due(); len(found) != 0 {
		t.Errorf("%v are due before anything has happened", found)
	}
	b.use(t, 2, noon)
	if found := due(); !slices.Equal(found, []tenants.WorkspaceID{b.workspace.ID}) {
		t.Errorf("%v are due", found)
	}
	b.pass(t)
	if found := due(); len(found) != 0 {
		t.Errorf("%v are due after the pass", found)
	}
	b.use(t, 1, noon)
	if found := due(); len(found) != 1 {
		t.Errorf("%v are due after another exchange", found)
	}
}
