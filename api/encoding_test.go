package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// encode returns a text in an encoding.
func encode(t *testing.T, encoding, text string) string {
	t.Helper()
	var out bytes.Buffer
	var writer io.WriteCloser
	switch encoding {
	case "gzip":
		return gzipped(t, text)
	case "zstd":
		encoder, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		writer = encoder
	case "br":
		writer = brotli.NewWriter(&out)
	default:
		return text
	}
	if _, err := io.WriteString(writer, text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// W10, A15: an encoded request is processed as a plain one and goes out as one.
func TestEncodedRequestsArriveDecoded(t *testing.T) {
	t.Parallel()
	type arrival struct {
		body, encoding string
		length         int64
	}
	arrived := make(chan arrival, 1)
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		arrived <- arrival{string(content), r.Header.Get("Content-Encoding"), r.ContentLength}
		_, _ = io.WriteString(w, `{"type":"message","content":[]}`)
	})
	p.store.windows["claude-sonnet-4-5"] = small
	for _, body := range []string{streamed, toolSession("claude-sonnet-4-5", 30, 800)} {
		plain := p.send(http.MethodPost, messagesPath, body)
		want := <-arrived
		for _, encoding := range []string{"gzip", "zstd", "br", "identity"} {
			got := p.send(http.MethodPost, messagesPath, encode(t, encoding, body), "Content-Encoding", encoding)
			sent := <-arrived
			if got.status != http.StatusOK || sent.encoding != "" || sent.length != int64(len(sent.body)) || !json.Valid([]byte(sent.body)) || len(sent.body) > len(body) {
				t.Errorf("%s: status %d, sent %d bytes as %q with the length %d", encoding, got.status, len(sent.body), sent.encoding, sent.length)
			}
			if sent.body != want.body || got.header.Get("X-Palimpsest-Tokens-Before") != plain.header.Get("X-Palimpsest-Tokens-Before") {
				t.Errorf("%s: the provider gets another body than without it", encoding)
			}
		}
	}
}

// W10, W11, A15, S17: what unpacks to more than a body may have is refused.
func TestEncodedRequestsAreBounded(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	huge := `{"messages":[],"x":"` + strings.Repeat("x", maxBody) + `"}`
	for _, encoding := range []string{"gzip", "zstd", "br"} {
		if got := p.send(http.MethodPost, messagesPath, encode(t, encoding, huge), "Content-Encoding", encoding); got.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: status %d: %s", encoding, got.status, got.body)
		}
		if got := p.send(http.MethodPost, messagesPath, "no "+encoding, "Content-Encoding", encoding); got.status != http.StatusBadRequest {
			t.Errorf("not %s: status %d: %s", encoding, got.status, got.body)
		}
	}
}

// W11: a body of 31 MiB passes, one of 32 MiB and a byte does not, in the words of
// each dialect.
func TestBodiesMayHave32MiB(t *testing.T) {
	t.Parallel()
	arrived := make(chan int64, 10)
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		arrived <- n
		_, _ = io.WriteString(w, `{}`)
	})
	body := func(size int) string {
		const head, tail = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`, `"}}]}]}`
		return head + strings.Repeat("A", size-len(head)-len(tail)) + tail
	}
	for _, size := range []int{31 << 20, 32 << 20} {
		if got := p.send(http.MethodPost, messagesPath, body(size)); got.status != http.StatusOK || <-arrived != int64(size) {
			t.Errorf("%d bytes: status %d: %.300s", size, got.status, got.body)
		}
	}
	for path, says := range map[string]string{messagesPath: `"type":"request_too_large"`, countPath: `"type":"request_too_large"`, chatPath: `"code":"request_too_large"`, responsesPath: `"code":"request_too_large"`} {
		got := p.send(http.MethodPost, path, body(32<<20+1), "Expect", "100-continue") // who sends on may miss the answer
		if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(got.body), says) || got.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
}

// A list of more new messages than any window holds is refused before it is read.
func TestMessagesAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	p := setup(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for path, member := range map[string]string{messagesPath: "messages", chatPath: "messages", responsesPath: "input"} {
		list := func(n int) string {
			return fmt.Sprintf(`{"model":"m","max_tokens":1,%q:[%s{"role":"user","content":"x"}]}`, member, strings.Repeat(`{"role":"user","content":"x"},`, n-1))
		}
		got := p.send(http.MethodPost, path, list(wire.MaxNew+1))
		if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(got.body), member+": holds more than 30000 messages that were not sent before") || got.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d messages: status %d: %.300s", path, wire.MaxNew+1, got.status, got.body)
		}
		for _, n := range []int{wire.MaxNew, wire.MaxNew + 1} { // the second with one new message only
			if got := p.send(http.MethodPost, path, list(n)); got.status != http.StatusOK {
				t.Errorf("%s: %d messages: status %d: %.300s", path, n, got.status, got.body)
			}
		}
	}
}

