package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"palimpsest/pipeline/tokens"
)

const (
	triedTokens = 6000 // of the prompt sent twice: more than every model needs to cache it
	triedAnswer = 64
	// held is the maximum share of a stream's time before its first event, in percent.
	held    = 90
	minimum = 300 * time.Millisecond // a faster stream proves nothing
)

// price returns the requests' cost at list prices, in cents; false if they cannot be sent.
func (d *diagnosis) price() (cents float64, can bool) {
	if d.client == nil || !strings.HasPrefix(d.model, "claude-") || slices.ContainsFunc(d.found, func(check Check) bool { return check.Name == "provider" && check.Mark == Failed }) {
		return 0, false
	}
	models, err := tokens.NewModels()
	if err != nil {
		return 0, false
	}
	price := models.Lookup(d.model).Price // in dollars per million tokens
	return (triedTokens*(price.CacheWrite+price.CacheRead) + 2*triedAnswer*price.Output) / 1e6 * 100, price.Input > 0
}

// costly sends the same request twice, if the user allows it. The second one must hit the cache, and both
// must arrive in pieces.
func (d *diagnosis) costly(ctx context.Context) {
	if _, can := d.price(); !can || !d.paid {
		d.note("cache", Skipped, "no request was sent", "palimpsest doctor --yes, with a Claude model")
		return
	}
	text := fmt.Sprintf("Check %d. ", d.Now().UnixNano()) + strings.Repeat("The quick brown fox jumps over the lazy dog. ", triedTokens/10)
	var last answer
	for range 2 {
		var err error
		if last, err = d.send(ctx, text); err != nil {
			d.note("provider", Failed, err.Error(), providerFix(err))
			return
		}
	}
	if last.read > 0 {
		d.note("cache", OK, fmt.Sprintf("the second request read %s tokens from it", tokensOf(last.read)), "")
	} else {
		d.note("cache", Failed, "the second of two equal requests read nothing from the provider's cache", "look at both under Requests: they say why the cache was missed")
	}
	switch {
	case last.took < minimum:
		d.note("stream", Skipped, "the answer was too quick to tell", "")
	case last.first*100/last.took >= held:
		d.note("stream", Failed, fmt.Sprintf("the first event came after %d ms of %d", last.first.Milliseconds(), last.took.Milliseconds()), "a proxy in between buffers: turn that off for this address (nginx: proxy_buffering off)")
	default:
		d.note("stream", OK, fmt.Sprintf("the first event came after %d ms of %d", last.first.Milliseconds(), last.took.Milliseconds()), "")
	}
}

func tokensOf(n int) string { return tokensText(int64(n)) }

// answer holds the measurements of a streamed answer.
type answer struct {
	first, took time.Duration // until the first event, and until the end
	read        int           // tokens from the cache
}

func (d *diagnosis) send(ctx context.Context, text string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"model": d.model, "max_tokens": triedAnswer, "stream": true,
		"system":   []any{map[string]any{"type": "text", "text": text, "cache_control": map[string]string{"type": "ephemeral"}}},
		"messages": []any{map[string]string{"role": "user", "content": "Count from 1 to 20."}},
	})
	if err != nil {
		return answer{}, err
	}
	began := d.Now()
	response, err := d.client.send(ctx, http.MethodPost, "/v1/messages", "application/json", strings.NewReader(string(body)))
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	var got answer
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if data, is := strings.CutPrefix(line, "data:"); is {
			if got.first == 0 {
				got.first = d.Now().Sub(began)
			}
			got.read = max(got.read, cacheRead(data))
		}
		if err == io.EOF {
			got.took = d.Now().Sub(began)
			return got, nil
		}
		if err != nil {
			return got, fmt.Errorf("the stream broke: %w", err)
		}
	}
}

func cacheRead(data string) int {
	type usage struct {
		Read int `json:"cache_read_input_tokens"`
	}
	var event struct {
		Usage   usage `json:"usage"`
		Message struct {
			Usage usage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal([]byte(data), &event) != nil {
		return 0
	}
	return max(event.Usage.Read, event.Message.Usage.Read)
}

func modelNames(body io.Reader) ([]string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Data))
	for i, model := range list.Data {
		names[i] = model.ID
	}
	return names, nil
}

// cheapest returns a small model from a list, or the first one.
func cheapest(names []string) string {
	for _, name := range names {
		if strings.Contains(name, "haiku") {
			return name
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
