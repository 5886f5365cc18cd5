package tenants_test

import (
	"testing"
	"time"

	"palimpsest/tenants"
)

// The audit log shows all of a key that decides what it may do and for how long.
func TestAuditLogShowsWhatKeyMay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	key := tenants.APIKey{
		Name: "ci", Prefix: "plm_live_ab", Suffix: "9999", Scopes: []tenants.Scope{tenants.ScopeProxy, tenants.ScopeRead},
		Pipeline: "ipc", APIKeyTimes: tenants.APIKeyTimes{ExpiresAt: &at, OldUntil: &at},
	}
	fields := key.Fields()
	for name, want := range map[string]string{
		"name": "ci", "key": "plm_live_ab…9999", "scopes": "proxy,read", "pipeline": "ipc",
		"expires": "2026-11-10T12:00:00Z", "old_secret_until": "2026-11-10T12:00:00Z",
	} {
		if fields[name] != want {
			t.Errorf("%s is %q, want %q", name, fields[name], want)
		}
	}
	bare := tenants.APIKey{Name: "ci"}.Fields()
	for _, name := range []string{"pipeline", "expires", "old_secret_until"} {
		if value, is := bare[name]; is {
			t.Errorf("a key without it has %s %q", name, value)
		}
	}
}
