package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// The forms of secrets: of keys of providers, of ours, of Stripe's, of bearer tokens, of
// JWTs; passwords and keys in URLs; members of JSON that are named like secrets. Our own
// API keys' prefixes, which logs show, are shorter.
var (
	secretForm  = regexp.MustCompile(`\b(?:sk|rk|pk)[-_][A-Za-z0-9_-]{8,}|\bplm_[a-z]+_[A-Za-z0-9]{12,}|\bgsk_[A-Za-z0-9]{8,}|\bAIza[A-Za-z0-9_-]{20,}|\bwhsec_[A-Za-z0-9]{8,}|(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)
	userInfo    = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)
	secretQuery = regexp.MustCompile(`(?i)([?&](?:api[-_]?)?(?:key|token|access_token)=)[^&\s"]+`)
	namedSecret = regexp.MustCompile(`(?i)("(?:authorization|proxy-authorization|x-api-key|api[-_]?key|x-provider-key|cookie|set-cookie|password|secret|token)":)\s*(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\])`)
)

// redacting is a handler of logs that writes no secret: neither what has the form of
// one, wherever it stands, nor values of headers and attributes that are named like
// one. It is the last door, not the first: who logs a key has made a mistake that this
// may not see, because there are keys that look like nothing.
type redacting struct{ slog.Handler }

// Handle implements slog.Handler.
func (r redacting) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, record.Level, withoutSecrets(record.Message), record.PC)
	record.Attrs(func(attribute slog.Attr) bool {
		clean.AddAttrs(cleanAttr(attribute))
		return true
	})
	return r.Handler.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (r redacting) WithAttrs(attributes []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attributes))
	for i, attribute := range attributes {
		clean[i] = cleanAttr(attribute)
	}
	return redacting{r.Handler.WithAttrs(clean)}
}

// WithGroup implements slog.Handler.
func (r redacting) WithGroup(name string) slog.Handler { return redacting{r.Handler.WithGroup(name)} }

func cleanAttr(attribute slog.Attr) slog.Attr {
	value := attribute.Value.Resolve()
	if isSecretName(attribute.Key) {
		return slog.String(attribute.Key, redacted)
	}
	switch value.Kind() {
	case slog.KindString:
		return slog.String(attribute.Key, withoutSecrets(value.String()))
	case slog.KindGroup:
		group := slices.Clone(value.Group())
		for i := range group {
			group[i] = cleanAttr(group[i])
		}
		return slog.Attr{Key: attribute.Key, Value: slog.GroupValue(group...)}
	case slog.KindAny:
		return slog.String(attribute.Key, cleanAny(value.Any()))
	default:
		return attribute // numbers, times and truths hold none
	}
}

// cleanAny returns a value of any type as text. Its members may be named like secrets
// as well.
func cleanAny(value any) string {
	switch value := value.(type) {
	case error:
		return withoutSecrets(value.Error())
	case fmt.Stringer:
		return withoutSecrets(value.String())
	case http.Header:
		return cleanHeader(value)
	case *http.Request:
		return withoutSecrets(value.Method + " " + value.URL.Path)
	case []byte:
		return withoutSecrets(string(value))
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return withoutSecrets(fmt.Sprint(value))
	}
	return withoutSecrets(string(namedSecret.ReplaceAll(encoded, []byte(`${1}"`+redacted+`"`))))
}

func cleanHeader(header http.Header) string {
	var out strings.Builder
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := withoutSecrets(strings.Join(header[name], ", "))
		if isSecretName(name) || isSecretHeader(name) {
			value = redacted
		}
		fmt.Fprintf(&out, "%s: %s; ", name, value)
	}
	return strings.TrimSuffix(out.String(), "; ")
}

// isSecretName reports whether an attribute is named like a secret. A name that only
// holds such a word, as prompt_tokens does, is none.
func isSecretName(name string) bool {
	switch strings.ToLower(strings.ReplaceAll(name, "-", "_")) {
	case "authorization", "proxy_authorization", "x_api_key", "api_key", "apikey", "x_provider_key", "x_palimpsest_provider_key",
		"cookie", "set_cookie", "password", "secret", "token", "access_token", "refresh_token":
		return true
	}
	return false
}

// isSecretHeader reports whether a header is named like a secret: of headers, all
// that hold such a word are.
func isSecretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "key", "token", "secret", "password", "cookie", "credential"},
		func(part string) bool { return strings.Contains(name, part) })
}

// marks are what every text with something in it that secretForm finds holds: looking
// for them costs next to nothing.
func marks() [14]string {
	return [...]string{"sk-", "plm_", "earer ", "EARER ", "asic ", "eyJ", "://", "key=", "token=", "gsk_", "AIza", "whsec_", "k_live_", "k_test_"}
}

// withoutSecrets returns a text without what has the form of a secret.
func withoutSecrets(text string) string {
	if len(text) == 36 && text[8] == '-' && text[23] == '-' {
		return text // an id: most of what is logged
	}
	for _, mark := range marks() {
		if strings.Contains(text, mark) {
			text = secretForm.ReplaceAllString(text, redacted)
			text = userInfo.ReplaceAllString(text, "://"+redacted+"@")
			return secretQuery.ReplaceAllString(text, "${1}"+redacted)
		}
	}
	return text
}
