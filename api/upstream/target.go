package upstream

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/expression"
	"palimpsest/tenants"
	"palimpsest/tenants/guard"
)

// modelPlace is a placeholder for a request's model in a base URL: Azure's paths before its v1 API name a
// deployment, https://RESOURCE.openai.azure.com/openai/deployments/{model}?api-version=2024-10-21
// (https://learn.microsoft.com/azure/ai-foundry/openai/reference).
const modelPlace = "/{model}"

// Target is a provider with the settings for one request.
type Target struct {
	Provider tenants.Provider // dialect of the request
	BaseURL  string           // "" for the provider's own
	Platform tenants.Platform // whose form the request takes; "" for the dialect's own
	SignsFor string           // region of signatures; "" for keys that don't sign
	Service  string           // of AWS, in signatures
	Key      string           // in the clear
	Own      http.Header      // the caller's, sent unchanged in place of Key; nil if absent
	KeyID    uuid.UUID        // of the provider key; uuid.Nil if it is not stored
	Auth     tenants.Auth
	Headers  []tenants.Header // sent along; never changed
	Model    string           // named by the request; "" if absent
	Wait     time.Duration    // for the start of an answer; 0 means no limit
	Weight   int              // share of new sessions among equal keys; 0 means 1

	PublicOnly bool // refuse private addresses even if this installation allows them
}

// regionalHost follows the region in OpenAI's host names.
const regionalHost = ".api.openai.com"

// Region returns the region of OpenAI's hosts for regional processing, which process all requests there: "eu"
// of eu.api.openai.com. It is "" for other hosts.
func (t Target) Region() string {
	if !strings.Contains(t.BaseURL, regionalHost) {
		return ""
	}
	base, err := url.Parse(t.BaseURL)
	if err != nil {
		return ""
	}
	region, isRegional := strings.CutSuffix(base.Hostname(), regionalHost)
	if !isRegional {
		return ""
	}
	return region
}

// TargetOf returns the target of a provider key with its secret, for a dialect.
func TargetOf(key tenants.ProviderKey, dialect tenants.Provider, secret, model string) Target {
	return Target{Provider: dialect, BaseURL: key.BaseURL, Platform: key.Platform(), SignsFor: key.Region, Service: key.MadeFrom().Service, Key: secret, KeyID: key.ID, Auth: key.Auth, Headers: key.Headers, Model: model, Wait: key.Wait, Weight: key.Weight}
}

// ownBaseURL returns a provider's own base URL; "" if unknown.
func ownBaseURL(provider tenants.Provider) string {
	dialect, _ := DialectOf(provider)
	return dialect.BaseURL
}

// HostOf returns the name and the port of a target's server; "" and 0 for a provider without a known server.
func HostOf(target Target) (name string, port int) {
	base, err := url.Parse(cmp.Or(target.BaseURL, ownBaseURL(target.Provider)))
	if err != nil || base.Host == "" {
		return "", 0
	}
	if port, err = strconv.Atoi(base.Port()); err == nil {
		return base.Hostname(), port
	}
	if base.Scheme == "http" {
		return base.Hostname(), 80
	}
	return base.Hostname(), 443
}

// Upstream names the server of the target, the same for all keys and all spellings of its base URL; "" for
// the provider's own.
func (t Target) Upstream() string {
	base, query, _ := strings.Cut(t.BaseURL, "?")
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1")
	if parsed, err := url.Parse(base); err == nil && parsed.Host != "" && !NeedsModel(base) {
		host := strings.ToLower(parsed.Host)
		if port := map[string]string{"https": ":443", "http": ":80"}[parsed.Scheme]; port != "" {
			host = strings.TrimSuffix(host, port)
		}
		base = parsed.Scheme + "://" + host + parsed.EscapedPath()
	}
	switch {
	case query != "":
		return base + "?" + query
	case base == ownBaseURL(t.Provider):
		return ""
	}
	return base
}

