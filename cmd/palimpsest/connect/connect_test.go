package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	testServer = "https://llm.example.com"
	testKey    = "plm_testkey"
)

func scratchAt(home string) Place {
	return Place{
		OS: "linux", Home: home, Project: filepath.Join(home, "project"),
		Env: func(string) string { return "" }, Program: func(string) string { return "" },
	}
}

// scratch is a connector in a home of its own.
func scratch(t *testing.T) *Connector {
	t.Helper()
	connector := &Connector{Place: scratchAt(t.TempDir())}
	if err := os.Mkdir(connector.Place.Project, 0o755); err != nil {
		t.Fatal(err)
	}
	return connector
}

func testSetup() Setup {
	return Setup{Server: testServer, Key: testKey, Program: "/usr/bin/palimpsest"}
}

func named(t *testing.T, name string) Client {
	t.Helper()
	client, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// connectTo connects a client.
func connectTo(t *testing.T, c *Connector, name string, setup Setup) Plan {
	t.Helper()
	plan, err := c.Plan(named(t, name), setup)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

func disconnect(t *testing.T, c *Connector, name string) []Restored {
	t.Helper()
	restored, err := c.Disconnect(name)
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// everything returns the files below a folder, with mode and content.
func everything(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		about, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = fmt.Sprintf("%v %s", about.Mode(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// existing is what a user's file of each kind may hold.
func existing(kind Kind) string {
	switch kind {
	case TOML:
		return codexConfig
	case YAML:
		return continueConfig
	case Dotenv:
		return "# mine\nOTHER=1\n"
	case Text, JSON:
	}
	return "{\n    // mine\n    \"theme\": \"dark\", /* at night */\n    \"list\": [1, 2],\n}\n"
}

func TestEveryClientIsConnectedAndGivenBackByteForByte(t *testing.T) {
	t.Parallel()
	for _, client := range Clients() {
		for _, state := range []string{"empty", "existing"} {
			if client.files == nil {
				continue
			}
			t.Run(client.ID+" "+state, func(t *testing.T) {
				t.Parallel()
				c := scratch(t)
				if state == "existing" {
					for _, file := range client.files(c.Place, testSetup()) {
						if file.Kind != Text {
							write(t, file.Path, existing(file.Kind))
						}
					}
				}
				before := everything(t, c.Place.Home)

				plan := connectTo(t, c, client.ID, testSetup())
				if len(plan.Changes) == 0 {
					t.Fatal("nothing changes")
				}
				for _, change := range plan.Changes {
					isRead(t, change)
				}
				again, err := c.Plan(client, testSetup())
				if err != nil || again.Needed() {
					t.Errorf("connected again: %v, needed %v", err, again.Needed())
				}
				for _, file := range disconnect(t, c, client.ID) {
					if !file.Whole {
						t.Errorf("%s is not whole", file.Path)
					}
				}
				if after := everything(t, c.Place.Home); !maps.Equal(before, after) {
					t.Errorf("before %v\nafter %v", before, after)
				}
			})
		}
	}
}

// isRead checks that a file holds what a client is to read in it, and the key only where no one else reads it.
func isRead(t *testing.T, change Change) {
	t.Helper()
	text := read(t, change.Path)
	content, err := change.Kind.format().parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", change.Path, err)
	}
	for _, entry := range change.Entries {
		if value, is := lookUp(content, entry.Path); !is || !same(value, plain(entry.Value)) {
			t.Errorf("%s holds %v at %v", change.Path, value, entry.Path)
		}
	}
	about, err := os.Stat(change.Path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, testKey) && about.Mode().Perm()&0o077 != 0 {
		t.Errorf("%s holds the key, and others may read it: %v", change.Path, about.Mode())
	}
	if strings.Contains(change.Diff(), testKey) {
		t.Error("the key is shown")
	}
}

func TestSavedLoginsKeyIsInNoFileOfClientsThatAskForIt(t *testing.T) {
	t.Parallel()
	setup := testSetup()
	setup.Saved = true
	for _, name := range []string{"claude-code", "codex", "pi", "crush", "copilot"} {
		c := scratch(t)
		connectTo(t, c, name, setup)
		for path, content := range everything(t, c.Place.Home) {
			if strings.Contains(content, testKey) {
				t.Errorf("%s: %s holds the key", name, path)
			}
		}
	}
}

func TestProjectsFilesHoldNoKey(t *testing.T) {
	t.Parallel()
	setup := testSetup()
	setup.InProject = true
	for _, client := range Clients() {
		c := scratch(t)
		plan, err := c.Plan(client, setup)
		if client.inProject == nil {
			if err == nil {
				t.Errorf("%s takes --project", client.ID)
			}
			continue
		}
		if err != nil || c.Apply(plan) != nil {
			t.Fatal(err)
		}
		files := everything(t, c.Place.Project)
		if len(files) != 1 {
			t.Errorf("%s writes %v", client.ID, slices.Collect(maps.Keys(files)))
		}
		for path, content := range files {
			if strings.Contains(content, testKey) || strings.Contains(content, c.Place.Home) || !strings.Contains(content, testServer) {
				t.Errorf("%s: %s", path, content)
			}
		}
	}
}

func TestSymbolicLinkStaysAndItsTargetIsWritten(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		c := scratch(t)
		link, target := c.Place.home(".codex", "config.toml"), c.Place.home("dotfiles", "codex.toml")
		write(t, c.Place.home(".codex", "other"), "")
		write(t, c.Place.home("dotfiles", "other"), "")
		if there {
			write(t, target, codexConfig)
		}
		if err := os.Symlink(filepath.Join("..", "dotfiles", "codex.toml"), link); err != nil {
			t.Fatal(err)
		}
		connectTo(t, c, "codex", testSetup())
		if about, err := os.Lstat(link); err != nil || about.Mode().Type() != fs.ModeSymlink {
			t.Errorf("the link became %v, %v", about.Mode(), err)
		}
		if !strings.Contains(read(t, target), testServer) {
			t.Error("the target was not written")
		}
		disconnect(t, c, "codex")
		switch content, err := os.ReadFile(target); {
		case there && string(content) != codexConfig:
			t.Errorf("given back: %s", content)
		case !there && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("the target is there: %s", content)
		}
	}
}

func TestReadOnlyFileIsRefused(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	path := c.Place.home(".codex", "config.toml")
	write(t, path, codexConfig)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	before := everything(t, c.Place.Home)
	if _, err := c.Plan(named(t, "codex"), testSetup()); err == nil || !strings.Contains(err.Error(), path+" is read-only: make it writable first") {
		t.Errorf("%v", err)
	}
	if after := everything(t, c.Place.Home); !maps.Equal(before, after) {
		t.Error("something was written")
	}
}

func TestBrokenFileIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	path := c.Place.home(".claude", "settings.json")
	write(t, path, "{\n  \"a\": 1,,\n}")
	if _, err := c.Plan(named(t, "claude-code"), testSetup()); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

func TestFileThatChangedKeepsItsChanges(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	path := c.Place.home(".codex", "config.toml")
	write(t, path, codexConfig)
	connectTo(t, c, "codex", testSetup())
	write(t, path, strings.Replace(read(t, path), `model = "gpt-6-sol"`, `model = "mine"`, 1)+"\n[new]\nx = 1\n")

	restored := disconnect(t, c, "codex")
	want := strings.Replace(codexConfig, `model = "gpt-6-sol"`, `model = "mine"`, 1) + "\n[new]\nx = 1\n"
	if got := read(t, path); got != want {
		t.Errorf("got\n%s", got)
	}
	if at := slices.IndexFunc(restored, func(file Restored) bool { return file.Path == path }); at < 0 || restored[at].Whole || len(restored[at].Left) > 0 {
		t.Errorf("%+v", restored)
	}
}

func TestConnectingAgainKeepsTheOldestContent(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	path := c.Place.home(".codex", "config.toml")
	write(t, path, codexConfig)
	connectTo(t, c, "codex", testSetup())
	other := testSetup()
	other.Server, other.Key = "https://other.example.com", "plm_other"
	connectTo(t, c, "codex", other)
	if text := read(t, path); strings.Contains(text, testServer) || strings.Count(text, "[model_providers.palimpsest]") != 1 {
		t.Errorf("connected twice:\n%s", text)
	}
	disconnect(t, c, "")
	if got := read(t, path); got != codexConfig {
		t.Errorf("got\n%s", got)
	}
}

func TestTwoProfilesAreConnectedAndGivenBack(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	work := c.Place
	work.Env = func(name string) string {
		return map[string]string{"CLAUDE_CONFIG_DIR": work.home("work")}[name]
	}
	atWork := &Connector{Place: work}
	mine, theirs := c.Place.home(".claude", "settings.json"), work.home("work", "settings.json")
	write(t, mine, "{}\n")
	write(t, theirs, "{ }\n")
	connectTo(t, c, "claude-code", testSetup())
	connectTo(t, atWork, "claude-code", testSetup())
	for _, path := range []string{mine, theirs, work.home("work", ".claude.json"), c.Place.home(".claude.json")} {
		if !strings.Contains(read(t, path), "palimpsest") {
			t.Errorf("%s is not connected", path)
		}
	}
	disconnect(t, c, "claude-code")
	if read(t, mine) != "{}\n" || read(t, theirs) != "{ }\n" {
		t.Error("not given back")
	}
}

func TestFilesAndVariablesThatWinAreNamed(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	inProject := c.Place.project(".claude", "settings.local.json")
	write(t, inProject, `{"env": {"ANTHROPIC_BASE_URL": "http://elsewhere"}}`)
	write(t, c.Place.home(".codex", "work.config.toml"), "model_provider = \"openai\"\n")
	c.Place.Env = func(name string) string { return map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}[name] }
	for name, wants := range map[string][]string{
		"claude-code": {inProject + " sets env.ANTHROPIC_BASE_URL and wins", "The shell sets CLAUDE_CODE_USE_BEDROCK"},
		"codex":       {"work.config.toml sets model_provider and wins"},
	} {
		plan, err := c.Plan(named(t, name), testSetup())
		notes := strings.Join(plan.Notes, "\n")
		for _, want := range wants {
			if err != nil || !strings.Contains(notes, want) {
				t.Errorf("%s: %v\n%s", name, err, notes)
			}
		}
	}
}

func TestFilesLieWhereWindowsHasThem(t *testing.T) {
	t.Parallel()
	place := scratchAt(`C:\Users\u`)
	place.OS = "windows"
	place.Env = func(name string) string {
		return map[string]string{"LOCALAPPDATA": `C:\Users\u\AppData\Local`}[name]
	}
	found := map[string]bool{}
	for _, client := range Clients() {
		if client.files == nil {
			continue
		}
		for _, file := range client.files(place, testSetup()) {
			found[strings.ReplaceAll(file.Path, "/", `\`)] = true
		}
	}
	for _, want := range []string{
		`C:\Users\u\.claude\settings.json`, `C:\Users\u\.claude.json`, `C:\Users\u\.codex\config.toml`, `C:\Users\u\.config\opencode\opencode.json`,
		`C:\Users\u\.pi\agent\models.json`, `C:\Users\u\AppData\Local\crush\crush.json`, `C:\Users\u\AppData\Local\palimpsest\connect\claude-code.key`,
	} {
		if !found[want] {
			t.Errorf("%s is missing in %v", want, slices.Sorted(maps.Keys(found)))
		}
	}
	if text := exports(place, testSetup(), []string{"A=b", "K=" + testKey}); text != "$env:A = \"b\"\n$env:K = & /usr/bin/palimpsest key show --server "+testServer {
		t.Errorf("%s", text)
	}
}

// A process that is killed at any step leaves the old file or the new one, and both can be given back.
func TestConnectThatIsKilledCanBeTakenBack(t *testing.T) {
	t.Parallel()
	killed := 0
	for step, done := 0, false; !done; step++ {
		for _, connectedBefore := range []bool{false, true} {
			c := scratch(t)
			path := c.Place.home(".codex", "config.toml")
			write(t, path, codexConfig)
			if connectedBefore {
				connectTo(t, c, "codex", testSetup())
			}
			old := read(t, path)
			command := exec.CommandContext(t.Context(), os.Args[0])
			command.Env = []string{killAt + "=" + strconv.Itoa(step), "HOME=" + c.Place.Home, "SERVER=https://second.example.com"}
			err := command.Run()
			done = err == nil
			if !done {
				killed++
				if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.ExitCode() != -1 {
					t.Fatalf("step %d: %v", step, err)
				}
			}
			if now := read(t, path); now != old && !strings.Contains(now, `base_url = "https://second.example.com/v1"`) {
				t.Fatalf("step %d: neither old nor new:\n%s", step, now)
			}
			disconnect(t, c, "")
			if got := everything(t, c.Place.home(".codex")); len(got) != 1 || !strings.HasSuffix(got[path], codexConfig) {
				t.Fatalf("step %d, connected before %v: %v", step, connectedBefore, got)
			}
		}
	}
	if killed < 10 {
		t.Errorf("killed only %d times", killed)
	}
}

func TestUnknownClientsAreToldWhichThereAre(t *testing.T) {
	t.Parallel()
	if _, err := ByName("nothing"); err == nil || !strings.Contains(err.Error(), "there are claude-code, ") {
		t.Errorf("%v", err)
	}
	seen := map[string]bool{}
	for _, client := range Clients() {
		for _, name := range append(client.Names, client.ID) {
			if seen[name] {
				t.Errorf("%s names two clients", name)
			}
			seen[name] = true
		}
		if client.files == nil && client.steps == nil {
			t.Errorf("%s has neither files nor steps", client.ID)
		}
	}
}

func TestFoundClientsAreThoseWithAFolderOrAProgram(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	write(t, c.Place.home(".codex", "x"), "")
	c.Place.Program = func(name string) string { return map[string]string{"droid": "/bin/droid"}[name] }
	var ids []string
	for _, client := range c.Found() {
		ids = append(ids, client.ID)
	}
	if strings.Join(ids, " ") != "codex droid" {
		t.Errorf("%v", ids)
	}
}

func TestStatusLineOfTheUserStays(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	path := c.Place.home(".claude", "settings.json")
	connectTo(t, c, "claude-code", testSetup())
	want := `"GOGC=off /usr/bin/palimpsest statusline"`
	if runtime.GOOS == "windows" {
		want = `"/usr/bin/palimpsest statusline"`
	}
	if !strings.Contains(read(t, path), want) {
		t.Errorf("no status line:\n%s", read(t, path))
	}
	disconnect(t, c, "claude-code")
	write(t, path, `{"statusLine": {"command": "mine"}}`)
	connectTo(t, c, "claude-code", testSetup())
	if text := read(t, path); !strings.Contains(text, "mine") || strings.Contains(text, "palimpsest statusline") {
		t.Errorf("%s", text)
	}
}
