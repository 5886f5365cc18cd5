package keys

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Each state of a key is named, ordered and counted, with the actions that are still possible, whichever
// order the keys come in.
func TestEveryStateOfKeyIsShown(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000_000, 0)
	at := func(d time.Duration) *time.Time { return new(now.Add(d)) }
	who := tenants.Principal{Role: tenants.Owner}
	key := func(name string, expires, revoked, old *time.Time) tenants.APIKey {
		return tenants.APIKey{ID: uuid.New(), Name: name, Creator: "someone@example.com", CreatedBy: uuid.New(), APIKeyTimes: tenants.APIKeyTimes{ExpiresAt: expires, RevokedAt: revoked, OldUntil: old}}
	}
	want := map[string]struct {
		state, tag string
		rank       int
		may, old   bool
	}{
		"plain":                 {"active", "ok", 0, true, false},
		"long":                  {"active", "ok", 0, true, false},
		"soon":                  {"expires soon", "warn", 0, true, false},
		"ends now":              {"expired", "bad", 1, true, false},
		"ended":                 {"expired", "bad", 1, true, false},
		"revoked":               {"revoked", "", 2, false, false},
		"revoked and ended":     {"revoked", "", 2, false, false},
		"rotated":               {"active", "ok", 0, true, true},
		"rotated long ago":      {"active", "ok", 0, true, false},
		"rotated, then revoked": {"revoked", "", 2, false, false},
	}
	keys := []tenants.APIKey{
		key("plain", nil, nil, nil), key("long", at(soon), nil, nil), key("soon", at(soon-1), nil, nil), key("ends now", at(0), nil, nil), key("ended", at(-1), nil, nil),
		key("revoked", nil, at(-1), nil), key("revoked and ended", at(-1), at(-1), nil), key("rotated", nil, nil, at(1)), key("rotated long ago", nil, nil, at(0)),
		key("rotated, then revoked", nil, at(-1), at(1)),
	}
	for range 2 {
		m := newModel(who, keys, nil, "", "https://example.com", now)
		last := 0
		for i := range m.Rows {
			row := &m.Rows[i]
			of := want[row.Key.Name]
			if row.State != of.state || row.Tag != of.tag || row.rank() != of.rank || row.MayRevoke != of.may || (row.OldUntil != nil) != of.old {
				t.Errorf("%s: %s, %q, rank %d, may be revoked %t, old until %v", row.Key.Name, row.State, row.Tag, row.rank(), row.MayRevoke, row.OldUntil)
			}
			if row.rank() < last {
				t.Errorf("%s stands behind keys that can do less", row.Key.Name)
			}
			last = row.rank()
		}
		if m.Active != 5 || len(m.Rows) != len(want) {
			t.Errorf("%d of %d keys are active", m.Active, len(m.Rows))
		}
		slices.Reverse(keys)
	}
}

// received are the exchanges of a workspace.
type received struct {
	exchanges

	all []tenants.Exchange
}

type exchanges = tenants.Exchanges

func (r received) Exchanges(_ context.Context, _ tenants.WorkspaceID, filter tenants.ExchangeFilter) (found []tenants.Exchange, _ string, _ error) {
	for _, one := range r.all {
		if one.Request.APIKey == filter.APIKey {
			found = append(found, one)
		}
	}
	return found, "", nil
}

// A first request is waited for with a key that works, in any state that it can be in. Requests of other keys
// don't count.
func TestRequestIsAwaitedWithKeyThatWorks(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000_000, 0)
	at := func(d time.Duration) *time.Time { return new(now.Add(d)) }
	used, other := uuid.New(), uuid.New()
	h := Handler{
		config:    Config{Now: func() time.Time { return now }},
		exchanges: received{all: []tenants.Exchange{{ID: uuid.New(), Request: tenants.ExchangeRequest{APIKey: other}}, {ID: used, Request: tenants.ExchangeRequest{APIKey: used}}}},
	}
	for name, c := range map[string]struct {
		times tenants.APIKeyTimes
		works bool
	}{
		"plain": {tenants.APIKeyTimes{}, true}, "ends soon": {tenants.APIKeyTimes{ExpiresAt: at(1)}, true}, "ended": {tenants.APIKeyTimes{ExpiresAt: at(0)}, false},
		"revoked": {tenants.APIKeyTimes{RevokedAt: at(-1)}, false}, "revoked and ended": {tenants.APIKeyTimes{RevokedAt: at(-1), ExpiresAt: at(-1)}, false},
	} {
		for _, id := range []uuid.UUID{used, uuid.New()} {
			use, err := h.use(t.Context(), tenants.Principal{}, tenants.APIKey{ID: id, APIKeyTimes: c.times})
			if err != nil || use.Works != c.works || (use.Received != "") != (id == used) || use.Request != map[bool]uuid.UUID{true: used}[id == used] {
				t.Errorf("%s: %+v, %v", name, use, err)
			}
		}
	}
}

// Of two keys each has its own requests and its own creator, and the first steps end with the use of either.
func TestTwoKeysAreToldApart(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000_000, 0)
	who := tenants.Principal{Role: tenants.Regular, User: tenants.User{ID: uuid.New()}}
	own, others, left := tenants.APIKey{ID: uuid.New(), CreatedBy: who.User.ID, Creator: "me@example.com"}, tenants.APIKey{ID: uuid.New(), CreatedBy: uuid.New(), Creator: "she@example.com"},
		tenants.APIKey{ID: uuid.New(), CreatedBy: uuid.New()}
	used := []tenants.UsageRow{{Label: own.ID.String()}, {Label: others.ID.String()}}
	used[0].Exchanges, used[0].Epochs, used[1].Exchanges, used[1].Epochs = 7, 1, 9, 2
	m := newModel(who, []tenants.APIKey{own, others, left}, used, "", "https://example.com", now)
	for i, want := range []struct {
		requests int64
		creator  string
		may      bool
	}{{7, "you", true}, {9, "she@example.com", false}, {0, "someone who left", false}} {
		if row := m.Rows[i]; row.Requests != want.requests || row.Creator != want.creator || row.MayRevoke != want.may {
			t.Errorf("%d: %d requests, by %s, may be revoked %t", i, row.Requests, row.Creator, row.MayRevoke)
		}
	}
	for usage, cell := range map[string]string{"": "9", "reference": ""} {
		m.UsageFailed = usage
		if got := m.record(&m.Rows[1])[8]; got != cell {
			t.Errorf("requests that failed to be counted %q: %q in the file, want %q", usage, got, cell)
		}
	}
	for _, keys := range [][]tenants.APIKey{{own, others}, {others, own}} {
		if keys[0].LastUsedAt = &now; newModel(who, keys, nil, "", "https://example.com", now).FirstSteps {
			t.Error("the first steps are shown beside a key that was used")
		}
	}
	if !newModel(who, []tenants.APIKey{own, others}, nil, "", "https://example.com", now).FirstSteps {
		t.Error("the first steps are not shown")
	}
}
