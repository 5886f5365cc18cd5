package tenantsdb_test

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
)

func TestPagesHoldEveryExchangeOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := now()
	recorded := make([]tenants.Exchange, 7)
	for i := range recorded {
		recorded[i] = b.exchange(at.Add(time.Duration(i/2) * time.Second)) // pairs at the same time
	}
	b.record(t, b.workspace, recorded...)

	seen, pages := b.pages(t, tenants.ExchangeFilter{Limit: 3})
	if pages != 3 {
		t.Errorf("%d pages, want 3", pages)
	}
	if len(seen) != len(recorded) {
		t.Fatalf("saw %d exchanges, want %d", len(seen), len(recorded))
	}
	for i, id := range seen {
		if want := recorded[len(recorded)-1-i].ID; id != want {
			t.Errorf("exchange %d is %s, want %s: the newest first", i, id, want)
		}
	}
}

// Each filter alone, and filters together, whichever of them the list is read along.
func TestFilterNarrowsExchanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	at := now()
	early, late, foreign := b.exchange(at.Add(-time.Hour)), b.exchange(at), b.exchange(at)
	late.Request.Session, late.Request.Client, late.Request.Model, late.Answer.Status = uuid.New(), "claude-code", "opus", 529
	late.Answer.ErrorFrom, late.Tokens.MissCause = "provider", "ttl_expiry"
	late.Request.Tags, late.Request.EndUser = tenants.Tags{"team": "search", "env": "prod"}, "ada"
	late.Prompt.Report = []byte(`{"modules":[{"name":"ipc","outcome":"applied"},{"name":"patterns","outcome":"noop"}]}`)
	foreign.Request.Tags, foreign.Request.Client, foreign.Request.EndUser = late.Request.Tags, late.Request.Client, "ada"
	b.record(t, b.workspace, early, late)
	b.record(t, other, foreign)
	newest, oldest, both := []uuid.UUID{late.ID}, []uuid.UUID{early.ID}, []uuid.UUID{late.ID, early.ID}

	for name, test := range map[string]struct {
		filter tenants.ExchangeFilter
		want   []uuid.UUID
	}{
		"everything":          {tenants.ExchangeFilter{}, both},
		"one session":         {tenants.ExchangeFilter{Session: late.Request.Session}, newest},
		"unknown session":     {tenants.ExchangeFilter{Session: uuid.New()}, nil},
		"from is included":    {tenants.ExchangeFilter{From: at}, newest},
		"to is not":           {tenants.ExchangeFilter{To: at}, oldest},
		"a limit of 1":        {tenants.ExchangeFilter{Limit: 1}, newest},
		"a limit of as many":  {tenants.ExchangeFilter{Limit: 2}, both},
		"a limit too large":   {tenants.ExchangeFilter{Limit: 100_000}, both},
		"an id":               {tenants.ExchangeFilter{ID: early.ID.String()}, oldest},
		"the start of ids":    {tenants.ExchangeFilter{ID: late.ID.String()[:8]}, both},
		"a key":               {tenants.ExchangeFilter{APIKey: early.Request.APIKey}, oldest},
		"a client":            {tenants.ExchangeFilter{Client: "claude-code"}, newest},
		"a model":             {tenants.ExchangeFilter{Model: "claude"}, oldest},
		"no such model":       {tenants.ExchangeFilter{Model: "claude\x00"}, oldest}, // as the first was stored
		"answered":            {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{StatusClass: 2}}, oldest},
		"failed":              {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{StatusClass: 5}}, newest},
		"refused":             {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{StatusClass: 4}}, nil},
		"by the provider":     {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{ErrorFrom: "provider"}}, newest},
		"by the proxy":        {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{ErrorFrom: "proxy"}}, nil},
		"a miss":              {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{MissCause: "ttl_expiry"}}, newest},
		"another miss":        {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{MissCause: "cold_start"}}, nil},
		"a module":            {tenants.ExchangeFilter{ModuleFilter: tenants.ModuleFilter{Module: "patterns"}}, newest},
		"how it ended":        {tenants.ExchangeFilter{ModuleFilter: tenants.ModuleFilter{Module: "ipc", Outcome: "applied"}}, newest},
		"how another did":     {tenants.ExchangeFilter{ModuleFilter: tenants.ModuleFilter{Module: "patterns", Outcome: "applied"}}, nil},
		"a tag":               {tenants.ExchangeFilter{Tags: tenants.Tags{"team": "search"}}, newest},
		"an end user":         {tenants.ExchangeFilter{EndUser: []string{"ada", "none"}}, newest},
		"another end user":    {tenants.ExchangeFilter{EndUser: []string{"none"}}, nil},
		"their tag":           {tenants.ExchangeFilter{EndUser: []string{"ada"}, Tags: tenants.Tags{"team": "sales"}}, nil},
		"two tags":            {tenants.ExchangeFilter{Tags: tenants.Tags{"team": "search", "env": "prod"}}, newest},
		"two tags, one wrong": {tenants.ExchangeFilter{Tags: tenants.Tags{"env": "prod", "team": "billing"}}, nil},
		"tag and session":     {tenants.ExchangeFilter{Session: late.Request.Session, Tags: tenants.Tags{"env": "prod"}}, newest},
		"tag, client, model":  {tenants.ExchangeFilter{Client: "claude-code", Model: "opus", Tags: tenants.Tags{"env": "prod"}}, newest},
		"tag, another client": {tenants.ExchangeFilter{Client: "codex", Tags: tenants.Tags{"env": "prod"}}, nil},
		"everything at once": {tenants.ExchangeFilter{
			ID: late.ID.String(), Session: late.Request.Session, APIKey: late.Request.APIKey, Client: "claude-code", Model: "opus", EndUser: []string{"ada"},
			AnswerFilter: tenants.AnswerFilter{StatusClass: 5, ErrorFrom: "provider", MissCause: "ttl_expiry"}, ModuleFilter: tenants.ModuleFilter{Module: "ipc", Outcome: "applied"}, Tags: late.Request.Tags, From: at, To: at.Add(time.Second),
		}, newest},
		"all but the session": {tenants.ExchangeFilter{
			ID: late.ID.String(), Session: uuid.New(), APIKey: late.Request.APIKey, Client: "claude-code", Model: "opus", AnswerFilter: tenants.AnswerFilter{StatusClass: 5}, Tags: late.Request.Tags,
		}, nil},
	} {
		exchanges, next, err := b.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.workspace, test.filter)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := idsOf(exchanges); !slices.Equal(got, test.want) || (next != "") != (test.filter.Limit == 1) {
			t.Errorf("%s: %v, next %q, want %v", name, got, next, test.want)
		}
	}
	if _, err := b.Exchanges.Exchange(tenants.OwnWork(t.Context()), b.workspace, foreign.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("another workspace's exchange: %v, want ErrNotFound", err)
	}
}

