package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// google is Google Cloud's Agent Platform, formerly Vertex AI, with Claude's models. A body there is one of POST
// /v1/messages with its version and without its model, which is a part of the path
// (https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai). Answers are those of Anthropic's API.
type google struct{}

const (
	googleVersion = `"vertex-2023-10-16"`
	googleModels  = "/publishers/anthropic/models/"
	googleCount   = "count-tokens:rawPredict"
)

// rewrite implements platform.
func (google) rewrite(asked Request, target Target) (Request, Target, error) {
	path, _, _ := strings.Cut(asked.Path, "?")
	out := asked
	if out.Header == nil {
		out.Header = http.Header{}
	}
	switch {
	case target.BaseURL == "":
		return asked, target, fmt.Errorf("%w: a key of Google Cloud has no base URL", ErrUnreachable)
	case path == countPath && asked.Stream == nil:
		_, _, out.Body = googleBody(asked.Body, true)
		out.Path = googleModels + googleCount
		return out, target, nil
	case path != messagesPath || asked.Stream != nil:
		return asked, target, tenants.Invalid{Field: "path", Message: fmt.Sprintf("%.100s is not served by Google Cloud; use a provider key of Anthropic, or POST %s", path, messagesPath)}
	}
	model, stream, body := googleBody(asked.Body, false)
	if model == "" {
		return asked, target, tenants.Invalid{Field: "model", Message: "must name a model of Google Cloud, such as claude-sonnet-4-5@20250929"}
	}
	operation := ":rawPredict"
	if stream {
		operation = ":streamRawPredict"
	}
	out.Path, out.Body = googleModels+url.PathEscape(model)+operation, body
	return out, target, nil
}

// googleBody returns a body with a version, its own if it has one. It drops the model unless keepModel is true,
// since the path names it.
func googleBody(body []byte, keepModel bool) (model string, stream bool, out []byte) {
	hasVersion := false
	out = wire.Keep(body, func(name []byte, value json.RawMessage) bool {
		switch string(name) {
		case "model":
			model, _ = wire.String(value)
			return keepModel
		case "stream":
			stream, _ = strconv.ParseBool(string(value))
		case versionMember:
			hasVersion = true
		}
		return true
	}, func() []byte {
		if hasVersion {
			return nil
		}
		return []byte(`"` + versionMember + `":` + googleVersion + `,`)
	})
	return model, stream, out
}

// restore implements platform.
func (google) restore(Request, *http.Response) error { return nil }

// GoogleModelIn returns the model in a path of Google Cloud, /projects/PROJECT/locations/LOCATION/publishers/anthropic/models/MODEL:OPERATION.
// For a count of tokens, the body names the model.
func GoogleModelIn(escaped string) (model string, counts, ok bool) {
	parts := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	const length = 8
	if len(parts) != length || parts[0] != "projects" || parts[2] != "locations" || parts[4] != "publishers" || parts[5] != "anthropic" || parts[6] != "models" {
		return "", false, false
	}
	last, err := url.PathUnescape(parts[7])
	if err != nil {
		return "", false, false
	}
	if last == googleCount {
		return "", true, true
	}
	colon := strings.LastIndexByte(last, ':')
	if colon <= 0 || last[colon:] != ":rawPredict" && last[colon:] != ":streamRawPredict" {
		return "", false, false
	}
	return last[:colon], false, true
}

// Interface guard.
var _ platform = google{}
