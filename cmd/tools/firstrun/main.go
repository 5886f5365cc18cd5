// Command firstrun measures a new user's first steps: from the archive of a release, in an empty home
// folder, to the first exchange in the dashboard. A double answers for the provider, and PostgreSQL is
// already installed.
package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"palimpsest/api/programtest"
	"palimpsest/api/upstream/providerdouble"
)

const (
	said  = "What is a palimpsest?"
	pause = 50 * time.Millisecond // between looks at the dashboard
)

func main() {
	archive := flag.String("archive", "", "the .tar.gz of a release for this machine")
	limit := flag.Duration("limit", time.Minute, "how long the way may take")
	flag.Parse()
	if err := measure(*archive, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "firstrun:", err)
		os.Exit(1)
	}
}

// measure goes through all steps and prints how long each of them took.
func measure(archive string, limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	home, err := os.MkdirTemp("", "firstrun")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // PostgreSQL's user passes through
		return err
	}
	double := providerdouble.NewHandler(providerdouble.Config{Count: func(text string) int { return len(text) / 4 }}) //nolint:mnd // bytes of a token
	provider, stop, err := double.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stop()
	path := os.Getenv("PATH")
	os.Clearenv()
	clean := append(programtest.Environment(filepath.Join(home, "data")), "HOME="+home, "PATH="+path)

	began := time.Now()
	step := func(name string) { fmt.Fprintf(os.Stdout, "%6.1f s  %s\n", time.Since(began).Seconds(), name) }
	program, err := unpack(archive, home)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	step("unpacked")
	running, err := programtest.Start(ctx, program, []string{"serve"}, clean)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	step("the program listens, with a database of its own")
	account, err := programtest.SignUp(ctx, running.URL, programtest.Workspace{Name: "first", Provider: provider})
	if err != nil {
		return err
	}
	step("signed up, with a provider key and an API key")
	if err := ask(ctx, running.URL, account.Key); err != nil {
		return err
	}
	step("the first request is answered")
	if err := awaitPage(ctx, account, running.URL); err != nil {
		return err
	}
	step("the dashboard shows it")
	return nil
}

// unpack extracts the program from an archive into a folder and returns its path.
func unpack(archive, folder string) (string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		return "", err
	}
	for packed := tar.NewReader(zipped); ; {
		header, err := packed.Next()
		if err != nil {
			return "", err
		}
		if header.Name != "palimpsest" {
			continue
		}
		path := filepath.Join(folder, "palimpsest")
		program, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, header.FileInfo().Mode())
		if err != nil {
			return "", err
		}
		_, err = io.Copy(program, packed) //nolint:gosec // our own archive
		return path, errors.Join(err, program.Close())
	}
}

// ask sends a request as an SDK does.
func ask(ctx context.Context, server, key string) error {
	body := `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"` + said + `"}]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "X-Api-Key": key, "Anthropic-Version": "2023-06-01"} {
		request.Header.Set(name, value)
	}
	text, status, err := fetch(http.DefaultClient, request)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the request is answered %d: %s", status, text)
	}
	return err
}

// awaitPage waits until the request is recorded, and its page in the dashboard shows the messages.
func awaitPage(ctx context.Context, account *programtest.Account, server string) error {
	var requests struct{ Data []struct{ ID string } }
	for len(requests.Data) == 0 {
		if err := account.Call(ctx, http.MethodGet, "/requests", nil, &requests); err != nil {
			return fmt.Errorf("the request is not recorded: %w", err)
		}
		time.Sleep(pause)
	}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/requests/"+requests.Data[0].ID, http.NoBody)
		if err != nil {
			return err
		}
		text, status, err := fetch(account.HTTP, request)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("%s answers %d (%w)", request.URL, status, err)
		}
		if strings.Contains(text, said) {
			return nil
		}
		time.Sleep(pause)
	}
}

func fetch(client *http.Client, request *http.Request) (text string, status int, err error) {
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return string(content), response.StatusCode, err
}
