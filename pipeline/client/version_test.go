package client_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/client"
)

func TestVersionIsTheFirstThatTheUserAgentNames(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"claude-cli/2.1.330 (external, cli)":    "2.1.330",
		"codex_cli_rs/0.169.0 (Debian 12; x86)": "0.169.0",
		"Mozilla/5.0 curl/8.1":                  "5.0",
		"curl":                                  "",
		"name/beta other/1.2-rc.1;x":            "1.2-rc.1",
		"a/" + strings.Repeat("1", 100):         strings.Repeat("1", 32),
		"":                                      "",
	} {
		if got := client.Version(http.Header{"User-Agent": {agent}}); got != want {
			t.Errorf("%q: version %q, want %q", agent, got, want)
		}
	}
}
