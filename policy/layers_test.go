package policy_test

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layer says what the packages of a part may import of our own. In both fields "x" is
// the package x alone and "x/..." is x and all below it.
type layer struct {
	part string
	uses []string
}

// layers is the architecture. The first line whose part holds a package decides.
func layers() []layer {
	ofModules := []string{
		"pipeline", "pipeline/client", "pipeline/conversation", "pipeline/tokens", "pipeline/session",
		"pipeline/ledger", "pipeline/certificate", "pipeline/archive", "pipeline/summary", "pipeline/cores",
	}

	return []layer{
		{"cmd/...", []string{"cmd/...", "api/...", "web/...", "tenants/...", "pipeline/...", "billing/...", "migrations/...", "static/..."}},

		{"api/upstream/providerdouble", nil}, // shares no code with our wire formats, so that it finds their faults
		{"api/...", []string{"tenants", "tenants/redaction", "tenants/guard", "pipeline/...", "api/..."}},
		{"web/webtest", []string{"api/...", "web/...", "tenants/...", "billing", "pipeline/...", "migrations/dbtest"}},
		{"web/...", []string{"tenants", "billing", "pipeline/...", "static", "web/..."}},

		{"billing/billingdb", []string{"tenants", "tenants/tenantsdb", "billing", "pipeline/batchdb"}},
		{"billing/...", []string{"tenants", "tenants/tenantsdb", "billing/..."}},
		{"tenants/redaction", []string{"tenants"}},
		{"tenants/tenantsdb", []string{"tenants", "tenants/redaction", "pipeline/batchdb", "pipeline/sums"}}, // nothing that looks like a secret is kept of comments
		{"tenants/guard", nil},
		{"tenants/signon", []string{"tenants", "tenants/guard"}},
		{"tenants/identity", []string{"tenants", "pipeline/localcache"}},
		{"tenants/rotation", []string{"tenants", "tenants/tenantsdb", "tenants/vault"}},
		{"tenants/vault/vaulttest", []string{"tenants/vault"}},
		{"tenants/...", []string{"tenants"}},

		{"pipeline/conversation", nil},
		{"pipeline/cores", nil},
		{"pipeline/excerpts", nil},
		{"pipeline/expression", nil},
		{"pipeline/localcache", nil},
		{"pipeline/fidelity", []string{"pipeline/conversation"}},
		{"pipeline/batchdb", nil},
		{"pipeline/sums", nil},
		{"pipeline/spans", nil},
		{"pipeline/wire/formats", []string{"pipeline/conversation", "pipeline/wire/..."}},
		{"pipeline/wire/...", []string{"pipeline/conversation", "pipeline/wire"}},
		{"pipeline/tokens/...", []string{"pipeline/conversation", "pipeline/tokens"}},
		{"pipeline/ledger", []string{"pipeline/conversation"}},
		{"pipeline/certificate", []string{"pipeline/conversation", "pipeline/ledger", "pipeline/session"}},
		{"pipeline/archive/archivedb", []string{"pipeline/localcache", "pipeline/archive", "pipeline/archive/search", "pipeline/conversation", "pipeline/cores", "pipeline/batchdb", "pipeline/session"}},
		{"pipeline/archive/archivetest", []string{"pipeline/archive", "pipeline/faulttest"}},
		{"pipeline/archive/...", []string{"pipeline/conversation", "pipeline/archive"}},
		// One transaction keeps a lane's projection and the originals it stands for.
		{"pipeline/session/sessiondb", []string{"pipeline/session", "pipeline/jobs", "pipeline/conversation", "pipeline/cost", "pipeline/archive", "pipeline/archive/archivedb", "pipeline/batchdb", "pipeline/sums"}},
		{"pipeline/session/journal", []string{"pipeline/session", "pipeline/conversation", "pipeline/archive"}},
		{"pipeline/session", []string{"pipeline/localcache", "pipeline/conversation", "pipeline/cores", "pipeline/spans", "pipeline/archive", "pipeline/tokens", "pipeline/wire"}},
		{"pipeline/client", []string{"pipeline/conversation", "pipeline/session", "pipeline/wire"}},
		{"pipeline/summary", []string{
			"pipeline/conversation", "pipeline/tokens", "pipeline/ledger", "pipeline/session", "pipeline/archive", "pipeline/spans", "pipeline/wire",
		}},
		{"pipeline/idle", []string{"pipeline", "pipeline/conversation", "pipeline/tokens", "pipeline/session", "pipeline/archive", "pipeline/summary", "pipeline/wire", "pipeline/jobs"}},
		{"pipeline/jobs", nil},
		{"pipeline/jobs/jobsdb", []string{"pipeline/jobs"}},
		{"pipeline/cost", []string{"pipeline/localcache", "pipeline/conversation", "pipeline/tokens", "pipeline/session", "pipeline/wire"}},
		{"pipeline/prompt", []string{
			"pipeline", "pipeline/client", "pipeline/conversation", "pipeline/cost", "pipeline/tokens", "pipeline/session", "pipeline/spans", "pipeline/archive", "pipeline/ledger", "pipeline/wire", "pipeline/modules/ipc",
		}},
		{"pipeline/replay", []string{
			"pipeline", "pipeline/conversation", "pipeline/tokens", "pipeline/session", "pipeline/archive",
			"pipeline/prompt", "pipeline/modules", "pipeline/modules/compactionbridge", "pipeline/wire/...",
		}},
		{"pipeline/preview", []string{
			"pipeline", "pipeline/conversation", "pipeline/localcache", "pipeline/archive", "pipeline/cost", "pipeline/fidelity", "pipeline/tokens", "pipeline/session", "pipeline/modules/ipc", "pipeline/wire", "pipeline/wire/anthropic",
		}},
		{"pipeline/preview/previewdb", []string{"pipeline/batchdb", "pipeline/preview"}},
		{"pipeline/pipelinetest", []string{
			"pipeline", "pipeline/client", "pipeline/conversation", "pipeline/fidelity", "pipeline/session", "pipeline/wire", "pipeline/wire/anthropic", "pipeline/sharedtest",
		}},
		{"pipeline/faulttest", nil},
		{"pipeline/reporttest", nil},
		{"pipeline/fulltest", nil},
		{"pipeline/sharedtest", nil},
		{"pipeline/modules", append([]string{"pipeline/modules/..."}, ofModules...)},
		{"pipeline/modules/semanticcache/semanticcachedb", []string{"pipeline/batchdb", "pipeline/modules/semanticcache", "pipeline/archive"}},
		{"pipeline/modules/semanticcache", append([]string{"pipeline/localcache", "pipeline/spans", "pipeline/wire"}, ofModules...)},
		{"pipeline/modules/patterns/patternsdb", []string{"pipeline/batchdb", "pipeline/modules/patterns"}},
		{"pipeline/modules/rehydrator", append([]string{"pipeline/archive/search"}, ofModules...)},
		{"pipeline/modules/ipc", append([]string{"pipeline/modules/ipc/extract"}, ofModules...)},
		{"pipeline/modules/...", ofModules},
		{"pipeline", []string{"pipeline/client", "pipeline/conversation", "pipeline/session", "pipeline/spans", "pipeline/tokens", "pipeline/wire"}},

		{"migrations", nil},
		{"migrations/localdb", nil},
		{"migrations/partitions", nil},
		{"migrations/dbtest", []string{"migrations", "migrations/localdb", "tenants", "tenants/tenantsdb"}},
		{"static", nil},
	}
}

