package policy_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/clients"
)

// settingName matches the names of environment variables that are ours.
func settingName() *regexp.Regexp {
	return regexp.MustCompile(`\b(PALIMPSEST_[A-Z0-9_]+|PRXY_[A-Z]+|DATABASE_[A-Z_]*URLS?|REDIS_URL|SMTP_URL|STRIPE_[A-Z_]+|OTEL_[A-Z_]+)\b`)
}

// settingsOfTheProgram returns the environment variables that the program reads:
// those that its configuration names.
func settingsOfTheProgram(t *testing.T) []string {
	t.Helper()

	names := map[string]bool{}
	for _, source := range sources(t) {
		if source.Test || !strings.HasPrefix(source.Path, "cmd/palimpsest/settings/") {
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
				for _, name := range settingName().FindAllString(literal.Value, -1) {
					names[name] = true
				}
			}
			return true
		})
	}
	if !names["PALIMPSEST_ADDR"] {
		t.Fatal("cmd/palimpsest/settings does not name PALIMPSEST_ADDR")
	}

	return sorted(names)
}

func TestOperationsPageListsExactlyTheSettingsOfTheProgram(t *testing.T) {
	t.Parallel()

	documented := map[string]bool{}
	for line := range strings.Lines(readFile(t, "docs/operations.md")) {
		if cell, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " |"); isRow && strings.HasPrefix(line, "| `") {
			for _, name := range settingName().FindAllString(cell, -1) {
				documented[name] = true
			}
		}
	}

	if got, want := sorted(documented), settingsOfTheProgram(t); !slices.Equal(got, want) {
		t.Errorf("docs/operations.md lists\n%v\nthe program reads\n%v", got, want)
	}
}

func TestDocsNameOnlySettingsThatExist(t *testing.T) {
	t.Parallel()

	known := settingsOfTheProgram(t)
	for name, text := range pages(t) {
		for _, setting := range settingName().FindAllString(text, -1) {
			// The variables in which clients and the commands of people hold their login.
			if setting != "PALIMPSEST_KEY" && setting != "PALIMPSEST_URL" && !slices.Contains(known, setting) {
				t.Errorf("%s names %s, which the program does not read", name, setting)
			}
		}
	}
}

func TestDocsNameOnlyMakeTargetsThatExist(t *testing.T) {
	t.Parallel()

	makefile := readFile(t, "Makefile")
	named := regexp.MustCompile("(?m)(?:`|^|&& )make ([a-z-]+)")
	count := 0
	for name, text := range pages(t) {
		for _, target := range named.FindAllStringSubmatch(text, -1) {
			count++
			if !regexp.MustCompile(`(?m)^` + target[1] + `:.*## `).MatchString(makefile) {
				t.Errorf("%s names `make %s`, which the Makefile does not explain", name, target[1])
			}
		}
	}
	if count == 0 {
		t.Error("no page says what to type")
	}
}

func TestReadmeSetsClientsUpAsTheDashboardDoes(t *testing.T) {
	t.Parallel()

	_, rest, _ := strings.Cut(readFile(t, "README.md"), "## Set up a client")
	section, _, _ := strings.Cut(rest, "\n## ")
	blocks, known := codeBlocks(section), snippetsOfTheDashboard()
	if len(blocks) < 4 {
		t.Fatalf("README.md sets up %d clients", len(blocks))
	}
	for _, block := range blocks {
		if !slices.Contains(known, block) {
			t.Errorf("the dashboard has no such snippet:\n%s", block)
		}
	}
}

func TestClientsPageSetsEveryClientUpAsTheDashboardDoes(t *testing.T) {
	t.Parallel()

	blocks, known := codeBlocks(readFile(t, "docs/clients.md")), snippetsOfTheDashboard()
	for _, snippet := range known {
		if !slices.Contains(blocks, snippet) {
			t.Errorf("docs/clients.md lacks the dashboard's snippet:\n%s", snippet)
		}
	}
	for _, block := range blocks {
		if !slices.Contains(known, block) {
			t.Errorf("the dashboard lacks the snippet of docs/clients.md:\n%s", block)
		}
	}
}

// snippetsOfTheDashboard returns how the dashboard of a first start sets clients up.
func snippetsOfTheDashboard() []string {
	var snippets []string
	for _, client := range clients.All("http://127.0.0.1:8080") {
		for _, snippet := range client.Snippets {
			snippets = append(snippets, snippet.Text)
		}
	}

	return snippets
}

// codeBlocks returns what stands between the fences of a text.
func codeBlocks(text string) []string {
	var blocks []string
	for _, block := range regexp.MustCompile("(?s)```[a-z]+\n(.*?)\n```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block[1])
	}

	return blocks
}

