package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// The program is killed at fifty random moments of conversations and started again on
// the same database: the conversation goes on without an error, and every original that
// an answered request held is there. Twenty times the program's private database is
// killed with it.
// S20, C1, E1, E2
func TestKilledProgramLosesNothing(t *testing.T) {
	t.Parallel()
	binary := buildtest.Palimpsest(t)
	t.Run("with its database", func(t *testing.T) {
		t.Parallel()
		(&child{t: t, binary: binary, dir: t.TempDir()}).survive(20, 1)
	})
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		(&child{t: t, binary: binary, dir: t.TempDir(), databaseURL: dbtest.New(t).OwnerURL}).survive(30, 2)
	})
}

// survive has a conversation with the program, which is killed so many times.
func (c *child) survive(kills int, seed uint64) {
	c.t.Helper()
	t := c.t
	double := providertest.NewServer(t, providerdouble.Config{Key: providerKey, Window: 30_000, Count: counter(t).Count, KeepBodies: 1})
	c.start()
	w := &tenant{instance: &instance{t: t, double: double}}
	c.adopt(w)
	w.join("killed")
	w.setPipelinef("ipc:\n  contextWindow: 30000\n")

	turns := 120
	if !fulltest.Everything() {
		turns = 40 // as large a conversation, in fewer requests between the few kills
	}
	body := generated(double, turns)
	envelope, ends := requests(t, anthropic.New(), body)
	random := rand.New(rand.NewPCG(seed, 2))
	kills = len(slices.Collect(fulltest.Part(kills)))
	killAt := map[int]bool{}
	for len(killAt) < kills {
		killAt[random.IntN(len(ends)-1)] = true
	}
	durable := 0 // messages that an epoch has acknowledged
	for step, length := range ends {
		prefix := envelope.Seal([]wire.Piece{{From: 0, To: length}})
		if killAt[step] {
			c.killDuring(w, prefix, random)
			c.start()
			c.adopt(w)
			w.checkOriginals(anthropic.New(), body, durable)
		}
		response, answer := w.post("/v1/messages", prefix, map[string]string{"X-Palimpsest-Session-Id": "killed"})
		if response.StatusCode != http.StatusOK {
			t.Fatalf("request %d: status %d: %s", step, response.StatusCode, answer)
		}
		if response.Header.Get("X-Palimpsest-Archived") != "0" {
			durable = length
		}
	}
	if durable == 0 {
		t.Error("no epoch acknowledged a message")
	}
	c.stop()
	c.start()
	c.adopt(w)
	w.checkOriginals(anthropic.New(), body, ends[len(ends)-1])
	c.stop()
}

// child is the program in a process of its own.
type child struct {
	t       testing.TB
	binary  string
	dir     string
	command *exec.Cmd
	addr    string
	log     syncBuffer // what it said once it listened

	databaseURL string // empty: the program's private one
	files       int    // that it may have open; 0: as many as the test
	admin       string // its admin address, if files is set
	settings    []string
}

// start starts the program and waits for the line that names its address.
func (c *child) start() {
	c.t.Helper()
	admin := ""
	c.command = exec.Command(c.binary, "serve")
	if c.files > 0 {
		c.command = exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" serve`, c.files), c.binary)
		admin = "127.0.0.1:0"
	}
	c.command.Env = append(os.Environ(),
		"PALIMPSEST_ADDR=127.0.0.1:0", "PALIMPSEST_ADMIN_ADDR="+admin, "PALIMPSEST_DATA_DIR="+c.dir,
		"PALIMPSEST_SECRET_KEY="+dbtest.SecretKey, "PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS=true", "DATABASE_URL="+c.databaseURL, "PALIMPSEST_LOG_FORMAT=json")
	c.command.Env = append(c.command.Env, c.settings...)
	output, err := c.command.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.command.Process.Kill(); _ = c.command.Wait() })
	lines := bufio.NewReader(output)
	var said strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			c.t.Fatalf("the program ended before it listened:\n%s", said.String())
		}
		said.WriteString(line)
		var entry struct {
			Message string `json:"msg"`
			Addr    string `json:"addr"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		if entry.Message == "admin listening" {
			c.admin = entry.Addr
		}
		if entry.Message == "listening" {
			c.addr = entry.Addr
			break
		}
	}
	go func() { _, _ = io.Copy(&c.log, lines) }() // ends with the process
}

// adopt points a tenant at the program's newest address.
func (c *child) adopt(w *tenant) {
	w.program = &program{Inputs: setup.Inputs{Address: setup.Address{Listening: c.addr}}}
}

// killDuring sends a request and kills the program at a random moment while it
// works on it.
func (c *child) killDuring(w *tenant, body []byte, random *rand.Rand) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url("/v1/messages"), bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.key)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("X-Palimpsest-Session-Id", "killed")
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	for range random.IntN(200_000) { // a moment, measured in work rather than in time
		_ = random.Uint64()
	}
	_ = c.command.Process.Signal(syscall.SIGKILL)
	_ = c.command.Wait()
	<-sent
}

// stop ends the program as an operator does.
func (c *child) stop() {
	c.t.Helper()
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := c.command.Wait(); err != nil {
		c.t.Fatal(fmt.Errorf("the program did not end cleanly: %w", err))
	}
}
