package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"palimpsest/tenants/redaction"
)

// redacting is a log handler that writes no secret: it redacts text in the form of a secret, and values of
// headers and attributes with a secret's name. It is only the last line of defense. Don't log keys, because
// this handler can't recognize every key.
type redacting struct{ slog.Handler }

// Handle implements slog.Handler.
func (r redacting) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, record.Level, redaction.Text(record.Message), record.PC)
	var few [32]slog.Attr // as many as the line of an exchange has, without the heap
	attributes := few[:0]
	record.Attrs(func(attribute slog.Attr) bool {
		attributes = append(attributes, cleanAttr(attribute))
		return true
	})
	clean.AddAttrs(attributes...)
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
		return slog.String(attribute.Key, redaction.Redacted)
	}
	switch value.Kind() {
	case slog.KindString:
		return slog.String(attribute.Key, redaction.Text(value.String()))
	case slog.KindGroup:
		group := slices.Clone(value.Group())
		for i := range group {
			group[i] = cleanAttr(group[i])
		}
		return slog.Attr{Key: attribute.Key, Value: slog.GroupValue(group...)}
	case slog.KindAny:
		return slog.String(attribute.Key, cleanAny(value.Any()))
	default:
		return attribute // numbers, times and booleans hold no secret
	}
}

// cleanAny returns a value of any type as text, because its members may have names of secrets as well.
func cleanAny(value any) string {
	switch value := value.(type) {
	case error:
		return redaction.Text(value.Error())
	case fmt.Stringer:
		return redaction.Text(value.String())
	case http.Header:
		return cleanHeader(value)
	case *http.Request:
		return redaction.Text(value.Method + " " + value.URL.Path)
	case []byte:
		return redaction.Text(string(value))
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return redaction.Text(fmt.Sprint(value))
	}
	return redaction.Text(string(redaction.Members(encoded)))
}

func cleanHeader(header http.Header) string {
	var out strings.Builder
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := redaction.Text(strings.Join(header[name], ", "))
		if isSecretName(name) || isSecretHeader(name) {
			value = redaction.Redacted
		}
		fmt.Fprintf(&out, "%s: %s; ", name, value)
	}
	return strings.TrimSuffix(out.String(), "; ")
}

// isSecretName reports whether an attribute has the name of a secret. A name that only contains such a
// word, such as prompt_tokens, does not count.
func isSecretName(name string) bool {
	switch strings.ToLower(strings.ReplaceAll(name, "-", "_")) {
	case "authorization", "proxy_authorization", "x_api_key", "api_key", "apikey", "x_provider_key", "x_palimpsest_provider_key",
		"cookie", "set_cookie", "password", "secret", "token", "access_token", "refresh_token":
		return true
	}
	return false
}

// isSecretHeader reports whether a header has the name of a secret. Any header whose name contains such a
// word counts.
func isSecretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "key", "token", "secret", "password", "cookie", "credential"},
		func(part string) bool { return strings.Contains(name, part) })
}
