package terminal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/credential"
)

// installation is a server and a person's machine, each of whose parts a fault may change.
type installation struct {
	login    credential.Login
	loginErr error
	routes   map[string]http.HandlerFunc // by path
	me       map[string]any
	now      time.Time
	settings map[string]string // files by their path below the home folder, or the project's
	env      map[string]string
	tls      bool
	closed   bool
	cached   bool         // the provider's cache is hit
	late     atomic.Int64 // nanoseconds by which the clock has gone on
	buffered bool
	fix      bool   // doctor --fix
	answer   string // of the person who is asked; "" for --yes
	said     *bytes.Buffer
	connect  func(t *testing.T, connector *connect.Connector, server string)
	then     func(settings string) string // changes Claude Code's file after that
	dir      string
}

// place is the person's machine.
func (i *installation) place(dir, server string) connect.Place {
	return connect.Place{
		OS: "linux", Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project"), Program: func(string) string { return "" },
		Env: func(name string) string { return strings.ReplaceAll(i.env[name], "SERVER", server) },
	}
}

// connects sets a client up with the login's key or with one of its own.
func connects(name, key string, isOwn ...bool) func(*testing.T, *connect.Connector, string) {
	return func(t *testing.T, connector *connect.Connector, server string) {
		t.Helper()
		client, err := connect.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := connector.Plan(client, connect.Setup{Server: server, Key: key, Saved: len(isOwn) == 0, Program: "/usr/bin/palimpsest"})
		if err == nil {
			err = connector.Apply(plan)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func healthy() *installation {
	i := &installation{
		now: time.Now(), cached: true, env: map[string]string{},
		me:       map[string]any{"version": "v1", "key": map[string]any{"name": "laptop", "scopes": []string{"proxy", "recall", "read", "sessions"}}},
		settings: map[string]string{"home/.claude/settings.json": `{"env":{"ANTHROPIC_BASE_URL":"SERVER","ENABLE_TOOL_SEARCH":"true","CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY":"1"}}`},
	}
	i.routes = map[string]http.HandlerFunc{
		"/api/v1/openapi.yaml": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/yaml") },
		"/api/v1/me":           func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, i.me) },
		"/api/v1/sessions": func(w http.ResponseWriter, _ *http.Request) {
			write(w, http.StatusOK, map[string]any{"data": []any{map[string]any{"model": "claude-sonnet-4-5"}}})
		},
		"/v1/models": func(w http.ResponseWriter, _ *http.Request) {
			write(w, http.StatusOK, map[string]any{"data": []any{map[string]any{"id": "claude-sonnet-4-5"}}})
		},
		"/v1/messages": i.streams,
		"/v1/responses": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "websocket" && r.Header.Get("Connection") == "Upgrade" {
				w.WriteHeader(http.StatusUpgradeRequired)
			}
		},
	}
	return i
}

// streams answers as a provider does.
func (i *installation) streams(w http.ResponseWriter, _ *http.Request) {
	read := 0
	if i.cached {
		read = 6000
	}
	start := fmt.Sprintf("event: message_start\ndata: {\"message\":{\"usage\":{\"cache_read_input_tokens\":%d}}}\n\n", read)
	if i.buffered {
		i.late.Add(int64(10 * time.Second))
	}
	fmt.Fprint(w, start)
	fmt.Fprint(w, "event: message_stop\ndata: {}\n\n")
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client is gone if it fails
}

// refuses has a path answer a problem.
func (i *installation) refuses(path string, status int, detail string) {
	i.routes[path] = func(w http.ResponseWriter, _ *http.Request) { write(w, status, map[string]string{"detail": detail}) }
}

// examine runs the doctor and returns the worst that each check has found.
func (i *installation) examine(t *testing.T) map[string]Check {
	t.Helper()
	found := map[string]Check{}
	for _, check := range i.lines(t) {
		if worst, is := found[check.Name]; !is || worst.Mark == OK {
			found[check.Name] = check
		}
	}
	return found
}

