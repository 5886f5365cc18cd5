package connect

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The docs say of every client what it changes behind a base URL of one's own.
func TestDocsSayWhatClientsChange(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for _, client := range Clients() {
		for _, one := range client.Changed {
			fmt.Fprintf(&table, "| %s | %s | %s |\n", client.Title, one.What, one.Reset)
		}
	}
	text, err := os.ReadFile("../../../docs/connect.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "| --- | --- | --- |\n"+table.String()+"\n") {
		t.Errorf("docs/connect.md lacks the table\n%s", table.String())
	}
	for _, client := range Clients() {
		if !strings.Contains(string(text), "`"+client.ID+"`") {
			t.Errorf("docs/connect.md does not tell of %s", client.ID)
		}
	}
}
