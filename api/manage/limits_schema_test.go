package manage_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/tenants"
)

func TestOpenAPIAndDocsDescribeEveryLimit(t *testing.T) {
	t.Parallel()
	var ofKeys, asked, shown, docs strings.Builder
	for _, limit := range tenants.QuotaLimits() {
		kind := map[bool]string{true: "number", false: "integer"}[limit.IsMoney]
		says := strings.TrimSpace(limit.Label + ". " + limit.Hint)
		fmt.Fprintf(&ofKeys, "        %s: {type: %s, minimum: 0, description: %q}\n", limit.Name, kind, says+" 0 for no limit")
		fmt.Fprintf(&docs, "| `%s` | %s |\n", limit.Name, limit.Counts)
		if !limit.IsMoney {
			says += " Of end_user only."
		}
		if limit.OfEndUser {
			fmt.Fprintf(&asked, "                      %s: {type: %s, minimum: 0, description: %q}\n", limit.Name, kind, says+" 0 for no limit")
			fmt.Fprintf(&shown, "        %s: {type: %s, description: %q}\n", limit.Name, kind, says+map[bool]string{true: " 0 for no limit", false: " Left out for no limit"}[limit.IsMoney])
		}
	}
	const test = "TestOpenAPIAndDocsDescribeEveryLimit"
	writtenFrom(t, "        ", test, "the limits of API keys", ofKeys.String())
	writtenFrom(t, "                      ", test, "the limits that are asked for", asked.String())
	writtenFrom(t, "        ", test, "the limits of budgets", shown.String())
	writtenBetween(t, "../../docs/api-keys.md", "| field | counts |\n| --- | --- |\n", "\nRates are even", docs.String())
}
