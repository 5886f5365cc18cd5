package upstream

import (
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

// hopByHop are the headers that concern one connection only (RFC 9110, section 7.6.1).
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ours lists the request headers that end at the proxy: keys, headers that the transport sets again, facts
// about the client's network, and headers that make servers take another method or path than the request's.
var ours = [...]string{
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url",
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Provider-Key", "X-Prxy-Pipe", "Cookie",
	"Host", "Content-Length", "Content-Encoding", "Accept-Encoding", "Expect",
	"Forwarded", "X-Real-Ip", "Via", "True-Client-Ip", "Cf-Connecting-Ip", "Baggage",
}

// secretive are parts of names that identify headers with secrets.
var secretive = [...]string{"authorization", "api-key", "apikey", "token", "secret", "password", "credential", "cookie"}

const (
	ownPrefix       = "X-Palimpsest-" // prefix of headers between clients and the proxy
	forwardedPrefix = "X-Forwarded-"  // facts about the client from proxies before us
)

// Bounds of a provider key's extra headers.
const (
	maxHeaders     = 16
	maxHeaderValue = 512 // bytes
)

// requestHeader returns a copy of a client's headers without those that must not reach the provider, and with
// those of the target and its key. It forwards unknown headers, including repeated lines. But a base URL set
// by a person gets no header that looks like a secret of the client's.
func requestHeader(client http.Header, target Target) http.Header {
	header := client.Clone()
	if header == nil {
		header = http.Header{}
	}
	removeConnectionHeaders(header)
	for _, name := range ours {
		header.Del(name)
	}
	for name := range header {
		if hasOwnPrefix(name) || target.BaseURL != "" && isSecretive(name) || holdsKey(header[name]...) {
			delete(header, name)
		}
	}
	spans.Clean(header)
	for _, added := range target.Headers {
		header.Set(added.Name, added.Value)
	}
	authorize(header, target)
	header.Set("Accept-Encoding", "identity")
	if header.Get("User-Agent") == "" {
		header["User-Agent"] = nil // otherwise the transport adds its own
	}
	return header
}

func hasOwnPrefix(name string) bool {
	return strings.HasPrefix(name, ownPrefix) || strings.HasPrefix(name, forwardedPrefix)
}

// holdsKey reports whether any of some values contains an API key of our own, at any position.
func holdsKey(values ...string) bool {
	return slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, tenants.KeyStart) })
}

// withoutKeys returns a path without the query parameters that hold an API key of our own. All others stay
// unchanged.
func withoutKeys(path string) string {
	before, query, hasQuery := strings.Cut(path, "?")
	if !hasQuery || !holdsKey(query) {
		return path
	}
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(parameter string) bool { return holdsKey(parameter) })
	if len(kept) == 0 {
		return before
	}
	return before + "?" + strings.Join(kept, "&")
}

// isSecretive reports whether a header's name suggests a secret.
func isSecretive(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretive[:], func(part string) bool { return strings.Contains(name, part) })
}

// authorize sets the provider's key in the provider's place for it.
func authorize(header http.Header, target Target) {
	if target.Own != nil {
		maps.Copy(header, target.Own)
		return
	}
	auth := target.Auth
	if dialect, known := DialectOf(target.Provider); known && auth == tenants.AuthUsual {
		auth = dialect.Auth
	}
	switch auth {
	case tenants.AuthXAPIKey:
		header.Set("X-Api-Key", target.Key)
	case tenants.AuthAPIKey:
		header.Set("Api-Key", target.Key)
	case tenants.AuthGoogAPIKey:
		header.Set("X-Goog-Api-Key", target.Key)
	case tenants.AuthSigV4: // sign adds the signature
	case tenants.AuthGoogle, tenants.AuthEntra: // never sent themselves
	case tenants.AuthUsual, tenants.AuthBearer:
		header.Set("Authorization", "Bearer "+target.Key)
	}
}

// VerifyHeaders refuses headers that a provider key cannot bring along: headers of a connection, headers that
// the proxy sets, invalid names, and names of secrets, because the values are stored readable. The error is a
// tenants.Invalid.
func VerifyHeaders(headers []tenants.Header) error {
	invalid := func(format string, values ...any) error {
		return tenants.Invalid{Field: "headers", Message: fmt.Sprintf(format, values...)}
	}
	if len(headers) > maxHeaders {
		return invalid("has %d lines; at most %d are allowed", len(headers), maxHeaders)
	}
	for _, header := range headers {
		name := http.CanonicalHeaderKey(header.Name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return invalid("%q is not the name of a header", header.Name)
		case isSecretive(name):
			return invalid("%s would hold a secret, and headers are stored readable; only the key itself is sealed", name)
		case slices.Contains(ours[:], name) || slices.Contains(hopByHop[:], name) || hasOwnPrefix(name) || strings.HasPrefix(name, "Content-"):
			return invalid("%s is set by the proxy itself", name)
		case len(header.Value) > maxHeaderValue || !httpguts.ValidHeaderFieldValue(header.Value):
			return invalid("%s must have at most %d visible characters", name, maxHeaderValue)
		}
	}
	return nil
}

// removeConnectionHeaders removes the hop-by-hop headers, including those named by Connection.
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