// lines runs the doctor and returns what it has found.
func (i *installation) lines(t *testing.T) []Check {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route := i.routes[r.URL.Path]; route != nil {
			route(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if i.tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	if i.closed {
		server.Close()
	}
	if i.login == (credential.Login{}) && i.loginErr == nil {
		i.login = credential.Login{Server: server.URL, Key: "plm_key"}
	}
	dir := t.TempDir()
	for name, content := range i.settings {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "SERVER", server.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client := newHTTP()
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	t.Cleanup(client.CloseIdleConnections)
	i.said = new(bytes.Buffer)
	app := &App{
		In: strings.NewReader(""), Out: i.said, Version: "v1", HTTP: client, Now: func() time.Time { return i.now.Add(time.Duration(i.late.Add(int64(200 * time.Millisecond)))) },
		Logins: Logins{Load: func() (credential.Login, error) { return i.login, i.loginErr }}, Program: func() (string, error) { return "/usr/bin/palimpsest", nil },
		Here: func() (connect.Place, error) { return i.place(dir, server.URL), nil },
	}
	i.dir = dir
	if i.connect != nil {
		i.connect(t, &connect.Connector{Place: i.place(dir, server.URL)}, server.URL)
	}
	if i.then != nil {
		file := filepath.Join(dir, "home", ".claude", "settings.json")
		settings, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(i.then(string(settings))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d := &diagnosis{App: app, paid: true, fix: i.fix, asks: i.answer != "", answers: bufio.NewReader(strings.NewReader(i.answer))}
	d.free(context.WithoutCancel(t.Context()))
	d.costly(t.Context())
	return d.found
}

// A client whose set-up connect knows and that is looked at beside that has one line for both.
func TestConnectedClaudeCodeHasOneLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(i *installation)
		mark  Mark
		text  string
	}{
		"all is well": {func(*installation) {}, OK, "as palimpsest connect set it up"},
		"old key":     {func(i *installation) { i.connect = connects(claudeCode, "plm_old", true) }, OK, "as palimpsest connect set it up"},
		"changed since": {func(i *installation) {
			i.then = func(settings string) string { return strings.Replace(settings, "http://", "https://other-", 1) }
		}, Failed, "an entry differs"},
		"project file": {func(i *installation) {
			i.settings["project/.claude/settings.json"] = `{"env":{"ANTHROPIC_BASE_URL":"https://api.anthropic.com"}}`
		}, Failed, "something else decides"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := healthy()
			i.settings["home/.claude/settings.json"] = "{}"
			i.connect = connects(claudeCode, "plm_key")
			c.plant(i)
			var lines []Check
			for _, check := range i.lines(t) {
				if check.Name == claudeCode {
					lines = append(lines, check)
				}
			}
			if len(lines) != 1 || lines[0].Mark != c.mark || !strings.Contains(lines[0].Text, c.text) {
				t.Errorf("lines are %+v", lines)
			}
		})
	}
}

func TestDoctorRepairsOnlyWhatThePersonAgreesTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer, key string
		mark        Mark
		asked       bool
	}{
		"yes": {"y\n", "plm_key", OK, true}, "no": {"n\n", "plm_old", Failed, true}, "no answer": {"\n", "plm_old", Failed, true}, "--yes": {"", "plm_key", OK, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := healthy()
			i.connect, i.fix, i.answer = connects("opencode", "plm_old"), true, c.answer
			if check := i.examine(t)["opencode"]; check.Mark != c.mark {
				t.Errorf("found is %+v", check)
			}
			if key := i.keyOf(t, "opencode"); key != c.key || strings.Contains(i.said.String(), "Write this for opencode? [y/N]") != c.asked {
				t.Errorf("the key is %s, said is %s", key, i.said)
			}
		})
	}
}

func TestDoctorKeepsAKeyThatWasGivenToConnect(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"opencode", "qwen-code", claudeCode} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := healthy()
			i.settings["home/.claude/settings.json"] = "{}"
			i.connect, i.fix = connects(name, "plm_own", true), true
			if check := i.examine(t)[name]; check.Mark != OK || strings.Contains(check.Text, "repaired") {
				t.Errorf("found is %+v", check)
			}
			if key := i.keyOf(t, name); key != "plm_own" {
				t.Errorf("the key became %s", key)
			}
		})
	}
}

