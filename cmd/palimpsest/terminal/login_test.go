package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/credential"
)

// A new login's key replaces the old one in the files of clients, but no client of another server gets it.
func TestLoginRefreshesTheKeysOfClientsOfItsServer(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{"https://llm.example.com": "plm_new", "https://other.example.com": "plm_old"} {
		dir := t.TempDir()
		place := (&installation{}).place(dir, server)
		connects("cline", "plm_old")(t, &connect.Connector{Place: place}, "https://llm.example.com")
		said := new(bytes.Buffer)
		app := &App{Err: said, Here: func() (connect.Place, error) { return place, nil }}
		rekey(app, credential.Login{Server: "https://llm.example.com", Key: "plm_old"}, server, "plm_new")
		text, err := os.ReadFile(filepath.Join(dir, "home/.cline/data/settings/providers.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("after a login to %s the file holds %s", server, text)
		}
		if !strings.Contains(said.String(), "providers.json") && !strings.Contains(said.String(), "connect --all") {
			t.Errorf("it says %q", said)
		}
	}
}
