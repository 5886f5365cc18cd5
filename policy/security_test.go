package policy_test

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The table of docs/security.md has every row, each test in it exists where it says, and
// names the row in its comment or its body.
func TestTableOfSecurityTestsIsTrue(t *testing.T) {
	t.Parallel()

	const rows = 43
	texts := testTexts(t)

	page := readFile(t, "docs/security.md")
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)` \\(([a-z/]+)\\)")
	anywhere := map[string]bool{}
	for name := range texts {
		anywhere[name[strings.IndexByte(name, ' ')+1:]] = true
	}
	for _, test := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(page, -1) {
		if !anywhere[test[1]] {
			t.Errorf("there is no %s", test[1])
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(page) {
		row := regexp.MustCompile(`^\| (S\d+) \|`).FindStringSubmatch(line)
		for _, test := range named.FindAllStringSubmatch(line, -1) {
			text, is := texts[test[2]+" "+test[1]]
			if !is {
				t.Errorf("there is no %s in %s", test[1], test[2])
			}
			if is && row != nil && !regexp.MustCompile(`\b`+row[1]+`\b`).MatchString(text) {
				t.Errorf("%s in %s does not name %s", test[1], test[2], row[1])
			}
			if row != nil {
				seen[row[1]] = true
			}
		}
	}
	// What was found open names tests itself or the rows that do.
	_, found, _ := strings.Cut(page, "## What was found open")
	found, _, _ = strings.Cut(found, "\n## ")
	lines := 0
	for line := range strings.Lines(found) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || cells[0] == "| found" || strings.HasPrefix(cells[0], "| ---") {
			continue
		}
		lines++
		if row := strings.TrimSuffix(cells[2], " |"); !seen[row] && !named.MatchString(row) {
			t.Errorf("no test shows that this is shut: %s", cells[0])
		}
	}
	if lines < 17 {
		t.Errorf("%d lines of what was found open", lines)
	}
	for row := 1; row <= rows; row++ {
		if name := "S" + strconv.Itoa(row); !seen[name] {
			t.Errorf("%s has no test in the table", name)
		}
	}
}

// testTexts returns every test, by its folder and its name, with its comment and its body.
func testTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, source := range sources(t) {
		if !source.Test {
			continue
		}
		text := readFile(t, source.Path)
		for _, declared := range source.Syntax.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is || !strings.HasPrefix(function.Name.Name, "Test") {
				continue
			}
			from := function.Pos()
			if function.Doc != nil {
				from = function.Doc.Pos()
			}
			base := source.Syntax.FileStart
			texts[source.Folder+" "+function.Name.Name] = text[from-base : function.End()-base]
		}
	}
	return texts
}

// S28: whatever the program has done as a job, a test does twice, and names S28.
func TestEveryJobIsDoneTwiceInATest(t *testing.T) {
	t.Parallel()

	// By what names a kind where it is registered.
	tests := map[string]string{
		"sessiondb.JobPlan":       "pipeline/idle TestTheEpochIsPlannedBeforeTheRequestComes",
		"sessiondb.JobExpirePlan": "pipeline/idle TestAPlanThatNobodyUsesIsDeleted",
		"jobDelete":               "tenants/deletion TestADeletionThatIsCutOffGoesOn",
		"delete_workspaces":       "tenants/deletion TestADeletionThatIsCutOffGoesOn",
		"jobNotice":               "billing TestEveryOrderOfNoticesEndsInTheSameState",
		"billing":                 "billing TestUsageIsReportedOnceThroughFailures",
		"subscription_ends":       "billing TestSubscriptionEndsWithItsWorkspace",
		"alerts":                  "api/alerts TestAlertIsRaisedOnceHoweverOftenTheRulesAreLookedAt",
		"alerts.JobDeliver":       "api/alerts TestDeliveryIsTriedForADayWithLongerAndLongerPauses",
		"mail":                    "tenants/mail TestMailIsSentOnceAndForgotten",
		"archive":                 "pipeline/archive/archivedb TestTwoMoversDoNotGetInEachOthersWay",
		"index":                   "pipeline/archive/archivedb TestIndexingTwiceChangesNothing",
		"embeddings":              "pipeline/archive/archivedb TestEmbeddingGoesOnWhereItStopped",
		"trigger_advice":          "pipeline/preview TestAdviceIsMadeOnceADay",
		"fold_sums":               "tenants/tenantsdb TestFoldedSumsCountOnce",
		"partitions":              "migrations/partitions TestOldPartitionsAreDropped",
		"upkeep":                  "pipeline/session/sessiondb TestASweepDeletesWhatHasExpiredAndNothingElse",
	}
	texts := testTexts(t)
	registered := regexp.MustCompile(`\b(?:work|w)\.(?:Handle|Every|Share)\("?([\w.]+)"?,`)
	seen := map[string]bool{}
	for _, source := range sources(t) {
		if source.Folder != "cmd/palimpsest" || source.Test {
			continue
		}
		for _, found := range registered.FindAllSubmatch(source.Text, -1) {
			kind := string(found[1])
			seen[kind] = true
			if !strings.Contains(texts[tests[kind]], "S28") {
				t.Errorf("%s: the job %s is done twice in no test that names S28 (%q)", source.Path, kind, tests[kind])
			}
		}
	}
	if len(seen) != len(tests) {
		t.Errorf("the program registers %v, and the table has %d jobs", seen, len(tests))
	}
}

// S33: every package that starts goroutines, and has tests, looks that none is left
// behind when they are over; but for one whose goroutines nobody can stop.
func TestPackagesThatStartGoroutinesLookForThem(t *testing.T) {
	t.Parallel()

	// What writes Markdown as HTML cannot be told to end; web/render bounds how many
	// such texts are under way, and waits for none.
	const unstoppable = "web/render"
	// It runs other programs and serves measuring only.
	const clients = "cmd/tools/apiclients"
	starts, tested, looks := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, source := range sources(t) {
		if source.Test {
			tested[source.Folder] = true
			text := string(source.Text)
			looks[source.Folder] = looks[source.Folder] || strings.Contains(text, "goleak.VerifyTestMain(") || strings.Contains(text, "goleak.Find(") || strings.Contains(text, "dbtest.Main(")
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			if startsGoroutine(node) {
				starts[source.Folder] = source.Path
			}
			return true
		})
	}
	if len(starts) < 15 {
		t.Fatalf("goroutines are found in %d packages", len(starts))
	}
	for folder, path := range starts {
		looks[folder] = looks[folder] || within(folder, "web") && looks["web/pages"] // which runs every page
		if tested[folder] && !looks[folder] && folder != unstoppable && folder != clients {
			t.Errorf("%s starts goroutines, and no test in its folder looks that they end", path)
		}
	}
}

// startsGoroutine reports whether a node is a go statement, or a call of a method Go as
// groups have it.
func startsGoroutine(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		called, is := node.Fun.(*ast.SelectorExpr)
		return is && called.Sel.Name == "Go" && len(node.Args) == 1
	}
	return false
}