// keyOf returns the key that a client reads from its file.
func (i *installation) keyOf(t *testing.T, client string) string {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(i.dir, "home", ".local", "state", "palimpsest", "connect", client+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(key))
}

func TestDoctorFindsNothingWhereAllIsWell(t *testing.T) {
	t.Parallel()
	found := healthy().examine(t)
	for _, name := range []string{"login", "server", "clock", "key", "version", "limits", "provider", "claude-code", "tool search", "model list", "cache", "stream", "websocket"} {
		if check := found[name]; check.Mark != OK {
			t.Errorf("%s: %+v", name, check)
		}
	}
}

func TestDoctorFindsEachFaultAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	const user = "home/.claude/settings.json"
	on := `,"ENABLE_TOOL_SEARCH":"true","CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY":"1"`
	key := func(i *installation) map[string]any { return i.me["key"].(map[string]any) }
	for name, fault := range map[string]struct {
		plant func(i *installation)
		check string
		mark  Mark
		fix   string // part of it
	}{
		"nobody logged in":      {func(i *installation) { i.loginErr = credential.ErrNone }, "login", Failed, "palimpsest login"},
		"locked key store":      {func(i *installation) { i.loginErr = errors.New("locked") }, "login", Failed, "palimpsest login"},
		"server is away":        {func(i *installation) { i.closed = true }, "server", Failed, "check that the server runs"},
		"unknown name":          {func(i *installation) { i.login = credential.Login{Server: "http://nowhere.invalid", Key: "k"} }, "server", Failed, "check the address"},
		"untrusted certificate": {func(i *installation) { i.tls = true }, "server", Failed, "certificate"},
		"login page in between": {func(i *installation) { i.routes["/api/v1/openapi.yaml"] = page200 }, "server", Failed, "proxy or a login page"},
		"server redirects": {func(i *installation) {
			i.routes["/api/v1/openapi.yaml"] = http.RedirectHandler("https://new.example", http.StatusMovedPermanently).ServeHTTP
		}, "server", Failed, "log in to that address"},
		"server fails":          {func(i *installation) { i.refuses("/api/v1/openapi.yaml", 502, "x") }, "server", Failed, "ask the person who runs"},
		"clock is wrong":        {func(i *installation) { i.now = i.now.Add(-time.Hour) }, "clock", Failed, "NTP"},
		"key is revoked":        {func(i *installation) { i.refuses("/api/v1/me", 401, "This API key was revoked.") }, "key", Failed, "palimpsest login"},
		"key may not read":      {func(i *installation) { i.refuses("/api/v1/me", 403, "This API key lacks the scope manage") }, "key", Warning, "scope read"},
		"key from elsewhere":    {func(i *installation) { i.refuses("/api/v1/me", 403, "not from this address") }, "key", Failed, "owner or admin"},
		"key may not send":      {func(i *installation) { key(i)["scopes"] = []string{"read"} }, "key", Failed, "role may have changed"},
		"key ends soon":         {func(i *installation) { key(i)["expires_at"] = i.now.Add(time.Hour) }, "key", Warning, "before that"},
		"another version":       {func(i *installation) { i.me["version"] = "v2" }, "version", Warning, "server's version"},
		"nothing is kept":       {func(i *installation) { key(i)["no_store"] = true }, "limits", Warning, "Keep figures only"},
		"few endpoints":         {func(i *installation) { key(i)["allowed_endpoints"] = []string{"/v1/messages"} }, "limits", Warning, "edit the key"},
		"provider key is wrong": {func(i *installation) { i.refuses("/v1/models", 401, "invalid x-api-key") }, "provider", Failed, "page Providers"},
		"no provider key":       {func(i *installation) { i.refuses("/v1/models", 403, "no provider key") }, "provider", Failed, "adds a provider key"},
		"budget is used up":     {func(i *installation) { i.refuses("/v1/messages", 429, "budget") }, "provider", Failed, "raise the limit"},
		"model is not there":    {func(i *installation) { i.routes["/v1/models"] = noModels }, "provider", Warning, "choose another model"},
		"client not connected":  {func(i *installation) { i.settings[user] = `{}` }, "claude-code", Failed, "palimpsest connect"},
		"project file overrides": {func(i *installation) {
			i.settings["project/.claude/settings.local.json"] = `{"env":{"ANTHROPIC_BASE_URL":"https://api.anthropic.com"}}`
		}, "claude-code", Failed, "remove ANTHROPIC_BASE_URL"},
		"broken settings": {func(i *installation) { i.settings[user] = `{"env":` }, "claude-code", Failed, "mend the file"},
		"only the shell": {func(i *installation) {
			i.settings[user] = `{"env":{"X":"1"` + on + `}}`
			i.env["ANTHROPIC_BASE_URL"] = "SERVER"
		}, "claude-code", Warning, "palimpsest connect"},
		"past the proxy": {func(i *installation) { i.env["CLAUDE_CODE_USE_BEDROCK"] = "1" }, "claude-code", Failed, "unset CLAUDE_CODE_USE_BEDROCK"},
		"in Bedrock's form": {func(i *installation) {
			i.env["CLAUDE_CODE_USE_BEDROCK"], i.env["ANTHROPIC_BEDROCK_BASE_URL"] = "1", "SERVER"
		}, "claude-code", OK, "the form of Amazon Bedrock"},
		"in Google's form": {func(i *installation) {
			i.env["CLAUDE_CODE_USE_VERTEX"], i.env["ANTHROPIC_VERTEX_BASE_URL"] = "1", "SERVER"
		}, "claude-code", OK, "the form of Google Cloud"},
		"tool search is off":     {func(i *installation) { i.settings[user] = strings.Replace(i.settings[user], `"true"`, `"false"`, 1) }, "tool search", Warning, "ENABLE_TOOL_SEARCH to true"},
		"model list is off":      {func(i *installation) { i.settings[user] = strings.Replace(i.settings[user], `"1"`, `"0"`, 1) }, "model list", Warning, "DISCOVERY to 1"},
		"client with an old key": {func(i *installation) { i.connect = connects("opencode", "plm_old") }, "opencode", Failed, "doctor --fix"},
		"old key, and --fix":     {func(i *installation) { i.connect, i.fix = connects("opencode", "plm_old"), true }, "opencode", OK, "repaired"},
		"client is connected":    {func(i *installation) { i.connect = connects("opencode", "plm_key") }, "opencode", OK, "set up"},
		"project file of opencode": {func(i *installation) {
			i.connect = connects("opencode", "plm_key")
			i.settings["project/opencode.json"] = `{"provider":{"anthropic":{"options":{"baseURL":"https://api.anthropic.com"}}}}`
		}, "opencode", Failed, "wins over"},
		"upgrades are swallowed": {func(i *installation) { i.refuses("/v1/responses", 400, "bad upgrade") }, "websocket", Warning, "the header Upgrade"},
		"cache is missed":        {func(i *installation) { i.cached = false }, "cache", Failed, "under Requests"},
		"streams are buffered":   {func(i *installation) { i.buffered = true }, "stream", Failed, "buffers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := healthy()
			fault.plant(i)
			found := i.examine(t)
			if check := found[fault.check]; check.Mark != fault.mark || !strings.Contains(check.Fix+check.Text, fault.fix) {
				t.Errorf("found is %+v", check)
			}
		})
	}
}

func page200(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Log in") }

func noModels(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]any{"data": []any{map[string]any{"id": "other"}}})
}

func TestDoctorSendsNothingThatCostsUnlessAllowed(t *testing.T) {
	t.Parallel()
	i := healthy()
	sent := false
	i.routes["/v1/messages"] = func(http.ResponseWriter, *http.Request) { sent = true }
	d := &diagnosis{answers: bufio.NewReader(strings.NewReader("n\n")), App: &App{Out: new(bytes.Buffer), Now: time.Now}, client: &Client{}, model: "claude-sonnet-4-5"}
	cents, can := d.price()
	if !can || cents <= 0 || cents > 10 {
		t.Fatalf("the price is %f, %v", cents, can)
	}
	if d.paid = d.mayPay(); d.paid {
		t.Error("n is taken for yes")
	}
	d.costly(t.Context())
	if sent || d.found[0].Mark != Skipped {
		t.Errorf("sent %v, found %+v", sent, d.found)
	}
}
