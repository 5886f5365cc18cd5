package overview

import (
	"testing"
	"time"

	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

// A key needs attention in the week before it ends and in the week after, if clients still have it.
func TestKeysNeedAttentionWhileClientsHaveThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time {
		at := now.Add(d)
		return &at
	}
	const second = time.Second
	for name, c := range map[string]struct {
		used, expires, revoked, old *time.Time
		want                        string // its dot and title; "" if it needs none
	}{
		"never used":                  {nil, in(day), nil, nil, ""},
		"without an end":              {in(-day), nil, nil, nil, ""},
		"a week before":               {in(-day), in(7 * day), nil, nil, ""},
		"less than a week before":     {in(-day), in(7*day - second), nil, nil, "warn Key ci expires in 6 days"},
		"not used for a week":         {in(-7 * day), in(day), nil, nil, ""},
		"used within the week":        {in(second - 7*day), in(day), nil, nil, "warn Key ci expires in 24 h"},
		"at its end":                  {in(-day + second), in(0), nil, nil, "bad Key ci has expired"},
		"unused on the day before":    {in(-2 * day), in(-day), nil, nil, ""},
		"used on the day before":      {in(second - 2*day), in(-day), nil, nil, "bad Key ci has expired"},
		"expired for a week":          {in(-7 * day), in(-7 * day), nil, nil, ""},
		"expired within the week":     {in(-7 * day), in(second - 7*day), nil, nil, "bad Key ci has expired"},
		"revoked":                     {in(-2*day + second), nil, in(-day), nil, "warn Key ci was revoked while it was used"},
		"revoked a day later":         {in(-2 * day), nil, in(-day), nil, ""},
		"revoked a week ago":          {in(-7 * day), nil, in(-7 * day), nil, ""},
		"revoked and expired":         {in(-2 * day), in(-day), in(-2 * day), nil, "warn Key ci was revoked while it was used"},
		"a secret that ends":          {in(-day), nil, nil, in(3 * day), "warn The old secret of key ci ends in 3 days"},
		"a secret of a later key":     {in(-day), in(30 * day), nil, in(3 * day), "warn The old secret of key ci ends in 3 days"},
		"a secret that has ended":     {in(-day), nil, nil, in(0), ""},
		"a secret in a week":          {in(-day), nil, nil, in(7 * day), ""},
		"a secret of an unused key":   {in(-7 * day), nil, nil, in(3 * day), ""},
		"a key before its own secret": {in(-day), in(2 * day), nil, in(day), "warn Key ci expires in 2 days"},
	} {
		key := tenants.APIKey{Name: "ci", APIKeyTimes: tenants.APIKeyTimes{LastUsedAt: c.used, ExpiresAt: c.expires, RevokedAt: c.revoked, OldUntil: c.old}}
		one, needs := keyItem(&key, now)
		if got := one.Dot + " " + one.Title; needs != (c.want != "") || needs && got != c.want {
			t.Errorf("%s: %q, %t, want %q", name, got, needs, c.want)
		}
	}
}

// Failover helps with the requests of a key only if another one accepts them.
func TestAnotherKeyHelpsIfItAcceptsTheRequests(t *testing.T) {
	t.Parallel()
	key := func(provider tenants.Provider, models ...string) tenants.ProviderKey {
		return tenants.ProviderKey{Provider: provider, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: models}}
	}
	off := key(tenants.ProviderAnthropic)
	off.Disabled = true
	for name, c := range map[string]struct {
		keys []tenants.ProviderKey
		want bool
	}{
		"alone":            {[]tenants.ProviderKey{key(tenants.ProviderAnthropic)}, false},
		"of one provider":  {[]tenants.ProviderKey{key(tenants.ProviderAnthropic), key(tenants.ProviderAnthropic)}, true},
		"another provider": {[]tenants.ProviderKey{key(tenants.ProviderAnthropic), key(tenants.ProviderOpenAI)}, false},
		"one is off":       {[]tenants.ProviderKey{key(tenants.ProviderAnthropic), off}, false},
		"itself is off":    {[]tenants.ProviderKey{off, key(tenants.ProviderAnthropic), key(tenants.ProviderAnthropic)}, false},
		"of one model":     {[]tenants.ProviderKey{key(tenants.ProviderAnthropic, "claude-opus-4-5"), key(tenants.ProviderAnthropic, "claude-opus-*")}, true},
		"another model":    {[]tenants.ProviderKey{key(tenants.ProviderAnthropic, "claude-opus-4-5"), key(tenants.ProviderAnthropic, "claude-haiku-*")}, false},
		"of all others":    {[]tenants.ProviderKey{key(tenants.ProviderAnthropic, "claude-opus-4-5"), key(tenants.ProviderAnthropic)}, false},
	} {
		if got := hasAlternative(c.keys, 0); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A model's end is announced with how many sessions a day it concerns, and is bad once it has come.
func TestEndOfAModelSaysHowManySessionsItConcerns(t *testing.T) {
	t.Parallel()
	on := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for sessions, want := range map[int]string{
		1: "1 session of the last 7 days used a model", 3: "3 sessions of the last 7 days used a model", 4: "1 session a day uses a model",
		10: "1 session a day uses a model", 11: "2 sessions a day use a model",
	} {
		before := endingItem(tokens.Ending{Model: "m", On: on}, sessions, on.Add(-day))
		if before.Dot != "warn" || before.Title != want+" that ends on 1 Jun 2026" {
			t.Errorf("%d sessions: %s %q", sessions, before.Dot, before.Title)
		}
		after := endingItem(tokens.Ending{Model: "m", On: on, Successor: "n"}, sessions, on.Add(time.Second))
		if after.Dot != "bad" || after.Title != want+" that ended on 1 Jun 2026" || after.Text != "From then on its maker refuses requests for m. It recommends n. Cloud providers may have another date." {
			t.Errorf("%d sessions: %s %q %q", sessions, after.Dot, after.Title, after.Text)
		}
	}
}
