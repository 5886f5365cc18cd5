package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/sessiontest"
)

// session is the requests of one client.
type session struct {
	name     string
	body     []byte
	envelope *wire.Envelope
	ends     []int // number of messages in each request
}

// readSessions returns recorded sessions, or generated ones if there are no recordings.
func readSessions(wanted options) ([]session, error) {
	files, err := filepath.Glob(filepath.Join(wanted.data, "transcripts", "*.anthropic.json"))
	if err != nil {
		return nil, err
	}
	bodies := map[string][]byte{}
	for _, file := range files {
		if bodies[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	for i := 0; len(files) == 0 && i < wanted.sessions; i++ {
		made := sessiontest.Generate(wanted.seed+uint64(i), sessiontest.Options{Turns: wanted.steps, Parallel: true, TargetTokens: 3 * wanted.window})
		bodies[fmt.Sprint("made-up-", i)] = made.Body(made.Steps() - 1)
	}
	if len(files) == 0 {
		fmt.Fprintf(os.Stdout, "no recorded sessions in %s: made-up ones are sent\n", wanted.data)
	}
	var all []session
	for name, body := range bodies {
		envelope, err := wire.Open(body, anthropic.New().List())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		digests := make([]conversation.Digest, envelope.Len())
		for i := range digests {
			if digests[i], err = wire.Digest(anthropic.New(), envelope.Element(i), func(conversation.Message) int { return 0 }); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		all = append(all, session{name: name, body: body, envelope: envelope, ends: replay.Ends(digests)})
	}
	// Take the longest, because those are compacted.
	slices.SortFunc(all, func(a, b session) int { return cmp.Or(len(b.body)-len(a.body), strings.Compare(a.name, b.name)) })
	all = all[:min(len(all), wanted.sessions)]
	for i := range all {
		all[i].ends = all[i].ends[:min(len(all[i].ends), wanted.steps)]
	}
	return all, nil
}

// talks are all sessions of a run.
type talks struct {
	stack    *stack
	sessions []session
	seed     uint64
	during   atomic.Value  // string: the current fault
	hurry    chan struct{} // closed after the last fault

	mu       sync.Mutex
	answered []string // ids of requests whose clients received the full answer
	failures []string
	retries  int
	ready    []time.Duration
	busts    []bust
}

// bust is a request whose prompt did not extend the one before it.
type bust struct {
	session string
	step    int
	where   string // the replica, and the fault at the time
}

func newTalks(stack *stack, sessions []session, seed uint64) *talks {
	t := &talks{stack: stack, sessions: sessions, seed: seed, hurry: make(chan struct{})}
	t.during.Store("nothing")
	return t
}

// run runs all sessions to their end. While faults happen, it spreads the requests over that time.
func (t *talks) run(ctx context.Context) {
	var talking sync.WaitGroup
	for i, one := range t.sessions {
		talking.Go(func() { t.talk(ctx, i, one) })
	}
	talking.Wait()
}

// thinks is the maximum pause of a client before its next request.
const thinks = 8 * time.Second

func (t *talks) talk(ctx context.Context, number int, one session) {
	random := rand.New(rand.NewPCG(t.seed, uint64(2+number))) //nolint:gosec // to be repeated, not to be secret
	for step, end := range one.ends {
		stream := step%2 == 1
		body := one.envelope.Seal([]wire.Piece{{From: 0, To: end}})
		if stream && !bytes.Contains(body, []byte(`"stream":`)) {
			body = bytes.Replace(body, []byte(`{`), []byte(`{"stream":true,`), 1)
		}
		t.ask(ctx, random, one.name, step, body)
		if ctx.Err() != nil {
			return
		}
		if random.IntN(2) == 0 {
			continue // tools answer at once
		}
		select {
		case <-t.hurry:
		case <-time.After(time.Duration(random.Int64N(int64(thinks)))):
		}
	}
}

// tries is how often a client sends a request if its connection is cut.
const tries = 5

// ask sends a request to an available replica until it is answered. A retry after the kill of a replica is
// not a failure.
func (t *talks) ask(ctx context.Context, random *rand.Rand, name string, step int, body []byte) {
	busts := t.stack.double.BustCount(name)
	for range tries {
		r := t.pick(ctx, random)
		if r == nil {
			return
		}
		kills := r.broken.Load()
		id, err := t.send(ctx, r, name, body)
		if ctx.Err() != nil {
			return
		}
		if t.stack.double.BustCount(name) > busts {
			busts++
			t.note(func() {
				t.busts = append(t.busts, bust{name, step, fmt.Sprintf("replica %d, %s", r.number, t.during.Load())})
			})
		}
		switch {
		case err == nil:
			t.note(func() { t.answered = append(t.answered, id) })
			return
		case refused(err): // try another replica, as every balancer does
			r.isIn.Store(false)
		case r.broken.Load() != kills:
			t.note(func() { t.retries++ })
		default:
			t.note(func() {
				t.failures = append(t.failures, fmt.Sprintf("%s, replica %d: %v", t.during.Load(), r.number, err))
			})
			return
		}
	}
	t.note(func() {
		t.failures = append(t.failures, fmt.Sprintf("%s: no replica took the request", t.during.Load()))
	})
}

// pick returns any available replica.
func (t *talks) pick(ctx context.Context, random *rand.Rand) *replica {
	for {
		var in []*replica
		for _, r := range t.stack.replicas {
			if r.isIn.Load() {
				in = append(in, r)
			}
		}
		if len(in) > 0 {
			return in[random.IntN(len(in))]
		}
		if sleep(ctx, healthEvery) != nil {
			return nil
		}
	}
}

// requestTime limits one request. It exceeds the time for which a part is stopped.
const requestTime = 3 * stopped

func (t *talks) send(ctx context.Context, r *replica, name string, body []byte) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url()+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+t.stack.account.Key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("X-Claude-Code-Session-Id", name)
	request.Close = true // each connection may go to another replica
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	id = response.Header.Get("X-Palimpsest-Request-Id")
	switch {
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: status %d: %.200s", id, response.StatusCode, answer)
	case err == nil && strings.Contains(response.Header.Get("Content-Type"), "event-stream") && !bytes.Contains(answer, []byte(`"message_stop"}`)):
		return "", fmt.Errorf("%s: the stream ended early", id)
	}
	return id, err
}

// warm sends a replica one request, so that the replica has read the workspace's settings before the first
// fault. Otherwise it answers 503 while the database is away, see docs/operations.md.
func (t *talks) warm(ctx context.Context, r *replica) error {
	_, err := t.send(ctx, r, "warm", []byte(`{"model":"claude-sonnet-4-5","max_tokens":16,"messages":[{"role":"user","content":"ping"}]}`))
	return err
}

// refused reports whether the connection was refused.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED)
}

func (t *talks) note(what func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what()
}

func (t *talks) restarted(took time.Duration) {
	t.note(func() { t.ready = append(t.ready, took) })
}

// forget discards the noted starts after the first ones.
func (t *talks) forget(after int) {
	t.note(func() { t.ready = t.ready[:after] })
}

func (t *talks) starts() (took []time.Duration) {
	t.note(func() { took = slices.Clone(t.ready) })
	return took
}
