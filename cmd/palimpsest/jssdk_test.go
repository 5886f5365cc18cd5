package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/api/npmtest"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/fulltest"
)

// TestJavaScriptSDKsThroughTheProxy runs the providers' JavaScript SDKs, at the
// versions of testdata/jssdk/package.json. A script ends with code 0 if all that it
// asserts holds.
//
// W2, W4, W15, W17, W18, W19, W20, W23.
func TestJavaScriptSDKsThroughTheProxy(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	const scripts = "testdata/jssdk"
	installed, err := npmtest.Cached(t.Context(), os.DirFS(scripts))
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, providerdouble.Config{})
	w := i.tenant("jssdk")

	for _, script := range []string{"messages.mjs", "threads.mjs", "chat.mjs", "responses.mjs"} {
		t.Run(script, func(t *testing.T) {
			// node looks for packages beside the script.
			folder := t.TempDir()
			text, err := os.ReadFile(filepath.Join(scripts, script))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, script), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
				t.Fatal(err)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, "node", script)
			command.Dir = folder
			command.Env = append(os.Environ(), "PALIMPSEST_URL="+w.url(""), "PALIMPSEST_KEY="+w.key)
			var complaints strings.Builder
			command.Stderr = &complaints
			output, err := command.Output()
			if err != nil || strings.TrimSpace(string(output)) != "ok" {
				t.Errorf("%s: %v\n%s%s", script, err, output, complaints.String())
			}
		})
	}
	// A thread's every request went out whole, and the provider held none of it.
	threads := 0
	for _, sent := range i.double.Requests() {
		if bytes.Contains(sent.Body, []byte(`"thread":`)) && !bytes.Contains(sent.Body, []byte(`"thread":null`)) {
			t.Errorf("the provider was to hold %s", sent.Body)
		}
		if bytes.Contains(sent.Body, []byte("the first of three")) {
			threads++
		}
	}
	if threads != 3 {
		t.Errorf("%d of 3 requests of a thread hold its first message", threads)
	}
}
