package offline

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline/archive/export"
	"palimpsest/tenants"
)

func TestVerifySaysWhatIsWrongAndFails(t *testing.T) {
	t.Parallel()
	var sound bytes.Buffer
	if err := export.NewWriter(&sound).Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{
		"sound": sound.String(), "cut": strings.TrimSuffix(sound.String(), "\n"), "empty": "", "foreign": strings.Repeat("hello\n", maxFaults+5),
	}
	var whole bytes.Buffer
	bundle := export.NewBundle(&whole, tenants.NewWorkspaceID(), time.Now())
	if err := errors.Join(bundle.JSON("workspace.json", "northbeam"), bundle.Close()); err != nil {
		t.Fatal(err)
	}
	files["whole"], files["edited"] = whole.String(), strings.Replace(whole.String(), "northbeam", "southbeam", 1)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args  []string
		stdin string
		want  string
		fails bool
	}{
		{args: []string{filepath.Join(dir, "sound")}, want: "sound: OK, 0 sessions"},
		{args: []string{"-"}, stdin: files["sound"], want: "-: OK"},
		{args: []string{filepath.Join(dir, "whole")}, want: "whole: OK, a tar of 1 files"},
		{args: []string{filepath.Join(dir, "edited")}, want: "edited: workspace.json has the SHA-256", fails: true},
		{args: []string{"-"}, stdin: files["whole"], want: "-: OK"},
		{args: []string{"-"}, stdin: files["cut"], want: "-: line 1: is cut off", fails: true},
		{args: []string{filepath.Join(dir, "sound"), filepath.Join(dir, "empty")}, want: "empty: the file is empty", fails: true},
		{args: []string{filepath.Join(dir, "foreign")}, want: "foreign: and 6 more", fails: true},
	} {
		command := verifyCommand()
		command.SilenceErrors, command.SilenceUsage = true, true
		var out bytes.Buffer
		command.SetArgs(test.args)
		command.SetIn(strings.NewReader(test.stdin))
		command.SetOut(&out)
		if err := command.ExecuteContext(t.Context()); errors.Is(err, errFaulty) != test.fails || !strings.Contains(out.String(), test.want) {
			t.Errorf("verify %v: %v\n%s\nwant %q", test.args, err, &out, test.want)
		}
	}
	command := verifyCommand()
	command.SetArgs([]string{filepath.Join(dir, "missing")})
	if err := command.ExecuteContext(t.Context()); err == nil || errors.Is(err, errFaulty) {
		t.Errorf("a file that is not there: %v", err)
	}
}
