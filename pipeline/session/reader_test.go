package session_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openairesponses"
)

// lengths counts bytes for tokens and how many messages it was asked about.
type lengths struct{ messages atomic.Int64 }

func (l *lengths) Message(message conversation.Message) int {
	l.messages.Add(1)
	return len(message.Raw)
}

// Rough tells its counts from those of Message.
func (l *lengths) Rough(message conversation.Message) int { return 1_000_000 + len(message.Raw) }

func (l *lengths) Fixed(raw json.RawMessage) int { return len(raw) }

func newReader(t testing.TB) (*session.Reader, *lengths) {
	t.Helper()
	counter := &lengths{}
	reader, err := session.NewReader(counter)
	if err != nil {
		t.Fatal(err)
	}
	return reader, counter
}

// texts returns n messages of growing sizes, some larger than what is recognized at a time.
func texts(seed uint64, n int) []string {
	random := rand.New(rand.NewPCG(seed, 1))
	messages := make([]string, n)
	for i := range messages {
		role := [...]string{"user", "assistant"}[i%2]
		size := random.IntN(900)
		if i%23 == 7 {
			size = 50_000
		}
		messages[i] = fmt.Sprintf(`{"role":%q,"content":"%d \"quoted\" %s"}`, role, i, strings.Repeat("x", size))
	}
	return messages
}

func list(messages []string) []byte {
	return []byte(`{"model":"claude-sonnet-4-5","messages":[` + strings.Join(messages, " ,\n") + `],"max_tokens":10}`)
}

// What was recognized is what would have been read.
func TestRecognizedListReadsAsUnknownOne(t *testing.T) {
	t.Parallel()
	reader, counter := newReader(t)
	messages := texts(1, 200)
	for _, length := range []int{60, 61, 63, 120, 119, 200, 1, 200} {
		before := int(counter.messages.Load())
		body := list(messages[:length])
		envelope, digests, err := reader.Read(anthropic.New(), body)
		if err != nil {
			t.Fatal(err)
		}
		fresh, _ := newReader(t)
		want, wantDigests, err := fresh.Read(anthropic.New(), body)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(digests, wantDigests) {
			t.Fatalf("%d messages: digests differ", length)
		}
		if envelope.Len() != want.Len() {
			t.Fatalf("%d messages: cut into %d, want %d", length, envelope.Len(), want.Len())
		}
		for i := range envelope.Len() {
			if string(envelope.Element(i)) != messages[i] {
				t.Fatalf("message %d of %d: %.40s, want %.40s", i, length, envelope.Element(i), messages[i])
			}
		}
		if read := int(counter.messages.Load()) - before; read > max(0, length-60)+60 {
			t.Fatalf("%d messages were counted again", read)
		}
	}
	if int(counter.messages.Load()) != len(messages) {
		t.Fatalf("%d messages were counted, want each of %d once", int(counter.messages.Load()), len(messages))
	}
}

// A change anywhere shows, also where the rest was seen before.
func TestChangedListIsNotTakenForTheKnownOne(t *testing.T) {
	t.Parallel()
	reader, _ := newReader(t)
	messages := texts(2, 120)
	_, known, err := reader.Read(anthropic.New(), list(messages))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 7, 60, 119} {
		changed := slices.Clone(messages)
		changed[at] = strings.Replace(changed[at], "quoted", "QUOTED", 1)
		_, digests, err := reader.Read(anthropic.New(), list(changed))
		if err != nil {
			t.Fatal(err)
		}
		for i := range digests {
			if (digests[i] == known[i]) != (i != at) {
				t.Fatalf("message %d changed, and message %d is taken for another", at, i)
			}
		}
	}
}

func TestBodyThatBreaksOffBehindAKnownBeginningIsRefused(t *testing.T) {
	t.Parallel()
	reader, _ := newReader(t)
	body := list(texts(3, 120))
	if _, _, err := reader.Read(anthropic.New(), body); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 20, len(body) / 2} {
		if _, _, err := reader.Read(anthropic.New(), body[:len(body)-cut]); err == nil {
			t.Fatalf("a body without its last %d bytes was read", cut)
		}
	}
}

func TestTextForAListIsRead(t *testing.T) {
	t.Parallel()
	reader, _ := newReader(t)
	body := []byte(`{"model":"gpt-5.5","input":"` + strings.Repeat("text ", 10_000) + `"}`)
	for range 2 {
		if _, digests, err := reader.Read(openairesponses.New(), body); err != nil || len(digests) != 1 {
			t.Fatalf("%d messages, error %v; want one", len(digests), err)
		}
	}
}