// A class of statuses holds its first and its last one, and no status of the classes beside it.
func TestStatusClassHoldsItsEdges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	of := map[int][]uuid.UUID{}
	for i, status := range []int{599, 500, 499, 400, 399, 300, 299, 200} {
		exchange := b.exchange(now().Add(-time.Duration(i) * time.Second))
		exchange.Answer.Status = status
		of[status/100] = append(of[status/100], exchange.ID)
		b.record(t, b.workspace, exchange)
	}
	for class, want := range of {
		if seen, _ := b.pages(t, tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{StatusClass: class}, Limit: 3}); !slices.Equal(seen, want) {
			t.Errorf("%dxx: %v, want %v", class, seen, want)
		}
	}
}

func TestCursorOfNobodyIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, cursor := range []string{"%", "eA", "MTIz", "MTIzL2FiYw"} {
		var invalid tenants.Invalid
		_, _, err := b.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.workspace, tenants.ExchangeFilter{Cursor: cursor})
		if !errors.As(err, &invalid) || invalid.Field != "cursor" {
			t.Errorf("cursor %q: %v, want an Invalid", cursor, err)
		}
	}
}

// A page looks at so many exchanges and no more: what is rare is found all the same, by
// going on, every one of them once.
func TestAPageEndsWhereItHasLookedFarEnough(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	b := setup(t)
	dbtest.FillExchanges(t, b.database.Owner(t), b.workspace, 45_000)
	for name, filter := range map[string]tenants.ExchangeFilter{
		"along all": {ModuleFilter: tenants.ModuleFilter{Module: "patterns", Outcome: "applied"}},
		"of a tag":  {Tags: tenants.Tags{"env": "prod"}, ModuleFilter: tenants.ModuleFilter{Module: "patterns", Outcome: "applied"}},
	} {
		filter.Limit = 10
		seen, pages := b.pages(t, filter)
		var want []uuid.UUID
		err := b.database.Owner(t).QueryRow(t.Context(), `SELECT array_agg(id ORDER BY at DESC, id DESC) FROM exchanges
			WHERE report->'modules' @> '[{"name":"patterns","outcome":"applied"}]'`).Scan(&want)
		if err != nil || len(want) != 45 {
			t.Fatalf("%d have it: %v", len(want), err)
		}
		if !slices.Equal(seen, want) || pages < 3 {
			t.Errorf("%s: %d pages hold %d of %d exchanges", name, pages, len(seen), len(want))
		}
	}
}

