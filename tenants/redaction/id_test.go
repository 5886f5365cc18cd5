package redaction_test

import (
	"strings"
	"testing"

	"palimpsest/tenants/redaction"
)

// S14: an id is logged as it is. A secret of its length and with its dashes is not.
func TestSecretsInTheShapeOfAnIDAreRedacted(t *testing.T) {
	t.Parallel()
	const id = "01938f7e-8c4a-7d31-9f0e-5eed00000001"
	if got := redaction.Text(id); got != id {
		t.Errorf("%s becomes %s", id, got)
	}
	for _, secret := range []string{"sk-ant-0-123456789abcdef-0123456789a", "AIzaSyAb-0123-4567-89ab-0123456789ab"} {
		shaped := secret[:8] + "-" + secret[9:23] + "-" + secret[24:]
		if len(shaped) != len(id) {
			t.Fatalf("%s has %d characters", shaped, len(shaped))
		}
		if got := redaction.Text(shaped); strings.Contains(got, shaped[len(shaped)-12:]) {
			t.Errorf("%s becomes %s", shaped, got)
		}
	}
}