// W21: the provider is asked for plain answers; one that it encodes all the same
// is understood and reaches a client that takes the encoding as it came, others
// plain.
func TestEncodedAnswersAreReadAndValid(t *testing.T) {
	t.Parallel()
	const whole = started + "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for _, encoding := range []string{"identity", "gzip", "zstd", "br"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			encoded := encode(t, encoding, whole)
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if asked := r.Header.Values("Accept-Encoding"); len(asked) != 1 || asked[0] != "identity" {
					t.Errorf("the provider is asked for %v", asked)
				}
				w.Header().Set("Content-Type", "text/event-stream")
				if encoding != "identity" {
					w.Header().Set("Content-Encoding", encoding)
				}
				_, _ = io.WriteString(w, encoded)
			})
			taken := p.send(http.MethodPost, messagesPath, streamed, "Accept-Encoding", "br, zstd;q=0.9, gzip ; q=0.1")
			if string(taken.body) != encoded || taken.broken != nil || encoding != "identity" && taken.header.Get("Content-Encoding") != encoding {
				t.Errorf("who takes it gets %v: %q", taken.header, taken.body)
			}
			plain := p.send(http.MethodPost, messagesPath, streamed, "Accept-Encoding", "identity, deflate, gzip;q=0")
			if string(plain.body) != whole || plain.header.Get("Content-Encoding") != "" || plain.broken != nil {
				t.Errorf("who does not gets %v: %q (%v)", plain.header, plain.body, plain.broken)
			}
			for n := 1; n <= 2; n++ {
				if recorded := p.last(n); recorded.Tokens.Input != 41 || recorded.Tokens.Output != 9 {
					t.Errorf("recorded: %+v", recorded)
				}
			}
		})
	}
}

// W14, W21: what is decoded on its way does not wait for more.
func TestDecodedStreamIsNotHeldBack(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		_ = http.NewResponseController(w).Flush()
		encoder := newFlusher(w)
		for range next {
			encoder.write(chatFirst)
		}
		encoder.write(chatUsage + chatDone)
		_ = encoder.encoder.Close()
	})
	response := p.open(t.Context(), http.MethodPost, chatPath, strings.Replace(chatStream, "true}", "false}", 1), "Accept-Encoding", "gzip")
	defer response.Body.Close()
	for range 5 {
		next <- struct{}{}
		read(t, response.Body, chatFirst)
	}
	close(next)
	rest, err := io.ReadAll(response.Body)
	if err != nil || string(rest) != chatDone || response.Header.Get("Content-Encoding") != "" { // W18
		t.Errorf("it ends with %q (%v)", rest, err)
	}
	if recorded := p.last(1); recorded.Tokens.Output != 7 {
		t.Errorf("recorded: %+v", recorded)
	}
}

// An encoding that nobody here knows passes; the answer is not understood, and
// what it cost is estimated.
func TestUnknownEncodingPasses(t *testing.T) {
	t.Parallel()
	const odd = "\x01\x02\x03"
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Encoding", "dcb")
		_, _ = io.WriteString(w, odd)
	})
	got := p.send(http.MethodPost, messagesPath, streamed)
	if string(got.body) != odd || got.header.Get("Content-Encoding") != "dcb" || got.broken != nil {
		t.Errorf("%v: %q", got.header, got.body)
	}
	if recorded := p.last(1); recorded.Answer.Status != http.StatusOK || recorded.Tokens.Input != recorded.Prompt.TokensAfter || !strings.Contains(string(recorded.Prompt.Report), `"estimated"`) {
		t.Errorf("recorded: %+v", recorded)
	}
}

// An answer that is not what it says it is ends early, as at the provider.
func TestAnswerThatIsNotEncodedAsDeclaredBreaksOff(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "no gzip at all")
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+messagesPath, strings.NewReader(streamed))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testKey)
	request.Header.Set("Accept-Encoding", "identity")
	if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("it is answered with %s", response.Status)
	}
	if got := p.send(http.MethodPost, messagesPath, streamed, "Accept-Encoding", "gzip"); got.broken != nil || string(got.body) != "no gzip at all" {
		t.Errorf("who takes it gets %q (%v)", got.body, got.broken)
	}
}

// A long encoded answer is not kept, and none is unpacked without end.
func TestEncodedTapIsBounded(t *testing.T) {
	t.Parallel()
	inner := &ignoreCounted{}
	tap := &encodedTap{tap: inner, encoding: "gzip"}
	_, _ = io.WriteString(tap, encode(t, "gzip", strings.Repeat("a", 1<<20)))
	tap.Answer()
	tap.Answer()
	if inner.read != 1<<20 || tap.encoded != nil {
		t.Errorf("%d bytes were read", inner.read)
	}
	long := &encodedTap{tap: inner, encoding: "gzip"}
	for range 40 {
		_, _ = long.Write(make([]byte, 1<<20))
	}
	if !long.isLong || long.encoded != nil {
		t.Errorf("%d bytes are kept", len(long.encoded))
	}
}
