package apibench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// startTime bounds how long a program may take until it listens. The first start
// makes a database.
const startTime = 60 * time.Second

// Program is a started process that listens on an address of this machine.
type Program struct {
	URL     string
	command *exec.Cmd
}

// StartProgram runs binary with arguments and environment beside the process's
// own until it logs the address that it listens on. The caller must Stop it.
func StartProgram(ctx context.Context, binary string, arguments, environment []string) (*Program, error) {
	command := exec.CommandContext(ctx, binary, arguments...) //nolint:gosec // the caller's own program
	command.Env = append(os.Environ(), environment...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	command.Stdout, command.Stderr = writer, writer
	err = errors.Join(command.Start(), writer.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", binary, err), reader.Close())
	}

	program := &Program{command: command}
	addresses := make(chan string, 1)
	var lines strings.Builder
	go findAddress(reader, &lines, addresses)
	select {
	case address, found := <-addresses:
		if found {
			program.URL = "http://" + address
			return program, nil
		}
		_ = command.Wait() // what it printed says more than its exit code
		return nil, fmt.Errorf("%s ended before it listened:\n%s", binary, lines.String())
	case <-time.After(startTime):
		return nil, errors.Join(fmt.Errorf("%s does not listen after %s", binary, startTime), program.Stop())
	}
}

// findAddress reads what a program prints until it ends. It sends the address of
// the line "msg=listening addr=…"; if there is none it closes addresses, and lines
// holds all that was printed.
func findAddress(output io.ReadCloser, lines *strings.Builder, addresses chan<- string) {
	defer func() { _ = output.Close() }()
	listening := regexp.MustCompile(`msg=listening addr=(\S+)`)
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadString('\n')
		if match := listening.FindStringSubmatch(line); match != nil {
			addresses <- match[1]
			_, _ = io.Copy(io.Discard, reader) // so that the program never waits for a reader
			return
		}
		lines.WriteString(line)
		if err != nil {
			close(addresses)
			return
		}
	}
}

// PID returns the number of the process.
func (p *Program) PID() int { return p.command.Process.Pid }

// Stop asks the program to end and waits until it has.
func (p *Program) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop: %w", err)
	}
	if err := p.command.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == -1 {
			return nil // ended by the signal
		}
		return fmt.Errorf("stop: %w", err)
	}

	return nil
}

// account is a workspace of the program, reached the way a script would.
type account struct {
	program string
	client  *http.Client
}

// SignUp makes a workspace whose provider is the double at provider and whose
// context window is window tokens (0: the model's), and returns an API key of it.
func SignUp(ctx context.Context, program, name, provider string, window int) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", fmt.Errorf("make a cookie jar: %w", err)
	}
	owner := account{program: program, client: &http.Client{Jar: jar, Timeout: startTime}}

	if err := owner.call(ctx, http.MethodPost, "/signup", map[string]string{
		"email": name + "@example.com", "password": "a long password for " + name, "workspace": name,
	}, nil); err != nil {
		return "", err
	}
	if err := owner.call(ctx, http.MethodPost, "/provider-keys", map[string]string{
		"provider": "anthropic", "name": "double", "key": "sk-double", "base_url": provider,
	}, nil); err != nil {
		return "", err
	}
	if window > 0 {
		pipeline := map[string]map[string]int{"ipc": {"contextWindow": window}}
		if err := owner.call(ctx, http.MethodPut, "/pipeline", pipeline, nil); err != nil {
			return "", err
		}
	}
	var created struct {
		Secret string `json:"secret"`
	}
	wanted := map[string]any{"name": "bench", "scopes": []string{"proxy"}}
	if err := owner.call(ctx, http.MethodPost, "/keys", wanted, &created); err != nil {
		return "", err
	}
	if created.Secret == "" {
		return "", errors.New("POST /keys: no secret in the answer")
	}

	return created.Secret, nil
}

// call sends question to the product's API as JSON and reads its answer, if wanted.
func (a account) call(ctx context.Context, method, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.program+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: answered %s: %.300s", method, path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}

	return nil
}

// Environment returns the settings of a program to measure that keeps its data in
// a directory of its own.
func Environment(data string) []string {
	return []string{
		"PALIMPSEST_ADDR=127.0.0.1:0",
		"PALIMPSEST_ADMIN_ADDR=127.0.0.1:0",
		"PALIMPSEST_DATA_DIR=" + data,
		"PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS=true",
		"PALIMPSEST_LOG_FORMAT=text",
		"DATABASE_URL=",
		"REDIS_URL=",
		"PALIMPSEST_BLOB_URL=",
	}
}
