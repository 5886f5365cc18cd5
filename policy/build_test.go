package policy_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

func TestEveryDisabledLinterHasItsReason(t *testing.T) {
	t.Parallel()

	config := readFile(t, ".golangci.yaml")
	if !strings.Contains(config, "default: all") {
		t.Error("not every linter is on by default")
	}
	_, rest, _ := strings.Cut(config, "disable:\n")
	disabled, _, _ := strings.Cut(rest, "settings:")
	count := 0
	for line := range strings.Lines(disabled) {
		linter, found := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !found {
			continue
		}
		count++
		if name, reason, _ := strings.Cut(linter, " # "); len(reason) < 4 {
			t.Errorf("%s is disabled without a reason", strings.TrimSpace(name))
		}
	}
	if count == 0 {
		t.Error("found no disabled linter")
	}
}

func TestEveryMakeTargetIsExplainedAndPhony(t *testing.T) {
	t.Parallel()

	makefile := readFile(t, "Makefile")
	targets := regexp.MustCompile(`(?m)^([a-z]+):(.*)$`).FindAllStringSubmatch(makefile, -1)
	for _, wanted := range []string{"run", "test", "check", "bench", "help"} {
		if !strings.Contains(makefile, "\n"+wanted+":") {
			t.Errorf("no target %s", wanted)
		}
	}
	for _, target := range targets {
		if !strings.Contains(target[2], " ## ") {
			t.Errorf("make help does not explain %s", target[1])
		}
		if !strings.Contains(makefile, ".PHONY: "+target[1]+"\n") {
			t.Errorf("%s is taken for a file", target[1])
		}
	}
}

func TestScriptsStopAtTheFirstError(t *testing.T) {
	t.Parallel()

	for _, script := range []string{".ci/run", "deploy/setup.sh", "deploy/release.sh", "deploy/templdrift.sh", "deploy/calendar/run.sh", "deploy/calendar/overlay.sh", "deploy/calendar/at.sh"} {
		if !strings.Contains(readFile(t, script), "\nset -euo pipefail\n") {
			t.Errorf("%s goes on after an error", script)
		}
		about, err := fs.Stat(repository, script)
		if err != nil {
			t.Fatal(err)
		}
		if about.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed", script)
		}
	}
	if !strings.Contains(readFile(t, ".ci/run"), "\nmake test\n") {
		t.Error(".ci/run does not run the tests")
	}
}

func TestLicenseIsApache2(t *testing.T) {
	t.Parallel()

	text := readFile(t, "LICENSE")
	for _, part := range []string{"Apache License\n", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS", "3. Grant of Patent License."} {
		if !strings.Contains(text, part) {
			t.Errorf("LICENSE lacks %q", part)
		}
	}
}
