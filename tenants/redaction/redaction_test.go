package redaction_test

import (
	"strings"
	"testing"

	"palimpsest/tenants/redaction"
)

func TestSecretsAreTakenOutAndNothingElse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Incorrect API key provided: sk-proj-abcd1234efgh.`:           `Incorrect API key provided: [redacted].`,
		`{"error":{"message":"no","token":"opaque","max_tokens":12}}`: `{"error":{"message":"no","token":"[redacted]","max_tokens":12}}`,
		`{"headers":{"X-Api-Key": ["a", "b"]}}`:                       `{"headers":{"X-Api-Key":"[redacted]"}}`,
		`Bearer abcdefgh12345678 at https://u:p@host/x?key=v&a=b`:     `[redacted] at https://[redacted]@host/x?key=[redacted]&a=b`,
		`plm_live_abcdefghijkl1234 and gsk_abcdefgh1234`:              `[redacted] and [redacted]`,
		`plm_x_abcdefghijkl`: `[redacted]`,
		`plm_live_ab`:        `plm_live_ab`,
		`plm_a sk-12345678`:  `plm_a [redacted]`,
		`prompt is too long: 210000 tokens > 200000 maximum`: `prompt is too long: 210000 tokens > 200000 maximum`,
		`019a1234-0000-7000-8000-00000000abcd`:               `019a1234-0000-7000-8000-00000000abcd`,
		``:                                                   ``,
	} {
		if got := redaction.Clean(text); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
	if got := redaction.Text(strings.Repeat("x", 9)); got != "xxxxxxxxx" {
		t.Errorf("plain text becomes %s", got)
	}
}