// Ordered by a figure, either way round, pages hold each exchange that matches once, and of one
// figure the newest first.
func TestPagesAreInTheOrderOfAFigure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := now()
	recorded := make([]tenants.Exchange, 9)
	for i := range recorded {
		exchange := b.exchange(at.Add(time.Duration(i/2) * time.Second))
		exchange.Prompt.TokensBefore, exchange.Prompt.TokensAfter, exchange.Tokens.CacheRead = 10*(i%3), 7*i%5, 100-i
		exchange.Times.Overhead, exchange.Times.Duration = time.Duration(i%4)*time.Millisecond, 10*time.Millisecond
		exchange.Cost.CostMicroUSD = int64(i*i) % 7
		if i%2 == 0 {
			exchange.Request.Tags, exchange.Request.Client = tenants.Tags{"env": "prod"}, "pi"
		}
		recorded[i] = exchange
	}
	b.record(t, b.workspace, recorded...)
	figures := map[tenants.Figure]func(*tenants.Exchange) int64{
		tenants.ByReceived: func(e *tenants.Exchange) int64 { return int64(e.Prompt.TokensBefore) },
		tenants.BySent:     func(e *tenants.Exchange) int64 { return int64(e.Prompt.TokensAfter) },
		tenants.ByCached:   func(e *tenants.Exchange) int64 { return int64(e.Tokens.CacheRead) },
		tenants.ByOverhead: func(e *tenants.Exchange) int64 { return e.Times.Overhead.Microseconds() },
		tenants.ByUpstream: func(e *tenants.Exchange) int64 { return (e.Times.Duration - e.Times.Overhead).Microseconds() },
		tenants.ByCost:     func(e *tenants.Exchange) int64 { return e.Cost.CostMicroUSD },
	}
	for _, by := range tenants.Figures() {
		for name, filter := range map[string]tenants.ExchangeFilter{
			"all": {}, "a client": {Client: "pi"}, "a tag": {Tags: tenants.Tags{"env": "prod"}}, "a tag and a status": {Tags: tenants.Tags{"env": "prod"}, AnswerFilter: tenants.AnswerFilter{StatusClass: 2}},
		} {
			for _, up := range []bool{false, true} {
				want := slices.Clone(recorded)
				if name != "all" {
					want = slices.DeleteFunc(want, func(e tenants.Exchange) bool { return e.Request.Client != "pi" })
				}
				slices.SortFunc(want, func(a, b tenants.Exchange) int {
					order := cmp.Or(cmp.Compare(figures[by](&a), figures[by](&b)), a.At.Compare(b.At), bytes.Compare(a.ID[:], b.ID[:]))
					return map[bool]int{true: order, false: -order}[up]
				})
				filter.Order, filter.Limit = tenants.ExchangeOrder{By: by, Up: up}, 4
				if got, _ := b.pages(t, filter); !slices.Equal(got, idsOf(want)) {
					t.Errorf("%s by %s, up %v: %v, want %v", name, by, up, got, idsOf(want))
				}
			}
		}
	}
}

// Of many only the newest are put in order, however they are ordered.
func TestOnlyTheNewestArePutInOrder(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	b := setup(t)
	dbtest.FillExchanges(t, b.database.Owner(t), b.workspace, 20_005)
	var newest []uuid.UUID
	err := b.database.Owner(t).QueryRow(t.Context(), `SELECT array_agg(id) FROM (SELECT id FROM exchanges ORDER BY at DESC, id DESC LIMIT 20000) newest`).Scan(&newest)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(newest, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, up := range []bool{false, true} {
		got, _ := b.pages(t, tenants.ExchangeFilter{Order: tenants.ExchangeOrder{By: tenants.ByCost, Up: up}, Limit: tenants.MaxExchanges})
		slices.SortFunc(got, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
		if !slices.Equal(got, newest) {
			t.Errorf("up %v: %d exchanges, want the newest %d", up, len(got), len(newest))
		}
	}
}

// pages returns the ids of all pages of a list, and how many pages there are.
func (b bundle) pages(t *testing.T, filter tenants.ExchangeFilter) (seen []uuid.UUID, pages int) {
	t.Helper()
	for pages = 1; ; pages++ {
		exchanges, next, err := b.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.workspace, filter)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, idsOf(exchanges)...)
		if next == "" {
			return seen, pages
		}
		filter.Cursor = next
	}
}

func TestClientsAndModelsAreNamedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dbtest.FillExchanges(t, b.database.Owner(t), b.workspace, 200)
	nameless := b.exchange(now())
	nameless.Request.Client, nameless.Request.Model = "", string(slices.Repeat([]byte("m"), 5000))
	b.record(t, b.workspace, nameless)
	clients, models, err := b.Exchanges.ExchangeNames(tenants.OwnWork(t.Context()), b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(clients, []string{"client-0", "client-1", "client-2", "rare"}) || len(models) != 6 || len(models[0]) != 200 {
		t.Errorf("clients %q, models %q", clients, models)
	}
	// A name longer than the index takes is found by as much of it as is known.
	found, _, err := b.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.workspace, tenants.ExchangeFilter{Model: models[0]})
	if err != nil || len(found) != 1 || found[0].ID != nameless.ID {
		t.Errorf("found %v (%v)", idsOf(found), err)
	}
	for most, want := range map[int]int{50: 50, 1000: 201} {
		if count, err := b.Exchanges.CountExchanges(tenants.OwnWork(t.Context()), b.workspace, most); err != nil || count != want {
			t.Errorf("of at most %d there are %d (%v)", most, count, err)
		}
	}
}

