package webtest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

const (
	// Window is a context window in tokens, small enough that a short session is compressed.
	Window = 60_000

	// ClaudeCode is Claude Code's user agent.
	ClaudeCode = "claude-cli/2.1.0 (external, cli)"
)

// LongTalk returns a session that exceeds Window several times.
func LongTalk() *sessiontest.Session {
	return sessiontest.Generate(7, sessiontest.Options{
		Format: conversation.Anthropic, Turns: 60, TargetTokens: 110_000, Parallel: true, CJK: true,
		SessionID: "6f0c6f6e-52d0-4f0e-9d3c-0f3d3a7f2b11",
	})
}

// KeepPasskey stores a passkey for a person, without a device that has it, and returns its id.
func KeepPasskey(t testing.TB, person *Person) string {
	t.Helper()
	logins, err := person.DB.Logins.Logins(t.Context(), person.User.ID)
	if err != nil || len(logins) == 0 {
		t.Fatalf("%d logins, %v", len(logins), err)
	}
	passkey := tenants.Passkey{ID: uuid.New(), Name: "Phone", Credential: []byte(person.Email), PublicKey: []byte("k"), CreatedAt: time.Now(), BackupEligible: true}
	if _, err := person.DB.Factors.AddPasskey(t.Context(), person.User, logins[0].ID, passkey, []byte("challenge"), [][]byte{[]byte("code")}); err != nil {
		t.Fatal(err)
	}
	return passkey.ID.String()
}
