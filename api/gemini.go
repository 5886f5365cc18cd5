package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/api/proxysettings"
	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/gemini"
	"palimpsest/pipeline/wire/geminiinteractions"
)

const (
	geminiRoot   = "/v1beta/"
	geminiModels = "/v1beta/models"

	// googleKey is the header in which Google's clients send their key.
	googleKey = "X-Goog-Api-Key"
)

// geminiServer serves the Gemini API. Its paths hold the model and whether the answer is a stream.
type geminiServer struct{ *Server }

// register adds the routes of the Gemini API. A base URL may end in /v1, and version v1 of the API has the same
// requests as v1beta.
func (s geminiServer) register(e *echo.Echo) {
	e.Any(geminiRoot+"*", s.serve)
	e.Any("/v1"+geminiRoot+"*", s.serve)
	e.POST("/v1/models/*", s.stable)
}

// moveKey moves the key in a request's query to its header, because a query ends up in logs.
func moveKey(request *http.Request) {
	var kept []string
	for parameter := range strings.SplitSeq(request.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		if name != "key" {
			kept = append(kept, parameter)
			continue
		}
		if secret, err := url.QueryUnescape(value); err == nil && request.Header.Get(googleKey) == "" {
			request.Header.Set(googleKey, secret)
		}
	}
	request.URL.RawQuery = strings.Join(kept, "&")
	request.RequestURI = request.URL.RequestURI()
}

// stable serves a request of version v1 of the API, whose paths begin as those of other providers.
func (s geminiServer) stable(c echo.Context) error {
	if _, _, isMethod := modelAndMethod("/v1beta" + strings.TrimPrefix(c.Request().URL.EscapedPath(), "/v1")); isMethod {
		return s.serve(c)
	}
	return s.passthrough(c)
}

// serve serves one request.
func (s geminiServer) serve(c echo.Context) error {
	request := c.Request()
	if rest, is := strings.CutPrefix(request.URL.EscapedPath(), "/v1/"); is {
		rest = strings.TrimPrefix(rest, geminiRoot[1:])
		request.URL.Path, request.URL.RawPath = rewritten(request.URL, "", geminiRoot+rest)
		moveKey(request)
	}
	path := request.URL.EscapedPath()
	if err := upstream.CheckMethod(request.Method); err != nil {
		return s.refuseAtOnce(c, err)
	}
	if err := upstream.CheckPath(path); err != nil {
		return s.refuseAtOnce(c, err)
	}
	model, method, isMethod := modelAndMethod(path)
	interactions := geminiinteractions.New()
	switch traits := gemini.New().Traits(); {
	case request.Method == http.MethodPost && path == interactions.Traits().Path:
		return s.exchange(interactions, path, converse)(c)
	case request.Method == http.MethodGet && (path == geminiModels || strings.HasPrefix(path, geminiModels+"/") && !isMethod):
		return s.models(c)
	case request.Method == http.MethodPost && isMethod && method == "generateContent":
		return s.run(c, traits.Path, model, false)
	case request.Method == http.MethodPost && isMethod && method == "streamGenerateContent":
		return s.run(c, traits.Path, model, true)
	case request.Method == http.MethodPost && isMethod && method == "countTokens":
		return s.run(c, traits.CountPath, model, false)
	case couldRun(path) || request.Method == http.MethodPost && upstream.Reading(path) == interactions.Traits().Path:
		return s.refuseAtOnce(c, upstream.ErrPath)
	}
	return s.passthrough(c)
}

// modelAndMethod splits a path such as "/v1beta/models/gemini-2.5-pro:generateContent".
func modelAndMethod(path string) (model, method string, ok bool) {
	rest, ok := strings.CutPrefix(path, geminiModels+"/")
	if !ok || strings.Contains(rest, "/") {
		return "", "", false
	}
	rest, err := url.PathUnescape(rest)
	if err != nil {
		return "", "", false
	}
	model, method, ok = strings.Cut(rest, ":")
	return model, method, ok && model != ""
}

// couldRun reports whether a lenient server might take a path for one that runs a model, which would bypass the
// pipeline and its limits.
func couldRun(path string) bool {
	reading := upstream.Reading(path)
	return strings.HasPrefix(reading, geminiModels+"/") && slices.ContainsFunc([]string{":generatecontent", ":streamgeneratecontent", ":counttokens"}, func(method string) bool {
		return strings.HasSuffix(reading, method)
	})
}

