package connect

import (
	"os"
	"strings"
	"testing"
)

// A new key takes the place of the old one in every client, and disconnect still gives the files back.
func TestNewKeyReplacesTheOldOneInConnectedClients(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	const mine = "# mine\nOTHER=1\n"
	env := c.Place.home(".qwen", ".env")
	if err := os.MkdirAll(c.Place.home(".qwen"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(env, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"qwen-code", "cline", "opencode", "droid", "codex"} {
		setup := testSetup()
		setup.Saved = true
		connectTo(t, c, name, setup)
	}
	other := testSetup()
	other.Key = "plm_of_another_login"
	connectTo(t, c, "crush", other)

	changed, err := c.Rekey(testKey, "plm_new")
	if err != nil || len(changed) != 4 {
		t.Fatalf("changed are %v, %v", changed, err)
	}
	for _, path := range append(changed, env) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "plm_new") || strings.Contains(string(text), testKey) {
			t.Errorf("%s holds %s", path, text)
		}
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != privateFile {
			t.Errorf("%s: %v, %v", path, about.Mode(), err)
		}
	}
	if text, err := os.ReadFile(c.Place.keyFile("crush")); err != nil || strings.TrimSpace(string(text)) != other.Key {
		t.Errorf("the key of another login became %q, %v", text, err)
	}
	if _, err := c.Disconnect(""); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(env); err != nil || string(text) != mine {
		t.Errorf("after disconnect it holds %q, %v", text, err)
	}
}
