package connect

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRunWritesNothingAndPassesTheSetUp(t *testing.T) {
	t.Parallel()
	for _, client := range Clients() {
		if client.launch == nil || len(client.Runs) == 0 {
			continue
		}
		t.Run(client.ID, func(t *testing.T) {
			t.Parallel()
			c := scratch(t)
			out := filepath.Join(t.TempDir(), "out")
			script := filepath.Join(t.TempDir(), "client")
			write(t, script, "#!/bin/sh\nprintf '%s\\n' \"$@\" > "+out+"\nenv >> "+out+"\nfor word in \"$@\" \"$CLINE_PROVIDER_SETTINGS_PATH\"; do test -f \"$word\" && cat \"$word\" >> "+out+"; done\nexit 7\n")
			if err := os.Chmod(script, 0o755); err != nil {
				t.Fatal(err)
			}
			c.Place.Program = func(string) string { return script }
			err := c.Run(client, testSetup(), []string{"--flag", "two words"})
			if exit, is := err.(*exec.ExitError); !is || exit.ExitCode() != 7 { //nolint:errorlint // it is passed on as it is
				t.Fatalf("%v", err)
			}
			seen := read(t, out)
			for _, want := range []string{"\n--flag\ntwo words\n", testServer, testKey} {
				if !strings.Contains("\n"+seen, want) {
					t.Errorf("%q is missing in\n%s", want, seen)
				}
			}
			arguments, _, _ := strings.Cut("\n"+seen, "two words\n")
			if strings.Contains(arguments, testKey) {
				t.Error("the key is among the arguments, which everyone on the machine may see")
			}
			if left := everything(t, c.Place.Home); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestRunOfWhatCannotBeStartedSaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := scratch(t)
	for name, says := range map[string]string{"droid": "palimpsest connect droid", "codex": "no codex in the path", "sdk": "name the program"} {
		if err := c.Run(named(t, name), testSetup(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client that starts the recall server reaches the tools of the proxy, with the key.
func TestRecallServerPassesOnWithTheKey(t *testing.T) {
	t.Parallel()
	tools := mcp.NewServer(&mcp.Implementation{Name: "palimpsest", Version: "1"}, nil)
	type query struct {
		Text string `json:"text"`
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "recall_search"}, func(_ context.Context, _ *mcp.CallToolRequest, in query) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found " + in.Text}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" || r.Header.Get("Authorization") != "Bearer "+testKey {
			http.Error(w, "wrong key", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer proxy.Close()

	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Recall(t.Context(), proxy.URL, testKey, fromClient, toClient)
		_ = toClient.Close() // as a process does that ends
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "recall_search", Arguments: query{"x"}})
	if err != nil || len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != "found x" {
		t.Errorf("%+v, %v", result, err)
	}
	_ = session.Close()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestRecallServerSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such key", http.StatusUnauthorized)
	}))
	defer proxy.Close()
	in, client := io.Pipe()
	defer client.Close()
	go func() {
		_, _ = io.WriteString(client, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	}()
	if err := Recall(t.Context(), proxy.URL, testKey, in, io.Discard); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("%v", err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
