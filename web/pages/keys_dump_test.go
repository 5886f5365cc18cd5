package pages_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"palimpsest/web/webtest"
)

// S7: after traffic with created and rotated keys, a dump of the database holds no
// full key.
func TestDumpHoldsNoKey(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	first := person.Connect(webtest.Provider(t, 200_000), "laptop")
	ask := func(secret string) {
		person.TalkOnce(secret, 200_000, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Hello."}]}`, "test")
	}
	ask(first)
	link := person.Get("/keys").Find(`[data-testid="keys"] a[aria-label="Rotate laptop"]`).AttrOr("href", "")
	second := person.Post(link, "grace", "24h").TestID("secret")
	ask(second)
	ask(first)
	if err := person.Keys.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	var programs string
	if err := product.Database.Owner(t).QueryRow(t.Context(), "SELECT setting FROM pg_config WHERE name = 'BINDIR'").Scan(&programs); err != nil {
		t.Fatal(err)
	}
	dump, err := exec.CommandContext(t.Context(), filepath.Join(programs, "pg_dump"), "--inserts", product.Database.OwnerURL).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	if !bytes.Contains(dump, []byte(second[:len("plm_live_")+4])) || !bytes.Contains(dump, []byte("key.rotated")) {
		t.Fatalf("the dump of %d bytes does not show the keys' beginnings", len(dump))
	}
	for _, secret := range []string{first, second} {
		// The beginning and the end of a key are shown to people; what lies between is not,
		// neither as text nor as the bytes of a column are written.
		between := secret[len("plm_live_")+4 : len(secret)-4]
		for _, form := range []string{between, fmt.Sprintf("%x", between), base64.StdEncoding.EncodeToString([]byte(secret))} {
			if bytes.Contains(dump, []byte(form)) {
				t.Errorf("the dump holds the key %s… as %.12s…", secret[:12], form)
			}
		}
	}
}
