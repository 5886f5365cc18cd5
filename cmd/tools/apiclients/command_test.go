package apiclients

import (
	"strings"
	"testing"
)

func TestCommandHasItsOwnHomeAndNoneOfOurEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-the-person")
	s, err := newSession(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.key = "plm_test"
	output := command{program: "/bin/sh", arguments: []string{"-c", "env; pwd"}, environment: []string{"MORE=1"}}.run(t.Context(), s)

	if output.Err != nil {
		t.Fatal(output.Err)
	}
	for _, line := range []string{"HOME=" + s.home, "PALIMPSEST_KEY=plm_test", "MORE=1", s.work} {
		if !strings.Contains(output.Text, line) {
			t.Errorf("%q is missing in\n%s", line, output.Text)
		}
	}
	if strings.Contains(output.Text, "sk-of-the-person") {
		t.Error("the person's own key reached the client")
	}
}

func TestInputEndsOnceTheCommandHasAnswered(t *testing.T) {
	t.Parallel()
	s, err := newSession(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// It ends when its input does, and not before.
	script := command{program: "/bin/sh", arguments: []string{"-c", `read line; echo "done with $line"; cat; echo end`}, input: "work\n", until: "done with"}
	output := script.run(t.Context(), s)

	if output.Err != nil || output.Text != "done with work\nend\n" {
		t.Errorf("%q, %v", output.Text, output.Err)
	}
}

func TestCommandThatFailsSaysHow(t *testing.T) {
	t.Parallel()
	s, err := newSession(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	output := command{program: "/bin/sh", arguments: []string{"-c", "echo no >&2; exit 3"}}.run(t.Context(), s)

	if output.Err == nil || !strings.Contains(output.Err.Error(), "3") || output.Text != "no\n" {
		t.Errorf("%q, %v", output.Text, output.Err)
	}
}
