package upstream

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/gemini"
)

// geminiAPI is the Gemini API. Its paths hold the model and whether the answer is a stream
// (https://ai.google.dev/api/generate-content).
type geminiAPI struct{}

// rewrite implements platform.
func (geminiAPI) rewrite(asked Request, target Target) (Request, Target, error) {
	target.BaseURL = strings.TrimSuffix(strings.TrimRight(target.BaseURL, "/"), "/v1beta")
	path, query, _ := strings.Cut(asked.Path, "?")
	traits := gemini.New().Traits()
	if asked.Stream != nil || path != traits.Path && path != traits.CountPath {
		return asked, target, nil
	}
	model, stream, body := withoutAdded(asked.Body)
	if path == traits.CountPath {
		stream, body = false, counted(model, body)
	}
	asked.Body, asked.Path = body, traits.Address(path, model, stream)
	separator := "?"
	if stream {
		separator = "&"
	}
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		isFrame := name == "alt" || name == "$alt" || name == "%24alt" // the proxy asks for events, whatever its client gets
		if parameter != "" && !(stream && isFrame) {
			asked.Path += separator + parameter
			separator = "&"
		}
	}
	return asked, target, nil
}

// restore implements platform.
func (geminiAPI) restore(Request, *http.Response) error { return nil }

// withoutAdded returns a copy of a body without the first model and stream, and these. The rest keeps its bytes.
func withoutAdded(body []byte) (model string, stream bool, rest []byte) {
	var hasModel, hasStream bool
	rest = wire.Keep(body, func(name []byte, value json.RawMessage) bool {
		switch string(name) {
		case "model":
			if !hasModel {
				hasModel = true
				model, _ = wire.String(value)
				return false
			}
		case "stream":
			if !hasStream {
				hasStream, stream = true, string(value) == "true"
				return false
			}
		}
		return true
	}, nil)
	if !hasModel && !hasStream {
		rest = bytes.Clone(rest) // the caller may release the body
	}
	return strings.TrimPrefix(model, "models/"), stream, rest
}

// counted returns the body that counts the tokens of a prompt. Contents alone are counted as they are; other
// members only count inside a whole request.
func counted(model string, body []byte) []byte {
	isWhole := false
	for name := range wire.Members(body) {
		isWhole = isWhole || string(name) != "contents"
	}
	if !isWhole {
		return body
	}
	out := append(wire.AppendQuote([]byte(`{"generateContentRequest":{"model":`), "models/"+model), ',')
	return append(append(out, bytes.TrimSpace(body)[1:]...), '}')
}

// Interface guard.
var _ platform = geminiAPI{}
