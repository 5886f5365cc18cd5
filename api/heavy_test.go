package api

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

// picture returns so many bytes in base64, others for each seed.
func picture(seed byte, size int) string {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content)
	return base64.StdEncoding.EncodeToString(content)
}

// gallery is a session in which the model looks at so many pictures.
func gallery(pictures, size int) string {
	var text strings.Builder
	text.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Look at them."}`)
	for i := range pictures {
		fmt.Fprintf(&text, `,{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"view","input":{}}]}`, i)
		fmt.Fprintf(&text, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`, i, picture(byte(i), size))
	}
	return text.String() + "]}"
}

// A14, E4: a body that the provider finds too large goes out once more, with the
// oldest media out.
func TestABodyThatIsTooLargeIsAnsweredByOneSmaller(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{MaxBody: 1_000_000})
	p := setupAt(t, double.URL)
	body := gallery(8, 120_000) // 1.28 MB
	got := p.send(http.MethodPost, messagesPath, body)
	if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "emergency" || got.header.Get("X-Palimpsest-Attempts") != "2" {
		t.Fatalf("status %d, headers %v: %.300s", got.status, got.header, got.body)
	}
	sent := double.Requests()
	if len(sent) != 2 || len(sent[1].Body) > 1_000_000 || !bytes.Contains(sent[1].Body, []byte(picture(7, 120_000))) || bytes.Contains(sent[1].Body, []byte(picture(0, 120_000))) {
		t.Fatalf("%d requests, the last of %d bytes", len(sent), len(sent[len(sent)-1].Body))
	}
	if !bytes.Contains(sent[1].Body, []byte("[image/png, 120,000 bytes, archived as #2]")) {
		t.Errorf("no placeholder in %.600s", sent[1].Body)
	}
	if report := string(p.last(1).Prompt.Report); !strings.Contains(report, `"type":"overflow","reason":"bytes"`) || !strings.Contains(report, `"reason":"bytes"`) {
		t.Errorf("recorded: %s", report)
	}

	// The next request replays it.
	next := p.send(http.MethodPost, messagesPath, body)
	if last, _ := double.Last(); next.status != http.StatusOK || next.header.Get("X-Palimpsest-Attempts") != "1" || !bytes.Equal(last.Body, sent[1].Body) {
		t.Errorf("status %d, headers %v", next.status, next.header)
	}
}

// A14: above our own budget nothing is tried that a provider might refuse.
func TestABodyAboveTheBudgetIsSentSmaller(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	body := gallery(20, 1<<20) // 28 MB
	got := p.send(http.MethodPost, messagesPath, body)
	last, _ := double.Last()
	if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "epoch" || len(last.Body) > 20<<20 || len(body) < 26<<20 {
		t.Errorf("status %d, %d of %d bytes, headers %v", got.status, len(last.Body), len(body), got.header)
	}
	if !bytes.Contains(last.Body, []byte(picture(19, 1<<20))) {
		t.Error("the newest picture is gone")
	}
}

// A14, B13: where nothing can go, the provider's own error comes back, after one
// attempt.
func TestABodyThatCannotShrinkGivesTheProvidersError(t *testing.T) {
	t.Parallel()
	attached := `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture(1, 200_000) + `"}}]}]}`
	for name, answer := range map[string]string{
		"in its dialect": `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
		"in none":        "<html>413 Request Entity Too Large</html>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked.Add(1)
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				_, _ = io.WriteString(w, answer)
			})
			got := p.send(http.MethodPost, messagesPath, attached)
			if got.status != http.StatusRequestEntityTooLarge || string(got.body) != answer || asked.Load() != 1 {
				t.Errorf("asked %d times, status %d: %s", asked.Load(), got.status, got.body)
			}
		})
	}
}
