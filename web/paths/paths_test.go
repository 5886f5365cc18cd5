package paths_test

import (
	"testing"

	"github.com/google/uuid"

	"palimpsest/web/paths"
)

func TestWithLeavesEmptyValuesOut(t *testing.T) {
	t.Parallel()

	if got := paths.With(paths.Sessions, "q", "a b&c", "cursor", ""); got != "/sessions?q=a+b%26c" {
		t.Errorf("got %s", got)
	}
	if got := paths.With(paths.Sessions, "q", ""); got != "/sessions" {
		t.Errorf("got %s", got)
	}
}

func TestLocalRefusesOtherSites(t *testing.T) {
	t.Parallel()

	for next, want := range map[string]string{
		"/sessions?q=x":         "/sessions?q=x",
		"":                      paths.Overview,
		"sessions":              paths.Overview,
		"//evil.example":        paths.Overview,
		"/\\evil.example":       paths.Overview,
		"https://evil.example/": paths.Overview,
		"javascript:alert(1)":   paths.Overview,
		"/a\nb":                 paths.Overview,
	} {
		if got := paths.Local(next); got != want {
			t.Errorf("Local(%q) = %q, want %q", next, got, want)
		}
	}
}

func TestPathsOfThingsHoldTheirIDs(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("0198c2f0-0000-7000-8000-000000000001")

	for got, want := range map[string]string{
		paths.RevokeKey(id):           "/keys/0198c2f0-0000-7000-8000-000000000001/revoke",
		paths.TestProvider(id):        "/providers/0198c2f0-0000-7000-8000-000000000001/test",
		paths.EditProvider(id):        "/providers/0198c2f0-0000-7000-8000-000000000001/edit",
		paths.ReplaceProvider(id):     "/providers/0198c2f0-0000-7000-8000-000000000001/replace",
		paths.RemoveProvider(id):      "/providers/0198c2f0-0000-7000-8000-000000000001/remove",
		paths.Session(id):             "/sessions/0198c2f0-0000-7000-8000-000000000001",
		paths.Export(id):              "/api/v1/sessions/0198c2f0-0000-7000-8000-000000000001/export",
		paths.ExportAs(id, "tar"):     "/api/v1/sessions/0198c2f0-0000-7000-8000-000000000001/export?format=tar",
		paths.EditKey(id):             "/keys/0198c2f0-0000-7000-8000-000000000001/edit",
		paths.Setting("ipc.minClear"): "/pipeline?module=ipc#field-ipc-minClear",
		paths.RotateKey(id):           "/keys/0198c2f0-0000-7000-8000-000000000001/rotate",

		paths.OriginalBytes(id, id, 7): "/api/v1/sessions/0198c2f0-0000-7000-8000-000000000001/archive/7?lane=0198c2f0-0000-7000-8000-000000000001",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
