package api

import (
	"bytes"
	"net/http"
	"sync"

	"palimpsest/pipeline/prompt"
)

// maxPlain bounds the number of remembered provider keys.
const maxPlain = 10_000

// plainKeys are the provider keys whose servers don't support the usage option of streams. The zero value is
// ready to use.
type plainKeys struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (p *plainKeys) has(admission admission) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[plainKey(admission)]
}

func (p *plainKeys) add(admission admission) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil || len(p.keys) >= maxPlain {
		p.keys = make(map[string]bool)
	}
	p.keys[plainKey(admission)] = true
}

func plainKey(admission admission) string {
	return admission.key.Workspace.String() + " " + admission.target.KeyID.String() + " " + admission.target.Upstream()
}

// sendAsking sends, by send, a prompt whose stream may be asked for a usage without a client's request for
// it. If the server refuses that, sendAsking sends the prompt again without it, and requests with the
// provider key don't ask again.
func (g *Gate) sendAsking(admission admission, written *prompt.Prompt, send func() (*http.Response, error)) (*http.Response, error) {
	response, err := send()
	if err != nil || !written.AsksUsage || !refusesUsage(response) {
		return response, err
	}
	_ = response.Body.Close()
	written.WithoutUsage()
	response, err = send()
	if err == nil && response.StatusCode < http.StatusBadRequest {
		g.plain.add(admission)
	}
	return response, err
}

// refusesUsage reports whether an answer is an error about the option that asks for usage. The answer can
// still be relayed from its first byte.
func refusesUsage(response *http.Response) bool {
	if response.StatusCode < http.StatusBadRequest {
		return false
	}
	head, _ := headOf(response)
	head = bytes.ToLower(head)
	for _, name := range []string{"stream_options", "include_usage", "streamoptions", "stream options"} {
		if bytes.Contains(head, []byte(name)) {
			return true
		}
	}
	return false
}