// Each package may import these, which import no other package here: expressions compiles regular expressions at their
// first use, excerpts shortens texts.
const (
	expressions = "pipeline/expression"
	excerpts    = "pipeline/excerpts"
)

// library is a dependency that only some of our folders may import.
type library struct {
	prefix  string
	allowed func(folder string) bool
	rule    string
}

func libraries() []library {
	return []library{
		{"gorm.io/", func(folder string) bool {
			return strings.HasSuffix(folder, "db") || within(folder, "cmd")
		}, "only packages whose name ends in db, and cmd"},
		{"github.com/labstack/echo", func(folder string) bool {
			return within(folder, "api") || within(folder, "web") || within(folder, "cmd")
		}, "only api, web and cmd"},
		{"github.com/a-h/templ", func(folder string) bool { return within(folder, "web") }, "only web"},
		{"github.com/maypok86/otter", func(folder string) bool { return folder == "pipeline/localcache" }, "only pipeline/localcache, which compiles it once"},
		{"github.com/riverqueue/", func(folder string) bool { return folder == "pipeline/jobs/jobsdb" }, "only pipeline/jobs/jobsdb"},
		{"github.com/go-webauthn/", func(folder string) bool { return folder == "tenants/passkey" }, "only tenants/passkey"},
		{"github.com/stripe/", func(folder string) bool { return within(folder, "billing") }, "only billing"},
		{"go.opentelemetry.io/", func(folder string) bool { return folder == "pipeline/spans" || within(folder, "cmd") }, "only pipeline/spans and cmd"},
		{"net/http", func(folder string) bool { return !within(folder, "pipeline/modules") }, "no module"},
	}
}

