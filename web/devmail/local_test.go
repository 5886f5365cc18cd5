package devmail

import (
	"net/http"
	"testing"
)

// The links in mails open accounts: nobody but the machine itself sees them.
func TestOnlyTheMachineItselfIsLocal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		public, host, remote, header string
		want                         bool
	}{
		"itself":          {"http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:5000", "", true},
		"by name":         {"http://localhost:8080", "localhost:8080", "[::1]:5000", "", true},
		"another machine": {"http://localhost:8080", "localhost:8080", "192.0.2.1:5000", "", false},
		"a public name":   {"http://localhost:8080", "palimpsest.example.com", "127.0.0.1:5000", "", false},
		"a public URL":    {"https://palimpsest.example.com", "127.0.0.1:8080", "127.0.0.1:5000", "", false},
		"by a proxy":      {"http://localhost:8080", "localhost:8080", "127.0.0.1:5000", "X-Forwarded-For", false},
		"by another":      {"http://localhost:8080", "localhost:8080", "127.0.0.1:5000", "Via", false},
		"by a tunnel":     {"http://localhost:8080", "localhost:8080", "127.0.0.1:5000", "Cf-Connecting-Ip", false},
		"by a newer one":  {"http://localhost:8080", "localhost:8080", "127.0.0.1:5000", "X-Forwarded-Anything", false},
	} {
		request := &http.Request{Host: test.host, RemoteAddr: test.remote, Header: http.Header{}}
		if test.header != "" {
			request.Header.Set(test.header, "192.0.2.1")
		}
		if got := isLocal(request, test.public); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLinksOfMailsLeadToThisSite(t *testing.T) {
	t.Parallel()
	found := parts("Open this:\n\nhttps://example.com/verify/abc\n\nIt works once.")
	if len(found) != 3 || found[1] != (part{Text: "https://example.com/verify/abc", Path: "/verify/abc"}) || found[2].Text != "\n\nIt works once." {
		t.Errorf("parts %q", found)
	}
}
