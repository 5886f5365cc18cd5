package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/vault"
)

// traffic sends requests until it is stopped.
type traffic struct {
	sent, failed atomic.Int64
	answered     []chan struct{} // of each client, one for each request, as far as there is room
	stopped      chan struct{}
	stop         func() // ends it
	senders      sync.WaitGroup
}

// flow has several clients send requests to whatever address at returns.
func flow(t *testing.T, key string, at func() string) *traffic {
	t.Helper()
	f := &traffic{stopped: make(chan struct{})}
	for range 2 {
		answered := make(chan struct{}, 1)
		f.answered = append(f.answered, answered)
		f.senders.Go(func() {
			for {
				select {
				case <-f.stopped:
					return
				default:
				}
				f.sent.Add(1)
				if status, answer := ask(at(), key); status != http.StatusOK && f.failed.Add(1) == 1 {
					t.Errorf("status %d: %.200s", status, answer)
				}
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	f.stop = sync.OnceFunc(func() {
		close(f.stopped)
		f.senders.Wait()
	})
	t.Cleanup(f.stop)
	return f
}

// more waits until ten more requests of each client have been answered: what it asks
// then, it asks at the address of now.
func (f *traffic) more() {
	for _, answered := range f.answered {
		for range 10 {
			<-answered
		}
	}
}

func ask(address, key string) (int, string) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+address+"/v1/messages",
		strings.NewReader(`{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(answer)
}

// S15: a new master key is put in front while requests run, everything is sealed with
// it, and the old one is dropped, each time by starting another replica before the one
// before it ends. No request fails, and the old key opens nothing any more.
func TestMasterKeyIsChangedWithoutAFailedRequest(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	i := start(t, providerdouble.Config{})
	w := i.tenant("rotated")
	older, newer := i.config.Storage.SecretKey, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("n"), 32))
	var address atomic.Value
	address.Store(i.program.addr())
	clients := flow(t, w.key, func() string { text, _ := address.Load().(string); return text })
	next := func(secrets string) {
		before := i.program
		i.config.Storage.SecretKey = secrets
		i.boot()
		address.Store(i.program.addr())
		clients.more()
		before.stop(t.Context())
	}

	clients.more()
	next(newer + "," + older)
	w.until(func() bool {
		return strings.Contains(i.log.String(), `"msg":"everything is sealed with the first master key"`)
	})
	clients.more()
	next(newer)
	clients.more()
	clients.stop()
	if clients.failed.Load() > 0 {
		t.Fatalf("%d of %d requests failed", clients.failed.Load(), clients.sent.Load())
	}
	t.Logf("%d requests", clients.sent.Load())

	var out bytes.Buffer
	status := func(secrets string) string {
		out.Reset()
		command := vaultCommand(func() (settings.Config, error) {
			config := i.config
			config.Storage.SecretKey = secrets
			return config, nil
		})
		command.SetArgs([]string{"reseal"})
		command.SetOut(&out)
		command.SilenceErrors, command.SilenceUsage = true, true
		if err := command.ExecuteContext(t.Context()); err != nil {
			fmt.Fprint(&out, err)
		}
		return out.String()
	}
	if said := status(newer); !strings.Contains(said, "need the first master key only") {
		t.Errorf("with the new key alone: %s", said)
	}
	if said := status(older); !strings.Contains(said, "is not that of this database") {
		t.Errorf("with the old key alone: %s", said)
	}

	// A key that opens something is let in, and told what it does not open.
	secret, err := base64.StdEncoding.DecodeString(older)
	if err != nil {
		t.Fatal(err)
	}
	safe, err := vault.New([][]byte{secret})
	if err != nil {
		t.Fatal(err)
	}
	(&tenant{instance: i}).signUp("left") // without an API key: nothing of it is read ahead
	workspaces, err := i.program.sites[0].seams.db.Workspaces.AllWorkspaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, workspace := range workspaces {
		if _, err := datakeys.New(i.program.sites[0].seams.db.DataKeys, safe).DataKey(t.Context(), workspace); err == nil {
			made++ // for the one that needed none yet
		}
	}
	if made != 1 {
		t.Fatalf("%d of %d workspaces have a data key of the old master key", made, len(workspaces))
	}
	if said := status(older); !strings.Contains(said, "still needed") {
		t.Errorf("with the old key, which opens one workspace: %s", said)
	}
}