func TestEachPackageImportsOnlyWhatItsLayerMay(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Test {
			continue
		}
		for _, target := range source.imports() {
			to, ours := strings.CutPrefix(target, module)
			if ours && !mayImport(source.Folder, to) && !namesWorkspaces(source, to) {
				t.Errorf("%s: %s must not import %s", source.Path, source.Folder, to)
			}
		}
	}
}

// namesWorkspaces reports whether an import is that of tenants by a file of the pipeline which
// needs only the ids of workspaces from there, their transactions, and who reads and sees what.
func namesWorkspaces(source sourceFile, target string) bool {
	if target != "tenants" || !within(source.Folder, "pipeline") {
		return false
	}
	alone := true
	ast.Inspect(source.Syntax, func(node ast.Node) bool {
		if used, is := node.(*ast.SelectorExpr); is {
			if from, is := used.X.(*ast.Ident); is && from.Name == "tenants" && !slices.Contains([]string{"Tenant", "Reader", "VisibleIn", "WithVisible", "OwnWork"}, used.Sel.Name) && !strings.HasSuffix(used.Sel.Name, "WorkspaceID") {
				alone = false
			}
		}
		return alone
	})
	return alone
}

func TestEachLibraryIsImportedOnlyWhereItBelongs(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Test || isTestSupport(source.Folder) {
			continue
		}
		for _, target := range source.imports() {
			for _, library := range libraries() {
				if strings.HasPrefix(target, library.prefix) && !library.allowed(source.Folder) {
					t.Errorf("%s imports %s: %s may", source.Path, target, library.rule)
				}
			}
		}
	}
}

func TestNoProductionFileImportsTestSupport(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Test || isTestSupport(source.Folder) {
			continue
		}
		for _, target := range source.imports() {
			if to, ours := strings.CutPrefix(target, module); ours && isTestSupport(to) {
				t.Errorf("%s imports %s, which is for tests", source.Path, to)
			}
		}
	}
}

// What differs between wire formats is asked of their codecs, so that a new format is a new
// package and a line in the list of formats.
func TestOnlyCodecsAskWhichFormatTheyHave(t *testing.T) {
	t.Parallel()

	formats := regexp.MustCompile(`\bconversation\.(Anthropic|OpenAIChat|OpenAIResponses|Gemini|GeminiInteractions)\b`)
	for _, source := range sources(t) {
		if source.Test || isTestSupport(source.Folder) || within(source.Folder, "pipeline/wire") {
			continue
		}
		if found := formats.Find(source.Text); found != nil {
			t.Errorf("%s asks for %s: let wire.Codec say what differs", source.Path, found)
		}
	}
}

func TestEveryTopLevelFolderIsOneOfTheFixedOnes(t *testing.T) {
	t.Parallel()

	fixed := []string{"cmd", "web", "api", "tenants", "pipeline", "billing", "migrations", "static", "policy"}
	for _, source := range sources(t) {
		top, _, _ := strings.Cut(source.Folder, "/")
		if top != "." && !slices.Contains(fixed, top) {
			t.Errorf("%s lies outside the folders %v", source.Path, fixed)
		}
	}
}