// run serves a request that runs a model or counts a prompt. The model and whether the answer is a stream become
// members at the start of the body, where the pipeline finds them; all of the client's bytes keep their order, so
// that the body is the client's again without the added members.
func (s geminiServer) run(c echo.Context, endpoint, model string, stream bool) error {
	request, codec := c.Request(), gemini.New()
	purpose := converse
	if endpoint == codec.Traits().CountPath {
		purpose = measure
	}
	body := &platformBody{request: request.Body, encoding: encodingOf(request.Header)}
	if purpose == measure {
		body.inner = wholeRequest
	}
	body.added = append(wire.AppendQuote([]byte(`"model":`), model), `,"stream":`...)
	body.added = append(strconv.AppendBool(body.added, stream), ',')
	request.Body, request.ContentLength = body, -1
	request.Header.Del("Content-Encoding")
	request.URL.Path, request.URL.RawPath = endpoint, ""
	if !stream || wantsEvents(request.URL.Query()) {
		return s.exchange(codec, endpoint, purpose)(c)
	}
	answer := &arrayAnswer{ResponseWriter: c.Response().Writer}
	c.Response().Writer = answer
	if err := s.exchange(codec, endpoint, purpose)(c); err != nil {
		return err
	}
	return answer.end()
}

// wantsEvents reports whether a client of a stream wants server-sent events. Others get an array of chunks.
func wantsEvents(query url.Values) bool {
	return query.Get("alt") == "sse" || query.Get("$alt") == "sse"
}

// wholeRequest returns the body whose tokens a request counts: the request in generateContentRequest, without its
// model, or otherwise the whole body.
func wholeRequest(request io.Reader) (io.Reader, error) {
	whole, err := io.ReadAll(io.LimitReader(request, 2*maxBody))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	inside := wire.Get(whole, "generateContentRequest")
	if inside == nil {
		inside = wire.Get(whole, "generate_content_request")
	}
	if len(inside) > 0 && inside[0] == '{' {
		whole = wire.Delete(inside, "model")
	}
	return bytes.NewReader(whole), nil
}

// arrayAnswer turns a stream of events into an array of their data, as Google does for clients that don't ask for
// events. Everything else passes as it is.
type arrayAnswer struct {
	http.ResponseWriter

	isStream, begun bool
	split           wire.Splitter
}

// WriteHeader implements http.ResponseWriter.
func (a *arrayAnswer) WriteHeader(status int) {
	if a.isStream = status == http.StatusOK && isStream(a.Header().Get("Content-Type")); a.isStream {
		a.Header().Set("Content-Type", "application/json; charset=UTF-8")
		a.Header().Del("Content-Length")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *arrayAnswer) Write(p []byte) (int, error) {
	if !a.isStream {
		return a.ResponseWriter.Write(p) //nolint:wrapcheck // it stands for the writer
	}
	var out []byte
	a.split.Write(p, func(event wire.Event) {
		out = append(append(out, a.separator()...), event.Data...)
	})
	if _, err := a.ResponseWriter.Write(out); err != nil {
		return 0, fmt.Errorf("write array: %w", err)
	}
	return len(p), nil
}

// separator returns what stands before the next element.
func (a *arrayAnswer) separator() string {
	if a.begun {
		return ",\r\n"
	}
	a.begun = true
	return "["
}

// end ends the array.
func (a *arrayAnswer) end() error {
	if !a.isStream {
		return nil
	}
	var out []byte
	a.split.Flush(func(event wire.Event) { out = append(append(out, a.separator()...), event.Data...) })
	if !a.begun {
		out = append(out, '[')
	}
	if _, err := a.ResponseWriter.Write(append(out, "\n]"...)); err != nil {
		return fmt.Errorf("write array: %w", err)
	}
	return nil
}

// Unwrap returns the writer below, for http.ResponseController.
func (a *arrayAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// modelInPath returns the model in a path of the Gemini API, or otherwise the result of another function.
func modelInPath(request *http.Request, otherwise proxysettings.Model) proxysettings.Model {
	if model, _, ok := modelAndMethod(request.URL.EscapedPath()); ok {
		return func() (string, error) { return model, nil }
	}
	return otherwise
}
