package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	// preflightAge is how long browsers remember an answer to a preflight.
	preflightAge = "600"
	// originAge is how long this process caches whether an origin is allowed anywhere, knownOrigins the size
	// of that cache, and originTimeout the timeout of its database query.
	originAge     = 10 * time.Second
	knownOrigins  = 10_000
	originTimeout = 2 * time.Second
	// originLookups bounds concurrent database queries.
	originLookups = 4
	// longestOrigin and longestHeaders bound the values of a preflight, in bytes.
	longestOrigin  = 200
	longestHeaders = 4096
)

// Origins decides which pages may read answers in a browser. Browsers ask with a preflight before they send
// anything, without the API key. So a preflight succeeds if any workspace allows the origin, and the request
// itself, which has the key, if that key or its workspace does. No answer allows credentials, because a key
// is sent by the page's script or not at all.
type Origins struct {
	allowed func(ctx context.Context, origin string) (bool, error)
	known   *localcache.Cache[string, bool]
	asking  *semaphore.Weighted // bounds queries by callers without a key
}

// NewOrigins returns Origins. allowed reports whether any workspace or API key allows an origin.
func NewOrigins(allowed func(ctx context.Context, origin string) (bool, error)) (*Origins, error) {
	known, err := localcache.New[string](localcache.Options[bool]{MaximumSize: knownOrigins, ExpireAfterWrite: originAge})
	if err != nil {
		return nil, fmt.Errorf("known origins: %w", err)
	}
	return &Origins{allowed: allowed, known: known, asking: semaphore.NewWeighted(originLookups)}, nil
}

// anywhere reports whether any workspace allows an origin. It reports false while the database is away.
func (o *Origins) anywhere(ctx context.Context, origin string) bool {
	if o == nil || len(origin) > longestOrigin {
		return false
	}
	origin = strings.ToLower(origin)
	if allowed, isKnown := o.known.Get(origin); isKnown {
		return allowed
	}
	ctx, cancel := context.WithTimeout(ctx, originTimeout)
	defer cancel()
	if o.asking.Acquire(ctx, 1) != nil {
		return false
	}
	defer o.asking.Release(1)
	allowed, err := o.allowed(ctx, origin)
	if err != nil {
		return false
	}
	o.known.Set(origin, allowed)
	return allowed
}

// browserKey is the context key for the state of a request with an origin.
type browserKey struct{}

// browser is a request from a page.
type browser struct {
	origin  string
	allowed bool // the request's key, or its workspace, allows the origin
	decided bool // the key is known
}

// serve answers preflights of the proxy's endpoints, and lets pages of allowed origins read the proxy's
// answers.
func (o *Origins) serve(c echo.Context, next echo.HandlerFunc) error {
	request, header := c.Request(), c.Response().Header()
	origin := request.Header.Get(echo.HeaderOrigin)
	if origin == "" || !isCalledByPages(request.URL.Path) {
		return next(c)
	}
	header.Add(echo.HeaderVary, echo.HeaderOrigin)
	if request.Method == http.MethodOptions && request.Header.Get(echo.HeaderAccessControlRequestMethod) != "" {
		return o.preflight(c, origin)
	}
	page := &browser{origin: origin}
	ctx := request.Context()
	c.SetRequest(request.WithContext(context.WithValue(ctx, browserKey{}, page)))
	c.Response().Before(func() {
		if page.allowed || !page.decided && o.anywhere(ctx, origin) {
			header.Set(echo.HeaderAccessControlAllowOrigin, origin)
			header.Set(echo.HeaderAccessControlExposeHeaders, "*")
		}
	})
	return next(c)
}

// isCalledByPages reports whether a path is one of the proxy's, in any accepted spelling. The dashboard and
// the JSON API are excluded because they authenticate people by a cookie.
func isCalledByPages(path string) bool {
	for _, prefix := range []string{"/openai", "/anthropic"} {
		if rest, found := strings.CutPrefix(path, prefix+"/"); found {
			path = "/" + rest
		}
	}
	if strings.HasPrefix(path, relayed) || path == mcpPath {
		return true
	}
	return slices.ContainsFunc([]string{"/messages", "/chat/completions", "/responses", "/models", "/embeddings"}, func(known string) bool {
		return path == known || strings.HasPrefix(path, known+"/")
	})
}

// preflight answers a browser's question whether a page may send a request.
func (o *Origins) preflight(c echo.Context, origin string) error {
	asked, header := c.Request().Header, c.Response().Header()
	header.Add(echo.HeaderVary, echo.HeaderAccessControlRequestMethod)
	header.Add(echo.HeaderVary, echo.HeaderAccessControlRequestHeaders)
	if !o.anywhere(c.Request().Context(), origin) {
		return c.Blob(http.StatusForbidden, echo.MIMEApplicationJSON, codecFor(c.Request()).Error(wire.Problem{
			Status: http.StatusForbidden, Type: "permission_error", Code: "origin_not_allowed",
			Message: "Pages of this origin may not use the proxy. An owner or admin of the workspace allows it under Settings, Browser origins, or in the API key's own browser origins.",
		}))
	}
	header.Set(echo.HeaderAccessControlAllowOrigin, origin)
	header.Set(echo.HeaderAccessControlAllowMethods, strings.Join(upstream.Methods(), ", "))
	if names := headerNames(asked.Get(echo.HeaderAccessControlRequestHeaders)); names != "" {
		header.Set(echo.HeaderAccessControlAllowHeaders, names)
	}
	if asked.Get("Access-Control-Request-Private-Network") == "true" {
		header.Set("Access-Control-Allow-Private-Network", "true")
	}
	header.Set(echo.HeaderAccessControlMaxAge, preflightAge)
	return c.NoContent(http.StatusNoContent)
}

// headerNames returns a list of headers' names as it came; "" if it is malformed.
func headerNames(list string) string {
	isName := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_, ", r)
	}
	if len(list) > longestHeaders || strings.ContainsFunc(list, func(r rune) bool { return !isName(r) }) {
		return ""
	}
	return list
}

// readBy notes whether the page behind a request may read answers to a key. It does nothing for requests
// without an origin.
func (g *Gate) readBy(request *http.Request, key tenants.APIKey) {
	page, is := request.Context().Value(browserKey{}).(*browser)
	if !is {
		return
	}
	page.decided = true
	if len(key.Limits.Origins) > 0 {
		page.allowed = key.Limits.Origins.Allow(page.origin)
		return
	}
	origins, err := g.Settings.Origins(request.Context(), key.Workspace)
	page.allowed = err == nil && origins.Allow(page.origin)
}