func TestDocsNameOnlyHeadersThatExist(t *testing.T) {
	t.Parallel()

	var code strings.Builder
	for _, source := range sources(t) {
		if !source.Test && (source.Folder == "api" || source.Path == "pipeline/reply.go") {
			code.Write(source.Text)
		}
	}
	for _, limit := range tenants.QuotaLimits() {
		code.WriteString(`note("Ratelimit-Limit-` + limit.Header + `" note("Ratelimit-Remaining-` + limit.Header + `"`)
	}
	header := regexp.MustCompile(`X-Palimpsest-([A-Z][A-Za-z-]+[a-z])`)
	count := 0
	for name, text := range pages(t) {
		for _, match := range header.FindAllStringSubmatch(text, -1) {
			count++
			forms := []string{`"` + match[0] + `"`, `"` + match[0] + `-"`, `set("` + match[1] + `"`, `note("` + match[1] + `"`, `Header{"` + match[1] + `"`}
			if !slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(code.String(), form) }) {
				t.Errorf("%s names %s, which the proxy neither reads nor sets", name, match[0])
			}
		}
	}
	if count == 0 {
		t.Error("no page names a header")
	}
}

func TestOperationsPageListsEveryKindOfJob(t *testing.T) {
	t.Parallel()

	kinds := map[string]bool{}
	named := regexp.MustCompile(`\bwork\.(?:Every|Share)\("([a-z_]+)"|\bjobs\.Kind = "([a-z_]+)"`)
	for _, source := range sources(t) {
		if source.Test || isTestSupport(source.Folder) {
			continue
		}
		for _, kind := range named.FindAllSubmatch(source.Text, -1) {
			kinds[string(kind[1])+string(kind[2])] = true
		}
	}
	documented := map[string]bool{}
	_, section, _ := strings.Cut(readFile(t, "docs/operations.md"), "## Work off the request path")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(section, -1) {
		documented[row[1]] = true
	}
	if got, want := sorted(documented), sorted(kinds); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("docs/operations.md lists\n%v\nthe program does\n%v", got, want)
	}
}

func TestReadmeLeadsToEveryPage(t *testing.T) {
	t.Parallel()

	readme := readFile(t, "README.md")
	for name := range pages(t) {
		if name != "README.md" && !strings.Contains(readme, "("+name+")") {
			t.Errorf("README.md does not link to %s", name)
		}
	}
}

func TestDocsNameOnlyCommandsThatExist(t *testing.T) {
	t.Parallel()

	commands := map[string]bool{"completion": true} // by cobra
	use := regexp.MustCompile(`(?:Use:\s+|onSession\()"([a-z-]+)`)
	for _, source := range sources(t) {
		if !source.Test && within(source.Folder, "cmd/palimpsest") {
			for _, command := range use.FindAllSubmatch(source.Text, -1) {
				commands[string(command[1])] = true
			}
		}
	}
	named := regexp.MustCompile("(?m)(?:`|^|/)palimpsest ([a-z]+)")
	for name, text := range pages(t) {
		for _, command := range named.FindAllStringSubmatch(text, -1) {
			if !commands[command[1]] {
				t.Errorf("%s names `palimpsest %s`; the commands are %v", name, command[1], sorted(commands))
			}
		}
	}
}

func TestEveryRelativeLinkOfTheDocsLeadsSomewhere(t *testing.T) {
	t.Parallel()

	link := regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	count := 0
	for name, text := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(match[1] + match[2])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if target.IsAbs() {
				continue
			}
			count++
			linked := name
			if target.Path != "" {
				linked = filepath.Join(filepath.Dir(name), target.Path)
			}
			if _, err := fs.Stat(repository, linked); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
				continue
			}
			if target.Fragment != "" && !slices.Contains(anchors(readFile(t, linked)), target.Fragment) {
				t.Errorf("%s links to %s, which has no such heading", name, target)
			}
		}
	}
	if count == 0 {
		t.Error("no page links to another")
	}
}

// pages returns the texts of README.md and docs, by their names.
func pages(t *testing.T) map[string]string {
	t.Helper()

	names, err := fs.Glob(repository, "docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("docs: %d pages, %v", len(names), err)
	}
	texts := map[string]string{}
	for _, name := range append(names, "README.md") {
		texts[name] = readFile(t, name)
	}

	return texts
}

// anchors returns what links to the headings of a page end in.
func anchors(text string) []string {
	var found []string
	heading := regexp.MustCompile(`(?m)^#+ (.+)$`)
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N}\- ]`).ReplaceAllString(strings.ToLower(match[1]), "")
		anchor := strings.ReplaceAll(plain, " ", "-")
		if slices.Contains(found, anchor) {
			anchor += "-" + strconv.Itoa(1)
		}
		found = append(found, anchor)
	}

	return found
}

func sorted(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)

	return names
}
