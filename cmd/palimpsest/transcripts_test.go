package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
)

// firstTurn is how many messages a conversation has at most while its first turn
// is the only one.
const firstTurn = 4

// Real sessions through the real program with a window of 40 % of their size: no
// request is refused, every bust is an epoch, every original comes back.
// E1, E2, C2
func TestRealSessionsPassAWindowOfFortyPercent(t *testing.T) {
	t.Parallel()
	sizes := transcriptSizes(t)
	codecs := map[string]wire.Codec{"anthropic": anthropic.New(), "openai": openaichat.New()}
	var names []string
	for name := range sizes {
		names = append(names, name+".anthropic", name+".openai")
	}
	slices.Sort(names)
	for number := range fulltest.Part(len(names)) {
		name, suffix, _ := strings.Cut(names[number], ".")
		t.Run(names[number], func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(sharedtest.Path(t, "data", "transcripts", name+"."+suffix+".json"))
			if err != nil {
				t.Fatal(err)
			}
			window := sizes[name] * 2 / 5
			i := start(t, providerdouble.Config{Window: window, KeepBodies: 2})
			i.double.Trust(body)
			w := i.tenant("replay")
			w.setPipelinef("ipc:\n  contextWindow: %d\n", window)
			sent, epochs, breaks := w.replay(codecs[suffix], body)
			if breaks > epochs {
				t.Errorf("%d breaks of the sent prefix in %d epochs", breaks, epochs)
			}
			i.shutdown()
			i.boot()
			w.checkOriginals(codecs[suffix], body, sent)
		})
	}
}

// replay sends a conversation as its client would have. It returns how many
// messages the last request held, how many epochs it took, and how often a sent
// prompt did not begin with the one before it.
func (w *tenant) replay(codec wire.Codec, body []byte) (sent, epochs, breaks int) {
	w.t.Helper()
	path := endpoints()[codec.Format()]
	envelope, ends := requests(w.t, codec, body)
	var before []byte
	for _, length := range ends {
		prefix := envelope.Seal([]wire.Piece{{From: 0, To: length}})
		response, answer := w.post(path, prefix, map[string]string{"X-Palimpsest-Session-Id": "replayed"})
		if response.StatusCode == http.StatusBadRequest && length <= firstTurn {
			continue // what was typed and the one turn after it do not fit together: nothing may be cut
		}
		if response.StatusCode != http.StatusOK {
			w.t.Fatalf("status %d, compression %s: %s", response.StatusCode, response.Header.Get("X-Palimpsest-Compression"), answer)
		}
		if archived := response.Header.Get("X-Palimpsest-Archived"); archived != "0" {
			epochs++
		}
		last, _ := w.double.Last()
		if before != nil && !begins(w.t, codec, last.Body, before) {
			breaks++
		}
		before = last.Body
	}
	return ends[len(ends)-1], epochs, breaks
}

// begins reports whether a sent conversation begins with all of another, byte for
// byte.
func begins(t testing.TB, codec wire.Codec, body, other []byte) bool {
	t.Helper()
	now, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	then, err := wire.Open(other, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	for i := range then.Len() {
		if i >= now.Len() || !bytes.Equal(now.Element(i), then.Element(i)) {
			return false
		}
	}
	return true
}

// busts counts the prompts whose predecessor was no prefix of them.
func (i *instance) busts() int {
	busts := 0
	for _, request := range i.double.Requests() {
		if request.Busted {
			busts++
		}
	}
	return busts
}

// checkOriginals reads the first messages of a conversation back from the archive
// and compares hashes.
func (w *tenant) checkOriginals(codec wire.Codec, body []byte, messages int) {
	w.t.Helper()
	if messages == 0 {
		return
	}
	envelope, _ := requests(w.t, codec, body)
	session := w.onlySession()
	for index := range messages {
		response, original := w.original(session, index)
		if !bytes.Equal(original, envelope.Element(index)) {
			w.t.Fatalf("message %d: %d bytes, want the %d original bytes", index, len(original), len(envelope.Element(index)))
		}
		if etag := fmt.Sprintf(`"sha256:%x"`, sha256.Sum256(original)); response.Header.Get("ETag") != etag {
			w.t.Fatalf("message %d: ETag %s, want %s", index, response.Header.Get("ETag"), etag)
		}
	}
}

// onlySession returns the id of the workspace's one session.
func (w *tenant) onlySession() string {
	w.t.Helper()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	w.call(http.MethodGet, "/api/v1/sessions", nil, http.StatusOK, &list)
	if len(list.Data) != 1 {
		w.t.Fatalf("%d sessions, want 1", len(list.Data))
	}
	return list.Data[0].ID
}

// untilArchived waits until so many messages of the workspace's one conversation are
// durable: those of a request are a moment after its answer.
func (w *tenant) untilArchived(messages int) {
	w.t.Helper()
	w.until(func() bool {
		var list struct {
			Data []struct{ ID string } `json:"data"`
		}
		w.call(http.MethodGet, "/api/v1/sessions", nil, http.StatusOK, &list)
		if len(list.Data) == 0 {
			return false
		}
		var detail struct {
			Lanes []struct {
				Archived int `json:"archived"`
			} `json:"lanes"`
		}
		w.call(http.MethodGet, "/api/v1/sessions/"+list.Data[0].ID, nil, http.StatusOK, &detail)
		return detail.Lanes[0].Archived >= messages
	})
}

// original reads one archived message.
func (w *tenant) original(session string, index int) (*http.Response, []byte) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url(fmt.Sprintf("/api/v1/sessions/%s/archive/%d", session, index)), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	response, content := w.do(request)
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("message %d: status %d: %s", index, response.StatusCode, content)
	}
	return response, content
}

// requests cuts a conversation and returns the lengths of those of its prefixes
// that its client sent as requests.
func requests(t testing.TB, codec wire.Codec, body []byte) (*wire.Envelope, []int) {
	t.Helper()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	digests := make([]conversation.Digest, envelope.Len())
	for i := range digests {
		if digests[i], err = wire.Digest(codec, envelope.Element(i), func(conversation.Message) int { return 0 }); err != nil {
			t.Fatal(err)
		}
	}
	return envelope, replay.Ends(digests)
}

// transcriptSizes returns the sizes of the real sessions in o200k tokens by name.
func transcriptSizes(t *testing.T) map[string]int {
	t.Helper()
	index, err := os.Open(sharedtest.Path(t, "data", "transcripts", "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	reader := csv.NewReader(index)
	reader.Comma, reader.LazyQuotes = '\t', true
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := -1
	for i, name := range rows[0] {
		if strings.TrimSpace(name) == "tokens_o200k" {
			column = i
		}
	}
	sizes := map[string]int{}
	for _, row := range rows[1:] {
		tokens, err := strconv.Atoi(row[column])
		if err != nil {
			t.Fatal(err)
		}
		sizes[row[0]] = tokens
	}
	return sizes
}