// Whatever comes behind a known beginning, the list is read as a reader that
// knows nothing reads it.
func FuzzReader(f *testing.F) {
	known := list(texts(5, 90))
	f.Add(len(known)-3, []byte(`,{"role":"user","content":"more"}],"x":1}`))
	f.Add(40_000, []byte(`"]}`))
	f.Add(len(known), []byte(` `))
	reader, counter := newReader(f)
	if _, _, err := reader.Read(anthropic.New(), known); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, at int, tail []byte) {
		if at < 0 || at > len(known) {
			return
		}
		body := append(slices.Clone(known[:at]), tail...)
		got, digests, err := reader.Read(anthropic.New(), body)
		want, wantErr := wire.Open(body, "messages")
		if wantErr != nil {
			if err == nil {
				t.Fatalf("read, though it says %v", wantErr)
			}
			return
		}
		var wantDigests []conversation.Digest
		for i := range want.Len() {
			digest, wrong := wire.Digest(anthropic.New(), want.Element(i), counter.Message)
			if wrong != nil {
				if err == nil {
					t.Fatalf("read, though message %d says %v", i, wrong)
				}
				return
			}
			wantDigests = append(wantDigests, digest)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(digests, wantDigests) || string(got.ListBytes()) != string(want.ListBytes()) {
			t.Fatal("the list is read otherwise than one that is not known")
		}
		for i := range got.Len() {
			if got.Range(i) != want.Range(i) {
				t.Fatalf("element %d lies at %v, want %v", i, got.Range(i), want.Range(i))
			}
		}
	})
}

// S17: a body larger than any window is counted roughly where it goes beyond, also if the
// same message was counted exactly before.
func TestMessagesBeyondFourMiBAreCountedRoughly(t *testing.T) {
	t.Parallel()
	reader, _ := newReader(t)
	small := `{"role":"user","content":"hello"}`
	large := `{"role":"user","content":"` + strings.Repeat("a", 3<<20) + `"}`
	for range 2 {
		for body, want := range map[string][]int{
			string(list([]string{small, large})):               {len(small), len(large)},
			string(list([]string{large, large, small})):        {len(large), len(large), 1_000_000 + len(small)},
			string(list([]string{small, large, large, large})): {len(small), len(large), len(large), 1_000_000 + len(large)},
		} {
			_, digests, err := reader.Read(anthropic.New(), []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, digest := range digests {
				got = append(got, digest.Tokens)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d messages: %v tokens, want %v", len(want), got, want)
			}
		}
	}
}

var _ session.Counter = (*lengths)(nil)

// The date is looked for in the first 256 KiB of a list, and of a message's texts. What else a client renews is looked for everywhere.
func TestDateIsSearchedForInABoundedPartOfARequest(t *testing.T) {
	t.Parallel()
	at := func(day int) []conversation.Digest {
		date := fmt.Sprintf(`{"type":"text","text":"The current date is 2026-11-%d."}`, day)
		block := fmt.Sprintf(`{"type":"text","text":"<environment_context>2026-11-%d</environment_context>"}`, day)
		filler := `{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}`
		user := func(blocks ...string) string { return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}` }
		messages := []string{
			user(date), user(filler, date), user(date), user(block), `{"role":"assistant","content":"` + strings.Repeat("y", 4<<20) + `"}`, user(block), user(date),
		}
		reader, _ := newReader(t)
		_, digests, err := reader.Read(anthropic.New(), list(messages))
		if err != nil {
			t.Fatal(err)
		}
		return digests
	}
	first, second := at(10), at(11)
	for i, want := range []bool{true, false, false, true, true, true, false} {
		if is := first[i].Identity == second[i].Identity; is != want {
			t.Errorf("message %d is the same one on another day: %t, want %t", i, is, want)
		}
	}
}

func BenchmarkReadKnown(b *testing.B) {
	reader, _ := newReader(b)
	body := list(texts(4, 700))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, _, err := reader.Read(anthropic.New(), body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadNew reads 800 KB of which nothing is known.
func BenchmarkReadNew(b *testing.B) {
	counter, err := tokens.NewCounter()
	if err != nil {
		b.Fatal(err)
	}
	messages, random := make([]string, 500), rand.New(rand.NewPCG(4, 1))
	for i := range messages {
		var text strings.Builder
		for text.Len() < 1_600 {
			fmt.Fprintf(&text, "the handler of request %d returns %x, ", i, random.Uint32())
		}
		messages[i] = fmt.Sprintf(`{"role":%q,"content":%q}`, [...]string{"user", "assistant"}[i%2], text.String())
	}
	body := list(messages)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		reader, err := session.NewReader(counter)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := reader.Read(anthropic.New(), body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	body := list(texts(4, 700))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := wire.Open(body, "messages"); err != nil {
			b.Fatal(err)
		}
	}
}
