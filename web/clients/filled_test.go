package clients_test

import (
	"os/exec"
	"strings"
	"testing"

	"palimpsest/web/clients"
)

const secret = "plm_live_0123456789"

func TestEverySetUpIsFilledInWithTheKeyOfItsPage(t *testing.T) {
	t.Parallel()
	plain := clients.All(address)
	for i, client := range clients.Filled(address, secret) {
		held := false
		for _, snippet := range client.Snippets {
			held = held || strings.Contains(snippet.Text, secret)
			if strings.Contains(snippet.Text, "$PALIMPSEST_KEY") {
				t.Errorf("%s, %s: the shell is asked for a key that is there:\n%s", client.ID, snippet.ID, snippet.Text)
			}
		}
		if !held {
			t.Errorf("%s: no snippet holds the key", client.ID)
		}
		if client.ID != plain[i].ID {
			t.Errorf("%s stands where %s does without the key", client.ID, plain[i].ID)
		}
	}
	for _, client := range clients.All(address) {
		for _, snippet := range client.Snippets {
			if strings.Contains(snippet.Text, secret) {
				t.Errorf("%s: the key outlives its page", client.ID)
			}
		}
	}
}

// A config or a program is kept, and shared: the key stays out of it.
func TestKeysAreFilledIntoShellsAndFieldsAndNoFiles(t *testing.T) {
	t.Parallel()
	for _, client := range clients.Filled(address, secret) {
		for _, snippet := range client.Snippets {
			if !strings.Contains(snippet.Text, secret) {
				continue
			}
			if snippet.ID == "key" && client.ID == "cursor" {
				continue
			}
			if said, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", snippet.Text).CombinedOutput(); err != nil || strings.HasPrefix(snippet.Text, "{") || strings.HasPrefix(snippet.Text, "#") {
				t.Errorf("%s, %s is no shell's: %v %s\n%s", client.ID, snippet.ID, err, said, snippet.Text)
			}
		}
	}
}

func TestWhatPutsTheKeyIntoTheEnvironmentComesFirst(t *testing.T) {
	t.Parallel()
	for _, client := range clients.Filled(address, secret) {
		for i, snippet := range client.Snippets {
			reads := strings.Contains(strings.ReplaceAll(snippet.Text, "export PALIMPSEST_KEY", ""), "PALIMPSEST_KEY")
			if reads && (i == 0 || client.Snippets[0].Text != `export PALIMPSEST_KEY="`+secret+`"`) {
				t.Errorf("%s reads the key before it is there: %s", client.ID, snippet.ID)
			}
		}
	}
}