func TestEveryPackageHasALayer(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Test {
			continue
		}
		known := slices.ContainsFunc(layers(), func(layer layer) bool { return holds(layer.part, source.Folder) })
		if !known && source.Folder != "." {
			t.Errorf("%s: no layer says what %s may import", source.Path, source.Folder)
		}
	}
}

func TestLayersDecideAsTheDesignSays(t *testing.T) {
	t.Parallel()

	for _, edge := range []struct {
		from, to string
		may      bool
	}{
		{"cmd/palimpsest", "tenants/tenantsdb", true},
		{"api", "tenants", true},
		{"api", "tenants/tenantsdb", false},
		{"api", "web", false},
		{"api/manage", "api/upstream", true},
		{"api/upstream/providerdouble", "pipeline/wire", false},
		{"cmd/tools/memorybench", "pipeline/modules", true},
		{"pipeline/modules/rehydrator", "cmd/tools/memorybench", false},
		{"migrations/dbtest", "cmd/palimpsest", false},
		{"web/keys", "api", false},
		{"web/keys", "web/components", true},
		{"web/keys", "tenants/vault", false},
		{"tenants/vault", "tenants", true},
		{"tenants/vault", "tenants/tenantsdb", false},
		{"tenants/rotation", "tenants/tenantsdb", true},
		{"tenants/rotation", "tenants/identity", false},
		{"tenants", "pipeline/conversation", false},
		{"billing", "pipeline", false},
		{"pipeline", "pipeline/session", true},
		{"pipeline", "tenants", false},
		{"pipeline", "pipeline/modules", false},
		{"pipeline/wire/anthropic", "pipeline/wire", true},
		{"pipeline/wire", "pipeline/wire/anthropic", false},
		{"pipeline/wire/anthropic", "pipeline/wire/openaichat", false},
		{"pipeline/wire/anthropic", "pipeline/tokens", false},
		{"pipeline/conversation", "pipeline/wire", false},
		{"pipeline/modules", "pipeline/modules/ipc", true},
		{"pipeline/modules/ipc", "pipeline/archive", true},
		{"pipeline/modules/ipc", "pipeline/modules/patterns", false},
		{"pipeline/modules/ipc", "pipeline/wire", false},
		{"pipeline/modules/ipc", "tenants", false},
		{"pipeline/session/sessiondb", "pipeline/session", true},
		{"pipeline/archive", "pipeline/session", false},
		{"pipeline/client", "pipeline/session", true},
		{"pipeline/client", "pipeline/prompt", false},
		{"migrations", "tenants", false},
		{"static", "web", false},
		{"unknown", "tenants", false},
	} {
		if got := mayImport(edge.from, edge.to); got != edge.may {
			t.Errorf("mayImport(%s, %s) = %v, want %v", edge.from, edge.to, got, edge.may)
		}
	}
}

// isTestSupport reports whether a folder holds a package outside the product: it
// serves tests, or it is a tool that measures and tries the product.
func isTestSupport(folder string) bool {
	return strings.HasSuffix(path.Base(folder), "test") || within(folder, "cmd/tools")
}

// mayImport reports whether a package in one folder may import the package in another.
func mayImport(from, to string) bool {
	if to == expressions || to == excerpts {
		return from != to
	}
	for _, layer := range layers() {
		if holds(layer.part, from) {
			return slices.ContainsFunc(layer.uses, func(use string) bool { return holds(use, to) })
		}
	}

	return false
}

// holds reports whether a part, "x" or "x/...", holds the package in a folder.
func holds(part, folder string) bool {
	root, deep := strings.CutSuffix(part, "/...")

	return folder == root || deep && within(folder, root)
}

// within reports whether a folder is another or lies below it.
func within(folder, other string) bool {
	return folder == other || strings.HasPrefix(folder, other+"/")
}
