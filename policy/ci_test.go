package policy_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// S33: what a change must pass includes every linter but those that are named with a
// reason (staticcheck and gosec are not among them), the race detector, the sums of all
// modules, and a search for secrets and for known vulnerabilities.
func TestChecksOfAChangeAreOn(t *testing.T) {
	t.Parallel()
	var lint struct {
		Linters struct {
			Default string   `yaml:"default"`
			Disable []string `yaml:"disable"`
		} `yaml:"linters"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, ".golangci.yaml")), &lint); err != nil {
		t.Fatal(err)
	}
	if lint.Linters.Default != "all" {
		t.Errorf("linters: default is %q, want all", lint.Linters.Default)
	}
	for _, linter := range []string{"staticcheck", "gosec", "govet", "errcheck", "bodyclose", "rowserrcheck", "sqlclosecheck", "noctx", "unused", "errorlint"} {
		if slices.Contains(lint.Linters.Disable, linter) {
			t.Errorf("%s is off", linter)
		}
	}
	makefile := readFile(t, "Makefile")
	for target, wants := range map[string][]string{
		"check": {"quick", "lint", "secrets", "vulnerabilities", "$(TEST) -race"}, "quick": {"gofmt -l", "go vet", "go mod verify", "templdrift"},
		"lint": {"golangci-lint run"}, "secrets": {"gitleaks dir ."}, "vulnerabilities": {"vulncheck.sh"},
	} {
		recipe := regexp.MustCompile(`(?m)^` + target + `:.*(\n\t.*)*`).FindString(makefile)
		for _, want := range wants {
			if !strings.Contains(recipe, want) {
				t.Errorf("make %s does not %s: %q", target, want, recipe)
			}
		}
	}
	for _, want := range []string{"make quick", "make test", "deploy/testall.sh check"} {
		if !strings.Contains(readFile(t, ".ci/run"), want) {
			t.Errorf(".ci/run does not %s", want)
		}
	}
}

func TestWorkflowRunsWhatCIRunsAndReleasesTags(t *testing.T) {
	t.Parallel()
	workflow := readFile(t, ".github/workflows/ci.yml")
	for _, part := range []string{"bash .ci/run", "make release", "refs/tags/v", "needs: test"} {
		if !strings.Contains(workflow, part) {
			t.Errorf("the workflow lacks %q", part)
		}
	}
	for _, action := range regexp.MustCompile(`uses: (\S+)`).FindAllStringSubmatch(workflow, -1) {
		if !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(action[1]) {
			t.Errorf("%s isn't pinned to a commit", action[1])
		}
	}
}

// What else enters a program, such as the folder or the commit, would change its bytes.
func TestReleaseIsBuiltReproducibly(t *testing.T) {
	t.Parallel()
	script := readFile(t, "deploy/release.sh")
	for _, part := range []string{"CGO_ENABLED=0", "-trimpath", "-buildvcs=false", "-buildid=", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=\n", "-epoch"} {
		if !strings.Contains(script, part) {
			t.Errorf("deploy/release.sh lacks %q", part)
		}
	}
	if !regexp.MustCompile(`(?m)^## \d+\.\d+\.\d+( |$)`).MatchString(readFile(t, "CHANGELOG.md")) {
		t.Error("CHANGELOG.md names no version")
	}
}

// S33: every tool and image is pinned to a version, and every module has its sums.
func TestToolsAndImagesArePinned(t *testing.T) {
	t.Parallel()
	var modules []string
	err := fs.WalkDir(repository, "deploy/tools", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "go.mod" {
			modules = append(modules, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(modules) < 3 {
		t.Fatalf("modules of tools %v, %v", modules, err)
	}
	var pinned strings.Builder
	for _, module := range append(modules, ".") {
		pinned.WriteString(readFile(t, filepath.Join(module, "go.mod")))
		if readFile(t, filepath.Join(module, "go.sum")) == "" {
			t.Errorf("%s has no sums", module)
		}
	}
	for _, tool := range []string{"github.com/golangci/golangci-lint/v2", "github.com/zricethezav/gitleaks/v8", "golang.org/x/vuln", "github.com/a-h/templ", "github.com/versity/versitygw", "github.com/goreleaser/nfpm/v2", "github.com/google/go-containerregistry", "aead.dev/minisign"} {
		if !regexp.MustCompile(`(?m)^\s*(require )?` + regexp.QuoteMeta(tool) + ` v\d+\.\d+\.\d+`).MatchString(pinned.String()) {
			t.Errorf("%s is not pinned", tool)
		}
	}
	for _, path := range []string{"Makefile", "Dockerfile", ".ci/run", "deploy/setup.sh", "deploy/release.sh", "deploy/vulncheck.sh", "deploy/templdrift.sh", "docker-compose.yml"} {
		text := readFile(t, path)
		if strings.Contains(text, "@latest") || strings.Contains(text, ":latest") {
			t.Errorf("%s takes whatever is the latest", path)
		}
		for _, image := range regexp.MustCompile(`(?m)^(?:FROM|\s+image:|# syntax=)\s*(\S+)`).FindAllStringSubmatch(text, -1) {
			// Tags are moved. This one says what the image is, the digest which it is.
			if !regexp.MustCompile(`^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$`).MatchString(image[1]) {
				t.Errorf("%s: image %s isn't pinned as name:tag@sha256:digest", path, image[1])
			}
		}
	}
}

// A test that looks for ../shared on its own is skipped where it has to fail.
func TestOnlySharedtestLooksForSharedData(t *testing.T) {
	t.Parallel()
	beside := regexp.MustCompile(`"[^"\n]*\.\./shared/|"shared", "(data|requirements)"`)
	for _, source := range sources(t) {
		if !source.Test && !isTestSupport(source.Folder) || source.Folder == "pipeline/sharedtest" {
			continue
		}
		// The benchmarks take the folder as a flag.
		if found := beside.Find(source.Text); found != nil && filepath.Base(source.Path) != "main.go" && source.Path != "policy/ci_test.go" {
			t.Errorf("%s: %s; use pipeline/sharedtest", source.Path, found)
		}
	}
	script := readFile(t, ".ci/run")
	if !strings.Contains(script, "if [ -d ../shared ]; then\n\texport PALIMPSEST_TEST_SHARED=required\n") {
		t.Error(".ci/run does not require what lies in ../shared")
	}
}