// NeedsModel reports whether a base URL needs a request's model.
func NeedsModel(baseURL string) bool { return strings.Contains(baseURL, modelPlace) }

// apiVersion matches a value of Azure's query, a date.
var apiVersion = expression.New(`^api-version=[0-9A-Za-z.-]{1,40}$`)

// VerifyBaseURL refuses an unusable base URL. Host names are checked again at each connection. The error is a
// tenants.Invalid.
func VerifyBaseURL(raw string, allowPrivate bool) error {
	invalid := func(message string) error { return tenants.Invalid{Field: "base_url", Message: message} }
	parsed, err := url.Parse(raw)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http":
		return invalid("is not a URL such as https://api.example.com")
	case endsEarly(raw, parsed) || parsed.ForceQuery || parsed.RawQuery != "" && !apiVersion.MatchString(parsed.RawQuery):
		return invalid("must not hold a user, a fragment (#) or a query other than ?api-version=; leave it out")
	case strings.ContainsAny(parsed.Host, "{}") || !isTemplate(parsed.Path):
		return invalid("may hold {model} once, as a part of its path behind another, and no other braces")
	case allowPrivate && isNever(parsed):
		return invalid("leads to a link-local address or one that gives a machine's credentials away, which is never allowed")
	case allowPrivate:
		return nil
	case isPrivate(parsed):
		return invalid("leads to a private address, which this installation does not allow; who runs it can set PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS=true")
	case parsed.Scheme != "https":
		return invalid("must start with https://")
	default:
		return nil
	}
}

// endsEarly reports whether a base URL holds a user or a fragment. A "#" at its end cuts off the path of the
// request, too.
func endsEarly(raw string, parsed *url.URL) bool {
	return parsed.User != nil || strings.Contains(raw, "#")
}

// isTemplate reports whether braces in a path only occur as {model}.
func isTemplate(path string) bool {
	before, after, found := strings.Cut(path, modelPlace)
	if strings.ContainsAny(before+after, "{}") {
		return false
	}
	return !found || (after == "" || after[0] == '/') && strings.Contains(before, "/")
}

// isPrivate reports whether a base URL names this machine, or an address that the
// guard of connections refuses.
func isPrivate(base *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(base.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && guard.IsPrivate(address)
}

// isNever reports whether a base URL names an address that no setting allows.
func isNever(base *url.URL) bool {
	address, err := netip.ParseAddr(base.Hostname())
	return err == nil && guard.IsNever(address)
}

// address returns the URL of a path, which begins with "/v1", at a target. A base URL may end in "/v1" or
// not; its query is added to every request. If it holds {model}, the path is appended without its "/v1"; a
// request without a model drops {model} and the part before it, as lists of models need.
func address(target Target, path string) (string, error) {
	base, query, _ := strings.Cut(target.BaseURL, "?")
	if parsed, err := url.Parse(target.BaseURL); err != nil || endsEarly(target.BaseURL, parsed) { // stored before such URLs were refused
		return "", tenants.Invalid{Field: "base_url", Message: "of the provider key holds a user or a fragment (#), which is not allowed; replace the key with another base URL"}
	}
	switch {
	case base == "" && ownBaseURL(target.Provider) != "":
		base = ownBaseURL(target.Provider)
	case base == "":
		return "", fmt.Errorf("%w: provider %q has no base URL", ErrUnreachable, target.Provider)
	case NeedsModel(base):
		path = strings.TrimPrefix(path, "/v1")
		before, after, _ := strings.Cut(strings.TrimRight(base, "/"), modelPlace)
		switch {
		case target.Model == "":
			base = before[:strings.LastIndex(before, "/")] + after
		case hasDotSegment(Reading(target.Model)):
			return "", tenants.Invalid{Field: "model", Message: "is not the name of a deployment"}
		default:
			base = before + "/" + url.PathEscape(target.Model) + after
		}
	default:
		base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1")
	}
	if query == "" {
		return base + path, nil
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return base + path + separator + query, nil
}
