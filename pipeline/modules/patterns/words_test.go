package patterns

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTermsAreTheWordsThatTellRequestsApart(t *testing.T) {
	t.Parallel()
	if got := Terms("Please always use pnpm instead of npm for packages in web/app.ts"); !slices.Equal(got, []string{"pnpm", "npm", "packag", "web/app.ts"}) {
		t.Errorf("terms are %q", got)
	}
}

func TestReportsOfOneErrorHaveOneSignature(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{
		{"relay.go:42:7: undefined: flushInterval", "/home/a/internal/relay.go:7:1: undefined: flushInterval", "  internal/relay.go:7:1: Undefined: `flushInterval`"},
		{"Error: Cannot find module 'left-pad'", `error:  cannot find module "left-pad"`},
		{`./a_test.go:5:2: "path/filepath" imported and not used`, `cmd/a_test.go:9:2: "path/filepath" imported and not used`},
		{"dial tcp 127.0.0.1:5432: connect: connection refused", "dial tcp 127.0.0.1:6432: connect: connection refused"},
	} {
		for _, line := range lines {
			if got := Signature(line); got == "" || got != Signature(lines[0]) {
				t.Errorf("%q: %q, want %q", line, got, Signature(lines[0]))
			}
		}
	}
	for _, line := range []string{"", "FAIL", "exit status 1", "Error: failed", "all tests passed", "1 failed", "error: the test failed"} {
		if got := Signature(line); got != "" {
			t.Errorf("%q says too little for %q", line, got)
		}
	}
}

func FuzzSignature(f *testing.F) {
	f.Add("relay.go:42: undefined: x")
	f.Add("Fehler: ungültig error 例外 not found \xff")
	f.Fuzz(func(t *testing.T, line string) {
		signature := Signature(line)
		if len(signature) > MaxOfTerm || utf8.ValidString(line) && !utf8.ValidString(signature) || strings.ContainsAny(signature, "<>\n") {
			t.Errorf("%q: %q", line, signature)
		}
		Words(line)
	})
}

func TestSecretsAreRecognized(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"use sk-ant-REDACTED", "AKIAABCDEFGHIJKLMNOP is the id", "ghp_0123456789abcdefghijABCD", "export API_KEY=abcd1234",
		"the password is swordfish", "log in with password hunter2secret", "postgres://app:pw123@db/x", "mail jane@example.com",
		"Authorization: Bearer abcdefghijk", "-----BEGIN RSA PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx", "plm_live_0123456789",
		"id 4f3Kd92hFq81LmZ0xPqR77", "token: abcdef",
	} {
		if !HoldsSecret(text) {
			t.Errorf("%q is taken for harmless", text)
		}
	}
	for _, text := range []string{
		"Always run make lint before committing.", "internal/proxy/handlers/relay_test.go is generated", "Never log tokens or passwords.",
		"TestRevokedKeyIsRefusedByTheMiddleware must pass", "Reset the password form first", "use pipeline/modules/patterns/patternsdb",
	} {
		if HoldsSecret(text) {
			t.Errorf("%q is taken for a secret", text)
		}
	}
}