// Along which index each way to narrow the list is read.
func TestEveryFilterIsReadAlongAnIndex(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	t.Run("of one partition", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		dbtest.FillExchanges(t, b.database.Owner(t), b.workspace, 30_000)
		b.checkFilters(t)
	})
	t.Run("of several", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		dbtest.FillExchanges(t, b.database.Owner(t), b.workspace, 30_000)
		b.split(t, now().Add(-72*time.Hour), now().Add(-4*time.Hour), now().Add(-2*time.Hour), now().Add(72*time.Hour))
		b.checkFilters(t)
		if plan := b.explain(t, tenants.ExchangeFilter{From: now().Add(-time.Hour)}); plan.reads("exchanges_0") || !plan.reads("exchanges_1") {
			t.Errorf("what is asked for since an hour ago reads a partition from before:\n%s", plan)
		}
	})
}

func (b bundle) checkFilters(t *testing.T) {
	t.Helper()
	key := uuid.MustParse("00000000-0000-0000-0000-000000000001")
	cursor := tenants.ExchangeFilter{Limit: 1}
	newest, next, err := b.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.workspace, cursor)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter tenants.ExchangeFilter
		index  string
	}{
		"nothing":         {tenants.ExchangeFilter{}, "exchanges_at"},
		"a range":         {tenants.ExchangeFilter{From: now().Add(-48 * time.Hour), To: now()}, "exchanges_at"},
		"a later page":    {tenants.ExchangeFilter{Cursor: next}, "exchanges_at"},
		"a module":        {tenants.ExchangeFilter{ModuleFilter: tenants.ModuleFilter{Module: "patterns", Outcome: "failed"}}, "exchanges_at"},
		"by a figure":     {tenants.ExchangeFilter{Order: tenants.ExchangeOrder{By: tenants.ByCost}}, "exchanges_at"},
		"a session":       {tenants.ExchangeFilter{Session: key}, "exchanges_session"},
		"a key":           {tenants.ExchangeFilter{APIKey: key}, "exchanges_key"},
		"a client":        {tenants.ExchangeFilter{Client: "rare"}, "exchanges_client"},
		"a model":         {tenants.ExchangeFilter{Model: "rare"}, "exchanges_model"},
		"model, client":   {tenants.ExchangeFilter{Model: "rare", Client: "client-1"}, "exchanges_model"},
		"model, a figure": {tenants.ExchangeFilter{Model: "rare", Order: tenants.ExchangeOrder{By: tenants.ByReceived, Up: true}}, "exchanges_model"},
		"failures":        {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{StatusClass: 5}}, "exchanges_failed"},
		"our own errors":  {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{ErrorFrom: "proxy"}}, "exchanges_failed"},
		"a miss":          {tenants.ExchangeFilter{AnswerFilter: tenants.AnswerFilter{MissCause: "provider"}}, "exchanges_miss"},
		"an id":           {tenants.ExchangeFilter{ID: newest[0].ID.String()}, "exchanges_pkey"},
		"a tag":           {tenants.ExchangeFilter{Tags: tenants.Tags{"env": "prod"}}, "exchange_tags_pkey"},
		"an end user":     {tenants.ExchangeFilter{EndUser: []string{"rare"}}, "exchange_tags_pkey"},
		"a rare tag":      {tenants.ExchangeFilter{Tags: tenants.Tags{"run": "7"}}, "exchange_tags_pkey"},
		"a tag, a module": {tenants.ExchangeFilter{Tags: tenants.Tags{"env": "prod"}, ModuleFilter: tenants.ModuleFilter{Module: "ipc"}}, "exchange_tags_pkey"},
	} {
		plan := b.explain(t, test.filter)
		if !plan.uses(test.index) || plan.scansAll() {
			t.Errorf("%s is not read along %s:\n%s", name, test.index, plan)
		}
		if read := plan.rows(); read > 22_000 {
			t.Errorf("%s reads %.0f rows:\n%s", name, read, plan)
		}
	}
}

func idsOf(exchanges []tenants.Exchange) []uuid.UUID {
	var ids []uuid.UUID
	for _, exchange := range exchanges {
		ids = append(ids, exchange.ID)
	}
	return ids
}
