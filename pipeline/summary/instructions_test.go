package summary

import (
	"strings"
	"testing"
)

// E12: what someone asks of a summary stands in both forms of the request, beside a
// workspace's own prompt or ours.
func TestInstructionsForASummaryArePassedOn(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]Settings{
		"ours": {Asked: "Keep the API."}, "the workspace's": {Asked: "Keep the API.", Prompt: "Write in Latin."},
	} {
		for form, text := range map[string]string{FormOwn: written(settings, false, 1000), FormCached: appended(settings, true, 1000)} {
			if !strings.Contains(text, "asks in particular: Keep the API.") || strings.Contains(text, task) != (settings.Prompt == "") ||
				!strings.Contains(text, settings.Prompt) {
				t.Errorf("%s, %s: %s", name, form, text)
			}
		}
	}
	if strings.Contains(written(Settings{}, false, 1000), "in particular") {
		t.Error("asked for nothing in particular")
	}
}
