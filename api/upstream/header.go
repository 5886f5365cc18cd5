package upstream

import (
	"net/http"
	"net/textproto"
	"strings"

	"palimpsest/tenants"
)

// hopByHop are the headers that concern one connection only (RFC 9110, section 7.6.1).
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ours are the request headers that end at the proxy: keys, what the transport
// sets anew, what tells of the client's network.
var ours = [...]string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Provider-Key", "X-Prxy-Pipe", "Cookie",
	"Host", "Content-Length", "Content-Encoding", "Accept-Encoding", "Expect",
	"Forwarded", "X-Real-Ip", "Via",
}

const (
	ownPrefix       = "X-Palimpsest-" // of the headers in which clients and the proxy speak to each other
	forwardedPrefix = "X-Forwarded-"  // of what proxies before us tell of the client
)

// requestHeader returns a copy of a client's headers without those that must not
// reach the provider. Everything unknown goes along, repeated lines too.
func requestHeader(client http.Header) http.Header {
	header := client.Clone()
	if header == nil {
		header = http.Header{}
	}
	removeConnectionHeaders(header)
	for _, name := range ours {
		header.Del(name)
	}
	for name := range header {
		if strings.HasPrefix(name, ownPrefix) || strings.HasPrefix(name, forwardedPrefix) {
			delete(header, name)
		}
	}
	header.Set("Accept-Encoding", "identity")
	if header.Get("User-Agent") == "" {
		header["User-Agent"] = nil // or the transport would add its own
	}
	return header
}

// authorize sets the provider's key where the provider looks for it.
func authorize(header http.Header, target Target) {
	if target.Provider == tenants.ProviderAnthropic {
		header.Set("X-Api-Key", target.Key)
		return
	}
	header.Set("Authorization", "Bearer "+target.Key)
}

// CopyResponseHeader adds a provider's headers to an answer, without those that
// concern its connection, its host or its cookies. It takes from over.
func CopyResponseHeader(to, from http.Header) {
	removeConnectionHeaders(from)
	for name, values := range from {
		switch name {
		case "Set-Cookie", "Content-Length", "Alt-Svc", "Strict-Transport-Security":
		default:
			if !strings.HasPrefix(name, ownPrefix) {
				to[name] = values
			}
		}
	}
}

// removeConnectionHeaders removes the hop-by-hop headers, those that Connection
// names included.
func removeConnectionHeaders(header http.Header) {
	for _, line := range header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			header.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		header.Del(name)
	}
}
