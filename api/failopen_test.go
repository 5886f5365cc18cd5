package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// broken is a module in the place of ipc that fails.
type broken struct {
	how func(*pipeline.Draft) error
}

func (broken) Name() string { return "ipc" }

func (b broken) Process(_ context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	draft := exchange.Draft("ipc")
	return draft, b.how(draft)
}

// W25, S25: a module that panics or fails, whatever it did before, is undone: the
// client's own body goes out, and the log says why.
func TestFailingModuleLeavesTheBodyAsItCame(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(*pipeline.Draft) error{
		"panic": func(draft *pipeline.Draft) error {
			draft.Lane.Projection = &session.Projection{Number: 7, Covers: 1}
			panic("index out of range")
		},
		"error": func(draft *pipeline.Draft) error {
			draft.Report.Compression = pipeline.Epoch
			return errors.New("index out of range")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			double := providertest.NewServer(t, providerdouble.Config{})
			p := setupAt(t, double.URL, broken{how})
			p.store.windows["claude-sonnet-4-5"] = small
			body := toolSession("claude-sonnet-4-5", 30, 800)
			got := p.send(http.MethodPost, messagesPath, body)
			last, _ := double.Last()
			if got.status != http.StatusOK || string(last.Body) != body {
				t.Errorf("status %d, %d of %d bytes sent: %.300s", got.status, len(last.Body), len(body), got.body)
			}
			if !strings.Contains(got.header.Get("X-Palimpsest-Modules"), "ipc;failed") {
				t.Errorf("modules: %s", got.header.Get("X-Palimpsest-Modules"))
			}
			p.last(1)
			if !p.log.holds("ipc.failed") || !p.log.holds("index out of range") {
				t.Errorf("log: %s", p.log)
			}
		})
	}
}

// brokenAs is a module in the place of another that fails.
type brokenAs struct {
	broken

	name string
}

// Name implements pipeline.Module.
func (b brokenAs) Name() string { return b.name }

// S25: whichever module it is that panics, fails or runs out of time, the client's own
// body goes out.
func TestEachModuleMayFail(t *testing.T) {
	t.Parallel()
	for _, name := range []string{ipc.Name, compactionbridge.Name, rehydrator.Name, patterns.Name} {
		for how, fails := range map[string]func(*pipeline.Draft) error{
			"panics": func(*pipeline.Draft) error { panic("out of range") },
			"fails":  func(*pipeline.Draft) error { return errDown },
			"is late": func(*pipeline.Draft) error {
				return context.DeadlineExceeded
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				double := providertest.NewServer(t, providerdouble.Config{})
				p := setupAt(t, double.URL, brokenAs{broken{fails}, name})
				p.store.windows["claude-sonnet-4-5"] = small
				body := toolSession("claude-sonnet-4-5", 30, 800)
				got := p.send(http.MethodPost, messagesPath, body, "X-Palimpsest-Pipe", name)
				last, _ := double.Last()
				if got.status != http.StatusOK || string(last.Body) != body || !strings.Contains(got.header.Get("X-Palimpsest-Modules"), name+";failed") {
					t.Errorf("status %d, modules %q, %d of %d bytes sent", got.status, got.header.Get("X-Palimpsest-Modules"), len(last.Body), len(body))
				}
				p.last(1)
				if !p.log.holds(name + ".failed") {
					t.Errorf("log: %s", p.log)
				}
			})
		}
	}
}

// W25: with the database down the client's own body goes out, with settings and
// without a session, and the log says why.
func TestDatabaseDownLeavesTheBodyAsItCame(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["claude-sonnet-4-5"] = small
	if got := p.send(http.MethodPost, messagesPath, streamed); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	p.store.fail(errDown)
	p.Prompts.Store = down{}
	p.Prompts.Resolver = resolverOn(t, down{})
	p.Settings.ForgetAll() // the connection on which changes are heard is gone too

	body := toolSession("claude-sonnet-4-5", 30, 800)
	for range 2 {
		got := p.send(http.MethodPost, messagesPath, body)
		last, _ := double.Last()
		if got.status != http.StatusOK || string(last.Body) != body || got.header.Get("X-Palimpsest-Compression") != "none" {
			t.Errorf("status %d, headers %v: %.300s", got.status, got.header, got.body)
		}
	}
	// The count of a prompt does not need the database either.
	if got := p.send(http.MethodPost, countPath, body); got.status != http.StatusOK {
		t.Errorf("count: status %d: %s", got.status, got.body)
	}
	p.last(3)
	if !p.log.holds("session.failed") || !p.log.holds(errDown.Error()) {
		t.Errorf("log: %s", p.log)
	}
}

// W25: an epoch that cannot be made durable does not happen.
func TestEpochThatCannotBeStoredDoesNotHappen(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["claude-sonnet-4-5"] = small
	p.Prompts.Store = down{}
	body := toolSession("claude-sonnet-4-5", 30, 800)
	got := p.send(http.MethodPost, messagesPath, body)
	if last, _ := double.Last(); got.status != http.StatusOK || string(last.Body) != body {
		t.Errorf("status %d, %d of %d bytes sent", got.status, len(last.Body), len(body))
	}
	p.last(1)
	if !p.log.holds("archive originals") {
		t.Errorf("log: %s", p.log)
	}
}

// Settings that were never read cannot be guessed: the key of the provider is one.
func TestSettingsThatWereNeverReadAreAnError(t *testing.T) {
	t.Parallel()
	p := setup(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	p.store.fail(errDown)
	got := p.send(http.MethodPost, messagesPath, streamed)
	if got.status != http.StatusInternalServerError || !strings.Contains(string(got.body), `"api_error"`) || strings.Contains(string(got.body), errDown.Error()) {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	p.store.fail(nil)
	if got := p.send(http.MethodPost, messagesPath, streamed); got.status != http.StatusOK {
		t.Errorf("once it is back: status %d: %s", got.status, got.body)
	}
}

// While the database is away, a client is told to try again: nothing is wrong with its request.
func TestSettingsThatWereNeverReadAreUnavailableWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	p := setup(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	p.store.fail(fmt.Errorf("%w: %w", tenants.ErrAway, errDown))
	got := p.send(http.MethodPost, messagesPath, streamed)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" ||
		!strings.Contains(string(got.body), "The database does not answer") || strings.Contains(string(got.body), errDown.Error()) {
		t.Errorf("status %d, headers %v: %s", got.status, got.header, got.body)
	}
	p.store.fail(nil)
	if got := p.send(http.MethodPost, messagesPath, streamed); got.status != http.StatusOK {
		t.Errorf("once it is back: status %d: %s", got.status, got.body)
	}
}

// down is a session store whose database does not answer.
type down struct{}

func (down) Find(context.Context, tenants.WorkspaceID, []conversation.Hash) (session.Found, error) {
	return session.Found{}, errDown
}

func (down) Stands(context.Context, tenants.WorkspaceID, []conversation.Hash) (session.Standing, error) {
	return session.Standing{}, errDown
}

func (down) Announce(context.Context, tenants.WorkspaceID, []session.Update) error { return errDown }

func (down) Commit(context.Context, session.Update, session.Projection) error { return errDown }

func (down) Inject(context.Context, session.Update, []session.Insert) error { return errDown }

func (down) Withdraw(context.Context, tenants.WorkspaceID, uuid.UUID, int) error { return errDown }

func (down) Record(context.Context, tenants.Tenant, []session.Update) error { return errDown }

func resolverOn(t testing.TB, store session.Store) *session.Resolver {
	t.Helper()
	resolver, err := session.NewResolver(store)
	if err != nil {
		t.Fatal(err)
	}
	return resolver
}
