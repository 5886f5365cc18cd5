package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"palimpsest/tenants"
)

// pages starts a proxy with the origins of pages that any workspace allows, which may change.
func pages(t *testing.T, anywhere ...string) (p *proxy, asked func() int) {
	t.Helper()
	p = setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Access-Control-Allow-Origin", "*") // what a provider says of its own pages
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		_, _ = w.Write([]byte(`{"id":"c","object":"chat.completion","model":"gpt-5.5","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`))
	})
	var mu sync.Mutex
	count := 0
	origins, err := NewOrigins(func(_ context.Context, origin string) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		count++
		if origin == "https://away.example" {
			return true, errors.New("away")
		}
		return slices.Contains(anywhere, origin), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Origins = origins
	return p, func() int { mu.Lock(); defer mu.Unlock(); return count }
}

// preflight asks whether a page may send a request.
func (p *proxy) preflight(path, origin string) answer {
	return p.send(http.MethodOptions, path, "", "Authorization", "", "Origin", origin, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,content-type,x-stainless-os", "Access-Control-Request-Private-Network", "true")
}

// W54: a preflight is answered for origins that someone allows, whatever the path's spelling, and for no others.
func TestPreflightsOfAllowedOriginsAreAnswered(t *testing.T) {
	t.Parallel()
	p, asked := pages(t, "app://obsidian.md")
	for _, path := range []string{chatPath, messagesPath, "/v1/responses", "/v1/models", "/openai/v1/chat/completions", "/anthropic/v1/messages", "/messages", "/v1/v1/messages", "/mcp"} {
		got := p.preflight(path, "app://obsidian.md")
		header := got.header
		if got.status != http.StatusNoContent || header.Get("Access-Control-Allow-Origin") != "app://obsidian.md" ||
			header.Get("Access-Control-Allow-Headers") != "authorization,content-type,x-stainless-os" || !strings.Contains(header.Get("Access-Control-Allow-Methods"), "POST") ||
			header.Get("Access-Control-Allow-Private-Network") != "true" || !slices.Contains(header.Values("Vary"), "Origin") {
			t.Errorf("%s: status %d, %v", path, got.status, header)
		}
		if header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: credentials are allowed", path)
		}
	}
	if asked() != 1 {
		t.Errorf("the store was asked %d times", asked())
	}
	for _, origin := range []string{"https://elsewhere.example", "null", "https://away.example", "app://obsidian.md.example", strings.Repeat("a", 300)} {
		got := p.preflight(chatPath, origin)
		if got.status != http.StatusForbidden || got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Access-Control-Allow-Headers") != "" || !strings.Contains(got.said(t).Error.Message, "Browser origins") {
			t.Errorf("%s: status %d, %v, %s", origin, got.status, got.header, got.body)
		}
	}
	if got := p.send(http.MethodOptions, chatPath, "", "Origin", "app://obsidian.md"); got.status != http.StatusMethodNotAllowed {
		t.Errorf("OPTIONS without a method to ask for: %d", got.status)
	}
	if got := p.send(http.MethodOptions, chatPath, "", "Origin", "app://obsidian.md", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "a\tb"); got.header.Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("headers %q", got.header.Get("Access-Control-Allow-Headers"))
	}
}

// W54: an answer may be read where the key, or else its workspace, allows the page; by default nowhere.
func TestAnswersAreReadByPagesThatTheKeyAllows(t *testing.T) {
	t.Parallel()
	const page, other = "http://localhost:5173", "https://other.example"
	for name, test := range map[string]struct {
		workspace, key tenants.Origins
		origin, want   string
	}{
		"by default":                {origin: page},
		"the workspace's":           {workspace: tenants.Origins{page}, origin: page, want: page},
		"in capitals":               {workspace: tenants.Origins{page}, origin: "HTTP://LOCALHOST:5173", want: "HTTP://LOCALHOST:5173"},
		"another's":                 {workspace: tenants.Origins{page}, origin: other},
		"the key's":                 {key: tenants.Origins{page}, origin: page, want: page},
		"the key's in place of its": {workspace: tenants.Origins{other}, key: tenants.Origins{page}, origin: other},
		"no page":                   {workspace: tenants.Origins{page}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := pages(t, page, other)
			p.store.data.Origins = test.workspace
			p.store.limit(tenants.Limits{Origins: test.key})
			var header []string
			if test.origin != "" {
				header = []string{"Origin", test.origin}
			}
			for _, path := range []string{chatPath, "/v1/models", "/v1/files"} {
				got := p.send(map[bool]string{true: http.MethodPost, false: http.MethodGet}[path == chatPath], path, map[bool]string{true: askGPT}[path == chatPath], header...)
				if got.status != http.StatusOK || got.header.Get("Access-Control-Allow-Origin") != test.want || got.header.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s: status %d, %v", path, got.status, got.header)
				}
				if exposed := got.header.Get("Access-Control-Expose-Headers"); (exposed != "") != (test.want != "") {
					t.Errorf("%s: exposed %q", path, exposed)
				}
			}
		})
	}
}

// W54: a page that a preflight has let through reads why its key is refused; one of another origin does not.
func TestPagesReadWhyTheyAreRefused(t *testing.T) {
	t.Parallel()
	p, _ := pages(t, "http://localhost:5173")
	for origin, want := range map[string]string{"http://localhost:5173": "http://localhost:5173", "https://other.example": ""} {
		got := p.send(http.MethodPost, chatPath, askGPT, "Authorization", "Bearer plm_wrong", "Origin", origin)
		if got.status != http.StatusUnauthorized || got.header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("%s: status %d, %v", origin, got.status, got.header)
		}
	}
}
