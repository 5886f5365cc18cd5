package pages_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/archive"
	"palimpsest/web/webtest"
)

// What a person says of people goes to the provider as it came, and nowhere else: not into any row
// or message. The session goes on as one, in every process, and its archive is whole.
func TestRedactedSessionIsStoredWithoutPersonalDataAndWhole(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.Post("/settings", "time_zone", "UTC", "managers_read", "all", "members_read", "all", "viewers_read", "none",
		"redact", "name", "redact", "email", "redact", "card", "redact", "phone", "redact", "key", "redact_names", "Mia Wallace")
	double := webtest.Provider(t, 1_000_000)
	secret := person.Connect(double, "ci")
	canaries := []string{"Mia Wallace", "mia@example.com", "4111 1111 1111 1111", "+49 30 901820", "sk-canary-0123456789"}
	var messages []any
	for turn := range 14 {
		said := fmt.Sprintf("Mia Wallace <mia@example.com> asks %d: 4111 1111 1111 1111, +49 30 901820, sk-canary-0123456789. %s", turn, strings.Repeat("Please look again. ", 200))
		messages = append(messages, map[string]any{"role": "user", "content": said})
		body, err := json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		status, _ := person.Exchange(secret, 8_000, "/v1/messages", string(body), "X-Palimpsest-Session-Id", "talk")
		last, _ := double.Last()
		newest, err := json.Marshal(messages[len(messages)-1])
		if err != nil || status != http.StatusOK || !bytes.Contains(last.Body, newest) {
			t.Fatalf("turn %d: status %d (%v), the provider got %.300s", turn, status, err, last.Body)
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": "I have written to mia@example.com. " + strings.Repeat("It is done. ", 100)})
	}
	newest := person.Newest()
	rows := person.Database.Rows(t, person.Workspace.ID)
	if newest.Sums.Epochs == 0 || strings.Count(rows, newest.ID.String()) == 0 {
		t.Fatalf("%d epochs in %+v", newest.Sums.Epochs, newest)
	}
	lanes, err := person.Archive.Lanes(t.Context(), person.Workspace.ID, newest.ID)
	if err != nil || len(lanes) != 1 || lanes[0].Entries != len(messages)-1 {
		t.Fatalf("%+v, %v: the session fell apart", lanes, err)
	}
	var stored strings.Builder
	err = archive.Restore(t.Context(), person.Archive, person.Workspace.ID, lanes[0].ID, 1000, func(restored archive.Restored) error {
		stored.Write(restored.Raw)
		return restored.Damage
	})
	if err != nil || !strings.Contains(stored.String(), "[name-") {
		t.Errorf("the archive isn't whole: %v", err)
	}
	for _, canary := range canaries {
		// The workspace's own list of names stands in its settings and in the audit log.
		inRows := canary != "Mia Wallace" && strings.Contains(rows, canary)
		if inRows || strings.Contains(stored.String(), canary) || strings.Contains(newest.Title, canary) {
			t.Errorf("%s is stored; the title is %s", canary, newest.Title)
		}
	}
	page := person.Get("/settings")
	if !strings.Contains(page.TestID("redacted-email"), "Replaced 27 times") || page.TestID("redacted-card") == "" {
		t.Errorf("the page counts %q", page.TestID("redacted-email"))
	}
}
