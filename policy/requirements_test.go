package policy_test

import (
	"regexp"
	"strings"
	"testing"
)

// A comment of a test that begins with the names of rows, such as "A3, W33: …", cites rows of docs/requirements.
func TestRowsThatTestsCiteAreListed(t *testing.T) {
	t.Parallel()

	listed := map[string]bool{}
	for _, page := range []string{"compaction", "security", "wire"} {
		for _, row := range regexp.MustCompile(`(?m)^\| ([A-EWS]\d+) \|`).FindAllStringSubmatch(readFile(t, "docs/requirements/"+page+".md"), -1) {
			listed[row[1]] = true
		}
	}
	citation := regexp.MustCompile(`(?m)^\s*// ([A-EWS]\d+(?:, [A-EWS]\d+)*)[:,] `)
	cited := map[string]bool{}
	for _, source := range sources(t) {
		if !source.Test {
			continue
		}
		for _, comment := range citation.FindAllSubmatch(source.Text, -1) {
			for row := range strings.SplitSeq(string(comment[1]), ", ") {
				cited[row] = true
				if !listed[row] {
					t.Errorf("%s cites %s, which docs/requirements lacks", source.Path, row)
				}
			}
		}
	}
	if len(cited) < 100 {
		t.Errorf("tests cite %d rows: the comments are no longer found", len(cited))
	}
}
