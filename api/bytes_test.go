package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S17, S37: the bodies of a workspace's requests under way take so many bytes at most, and those
// of all; who goes beyond is told to come again, in the client's dialect. What a request
// says it will send counts only as it comes, and no longer once its provider has answered.
func TestBytesInFlightAreBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	arrived := make(chan struct{}, 10)
	p := setup(t, func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		arrived <- struct{}{}
		<-release
		_, _ = io.WriteString(w, `{}`)
	})
	large := strings.Replace(smallBody, "hi", strings.Repeat("a", 3<<20), 1)
	for name, bytes := range map[string]*Bytes{"workspace_bytes": NewBytes(5<<20, 100<<20), "overloaded": NewBytes(100<<20, 5<<20)} {
		p.Bytes = bytes
		done := make(chan answer, 1)
		go func() { done <- p.send(http.MethodPost, messagesPath, large) }()
		<-arrived
		for _, path := range []string{messagesPath, chatPath, responsesPath, countPath} {
			got := p.send(http.MethodPost, path, large)
			told := got.said(t)
			code := told.Error.Code + told.Error.Type
			if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" || !strings.Contains(code, "rate_limit_error") || !strings.Contains(told.Error.Message, "again in a second") {
				t.Errorf("%s: %s: status %d, retry-after %q, %+v", name, path, got.status, got.header.Get("Retry-After"), told)
			}
		}
		release <- struct{}{}
		if got := <-done; got.status != http.StatusOK {
			t.Errorf("%s: the first: %d %s", name, got.status, got.body)
		}
		go func() { done <- p.send(http.MethodPost, messagesPath, large) }()
		<-arrived
		release <- struct{}{}
		if got := <-done; got.status != http.StatusOK {
			t.Errorf("%s: after the first: %d %s", name, got.status, got.body)
		}
		bytes.mu.Lock()
		if bytes.all != 0 || len(bytes.held) != 0 {
			t.Errorf("%s: %d bytes stay counted", name, bytes.all)
		}
		bytes.mu.Unlock()
	}
}

// S49: bodies that one person's workspaces hold at a slow provider leave a quarter of the bytes to others,
// however many workspaces these are.
func TestAccountLeavesBytesToOthers(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{}, 10)
	p := setup(t, func(w http.ResponseWriter, request *http.Request) {
		if asked, _ := io.ReadAll(request.Body); !bytes.Contains(asked, []byte("more")) {
			arrived <- struct{}{}
			<-release
		}
		_, _ = io.WriteString(w, `{}`)
	})
	p.Bytes = NewBytes(100<<20, 12<<20)
	var sent sync.WaitGroup
	defer sent.Wait()
	defer close(release)
	keys, person := manyKeys{"quiet": keyOf(tenants.NewWorkspaceID())}, uuid.New()
	for _, name := range []string{"first", "second", "third", "fourth"} {
		key := keyOf(tenants.NewWorkspaceID())
		key.Owner = person
		keys[name] = key
	}
	p.Keys = keys
	body := func(size int) string { return strings.Replace(smallBody, "hi", strings.Repeat("a", size), 1) }
	hold := func(name string, size int) {
		sent.Go(func() {
			if got := p.send(http.MethodPost, messagesPath, body(size), "Authorization", "Bearer "+name); got.status != http.StatusOK {
				t.Errorf("%s: status %d: %s", name, got.status, got.body)
			}
		})
		<-arrived
	}
	for _, name := range []string{"first", "second", "third"} {
		hold(name, 3<<20-1000)
	}
	for _, path := range []string{messagesPath, chatPath, responsesPath, countPath} {
		got := p.send(http.MethodPost, path, strings.Replace(body(2<<20), "aaaa", "more", 1), "Authorization", "Bearer fourth")
		told := got.said(t)
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" || !strings.Contains(told.Error.Message, "The account that owns this workspace") {
			t.Errorf("%s: a fourth workspace of the person: status %d: %+v", path, got.status, told)
		}
	}
	hold("quiet", 1<<20)
	hold("quiet", 1<<20-1000)
}

// S17: memory for a body comes as the body does, whatever size it says it will have.
func TestMemoryComesAsTheBodyDoes(t *testing.T) {
	t.Parallel()
	for size := 1; size <= maxBody; size = size*3 + 1 {
		var all bodies
		taken, read := 0, 0
		body, err := all.read(readerFunc(func(into []byte) (int, error) {
			if taken > 4*max(read, firstBody) {
				t.Fatalf("of %d bytes %d have come and %d are taken", size, read, taken)
			}
			n := copy(into, "0123456789")
			n = min(max(n, len(into)/3), len(into))
			read += n
			return n, nil
		}), size, func(more int) error { taken += more; return nil })
		if err != nil || len(body.bytes) != size || taken != size {
			t.Errorf("of %d bytes %d were taken, %v", size, taken, err)
		}
	}
	var all bodies
	refused := errors.New("no more")
	if _, err := all.read(readerFunc(func(into []byte) (int, error) { return len(into), nil }), -1, func(more int) error {
		if more > 1<<20 {
			return refused
		}
		return nil
	}); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if _, err := all.read(strings.NewReader("short"), 10, func(int) error { return nil }); err == nil {
		t.Error("a body that ends early is taken")
	}
}

// S17, S37: a message of too many values, a list of too many, and a body of too many members are
// refused with what to do, before anyone parses them.
func TestBodyThatHoldsTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	blocks := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"a"},`, n), ",")
	}
	for name, body := range map[string]string{
		"blocks":  `{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":[` + blocks(30_000) + `]}]}`,
		"empty":   `{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":[` + strings.Repeat("{},", 50_000) + `{}]}]}`,
		"members": `{"model":"claude-sonnet-4-5","max_tokens":1,` + strings.Repeat(`"a":1,`, 1001) + `"messages":[{"role":"user","content":"a"}]}`,
		"all":     `{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[` + strings.Repeat(`{"role":"user","content":[`+blocks(14)+`]},`, 29_000) + `{"role":"user","content":"a"}]}`,
		"new":     `{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[` + strings.Repeat(`{"role":"user","content":"a"},`, 30_000) + `{"role":"user","content":"a"}]}`,
	} {
		for _, path := range []string{messagesPath, chatPath, countPath} {
			got := p.send(http.MethodPost, path, body)
			told := got.said(t)
			if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(told.Error.Message, "fewer") && !strings.Contains(told.Error.Message, "send those") {
				t.Errorf("%s: %s: status %d: %+v", name, path, got.status, told)
			}
		}
		if got := p.send(http.MethodPost, responsesPath, strings.Replace(body, `"messages"`, `"input"`, 1)); got.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: responses: status %d: %s", name, got.status, got.body)
		}
	}
}
