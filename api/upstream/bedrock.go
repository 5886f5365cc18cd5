package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go/encoding/httpbinding"

	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// bedrock is Amazon Bedrock with Claude's models. A body there is one of POST /v1/messages without model and
// stream, which are parts of the path, and with the version and the beta features of the headers
// (https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html).
type bedrock struct{}

// The members of a body that stand in a header of Anthropic's API.
const (
	versionMember  = "anthropic_version"
	betaMember     = "anthropic_beta"
	bedrockVersion = `"bedrock-2023-05-31"`
)

// The paths of Anthropic's API that Amazon Bedrock offers in a form of its own.
const (
	messagesPath = "/v1/messages"
	countPath    = "/v1/messages/count_tokens"
	modelsPath   = "/v1/models"
)

// maxShort bounds answers that are read whole, in bytes.
const maxShort = 4 << 20

// bedrockBetas returns the beta features that Amazon Bedrock knows. It refuses a request that names another one
// ("invalid beta flag"), so others are left out. The last one is named by Palimpsest itself, for settings that
// it adds to the body.
func bedrockBetas() []string {
	return []string{
		"computer-use-2024-10-22", "computer-use-2025-01-24", "computer-use-2025-11-24", "token-efficient-tools-2025-02-19",
		"output-128k-2025-02-19", "interleaved-thinking-2025-05-14", "dev-full-thinking-2025-05-14", "fine-grained-tool-streaming-2025-05-14",
		"context-1m-2025-08-07", "context-management-2025-06-27", "effort-2025-11-24", "tool-search-tool-2025-10-19", "tool-examples-2025-10-29",
		"thinking-binding-controls-2026-08-01",
	}
}

// rewrite implements platform.
func (bedrock) rewrite(asked Request, target Target) (Request, Target, error) {
	path, query, _ := strings.Cut(asked.Path, "?")
	out := asked
	out.Header = asked.Header.Clone()
	if out.Header == nil {
		out.Header = http.Header{}
	}
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta"} {
		out.Header.Del(name)
	}
	out.Header.Set("Accept", "application/json")
	var err error
	switch {
	case target.BaseURL == "":
		return asked, target, fmt.Errorf("%w: a key of Amazon Bedrock has no base URL", ErrUnreachable)
	case path == messagesPath && asked.Stream == nil:
		out.Path, out.Body, err = invocation(asked)
	case path == countPath && asked.Stream == nil:
		out.Path, out.Body, err = counting(asked)
	case path == modelsPath, strings.HasPrefix(path, modelsPath+"/"):
		out.Path = "/inference-profiles" + strings.TrimPrefix(path, modelsPath)
		if path == modelsPath {
			out.Path += "?maxResults=1000&type=SYSTEM_DEFINED"
		}
		target.BaseURL = controlPlane(target.BaseURL)
	case IsBedrockList(path) && asked.Method == http.MethodGet:
		if out.Path = path; query != "" {
			out.Path += "?" + query
		}
		target.BaseURL = controlPlane(target.BaseURL)
	default:
		err = tenants.Invalid{Field: "path", Message: fmt.Sprintf("%.100s is not served by Amazon Bedrock; use a provider key of Anthropic, or POST %s", path, messagesPath)}
	}
	return out, target, err
}

// IsBedrockList reports whether a path is one of the lists of models that Amazon Bedrock's clients ask for.
func IsBedrockList(path string) bool {
	for _, list := range []string{"/inference-profiles", "/foundation-models"} {
		if path == list || strings.HasPrefix(path, list+"/") {
			return true
		}
	}
	return false
}

// controlPlane returns the base URL for lists of models. Amazon has a host of its own for them.
func controlPlane(baseURL string) string {
	return strings.Replace(baseURL, "//bedrock-runtime", "//bedrock", 1)
}

// invocation returns the path and the body that run a model.
func invocation(asked Request) (path string, body []byte, err error) {
	model, stream, body, err := bedrockBody(asked, false)
	if err != nil {
		return "", nil, err
	}
	operation := "/invoke"
	if stream {
		operation = "/invoke-with-response-stream"
	}
	return modelPath(model) + operation, body, nil
}

// counting returns the path and the body that count the tokens of a prompt. Only the models themselves count,
// not the inference profiles that route to them.
func counting(asked Request) (path string, body []byte, err error) {
	model, _, counted, err := bedrockBody(asked, true)
	if err != nil {
		return "", nil, err
	}
	if _, after, isProfile := strings.Cut(model, ".anthropic."); isProfile && !strings.Contains(model, ":inference-profile/") {
		model = "anthropic." + after
	}
	body = append(body, `{"input":{"invokeModel":{"body":"`...)
	body = base64.StdEncoding.AppendEncode(body, counted)
	return modelPath(model) + "/count-tokens", append(body, `"}}}`...), nil
}

// modelPath returns the path of a model, escaped as Amazon's own SDKs do it.
func modelPath(model string) string { return "/model/" + httpbinding.EscapePath(model, true) }

// bedrockBody returns the body of a request as Amazon Bedrock takes it, and the members that stand elsewhere. A
// body whose tokens are counted needs a limit of the answer there, but must not have one at Anthropic.
func bedrockBody(asked Request, counts bool) (model string, stream bool, body []byte, err error) {
	betas := betasIn(asked.Header)
	var hasVersion, hasLimit bool
	body = wire.Keep(asked.Body, func(name []byte, value json.RawMessage) bool {
		switch string(name) {
		case "model":
			model, _ = wire.String(value)
			return false
		case "stream":
			stream, _ = strconv.ParseBool(string(value))
			return false
		case versionMember:
			hasVersion = true
		case "max_tokens":
			hasLimit = true
		case betaMember:
			var named []string
			if json.Unmarshal(value, &named) != nil {
				return true // Bedrock says what is wrong
			}
			more := slices.DeleteFunc(betas, func(beta string) bool { return slices.Contains(named, beta) })
			if betas = slices.Concat(named, more); len(more) > 0 {
				return false
			}
			betas = nil
		}
		return true
	}, func() (added []byte) {
		if !hasVersion {
			added = append(added, `"`+versionMember+`":`+bedrockVersion+`,`...)
		}
		if len(betas) > 0 {
			list, _ := json.Marshal(betas) // strings can be encoded
			added = append(append(append(added, `"`+betaMember+`":`...), list...), ',')
		}
		if counts && !hasLimit {
			added = append(added, `"max_tokens":1,`...)
		}
		return added
	})
	if model == "" {
		return "", false, nil, tenants.Invalid{Field: "model", Message: "must name a model or an inference profile of Amazon Bedrock, such as us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
	}
	return model, stream, body, nil
}

// betasIn returns the beta features in a request's headers that Amazon Bedrock knows.
func betasIn(header http.Header) []string {
	var betas []string
	for _, line := range header.Values("Anthropic-Beta") {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); slices.Contains(bedrockBetas(), beta) && !slices.Contains(betas, beta) {
				betas = append(betas, beta)
			}
		}
	}
	return betas
}

// restore implements platform.
func (bedrock) restore(asked Request, response *http.Response) error {
	path, _, _ := strings.Cut(asked.Path, "?")
	switch {
	case strings.HasPrefix(response.Header.Get("Content-Type"), EventStream):
		unframe(response)
		return nil
	case path == countPath:
		return replaced(response, func(body []byte) []byte {
			return append(append([]byte(`{"input_tokens":`), wire.Get(body, "inputTokens")...), '}')
		})
	case path == modelsPath:
		return replaced(response, modelList)
	case strings.HasPrefix(path, modelsPath+"/"):
		return replaced(response, modelEntry)
	default:
		return nil
	}
}

// replaced replaces the body of an answer.
func replaced(response *http.Response, change func(body []byte) []byte) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxShort))
	_ = response.Body.Close()
	if err != nil {
		return fmt.Errorf("%w: the answer ended early", ErrUnreachable)
	}
	body = change(body)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// modelList turns a list of inference profiles into Anthropic's list of models.
func modelList(body []byte) []byte {
	list := []byte(`{"data":[`)
	first, last := "", ""
	for _, profile := range wire.Elements(wire.Get(body, "inferenceProfileSummaries")) {
		id := wire.Text(profile, "inferenceProfileId")
		if !strings.Contains(id, "anthropic.") {
			continue
		}
		if last != "" {
			list = append(list, ',')
		} else {
			first = id
		}
		list, last = append(list, modelEntry(profile)...), id
	}
	list = append(list, `],"has_more":false`...)
	if last != "" {
		list = wire.AppendQuote(append(list, `,"first_id":`...), first)
		list = wire.AppendQuote(append(list, `,"last_id":`...), last)
	}
	return append(list, '}')
}

// modelEntry turns an inference profile into Anthropic's description of a model.
func modelEntry(profile []byte) []byte {
	created, err := time.Parse(time.RFC3339Nano, wire.Text(profile, "createdAt"))
	if err != nil {
		created = time.Unix(0, 0)
	}
	entry := wire.AppendQuote([]byte(`{"type":"model","id":`), wire.Text(profile, "inferenceProfileId"))
	entry = wire.AppendQuote(append(entry, `,"display_name":`...), wire.Text(profile, "inferenceProfileName"))
	entry = wire.AppendQuote(append(entry, `,"created_at":`...), created.UTC().Format(time.RFC3339))
	return append(entry, '}')
}

// ModelInPath returns the model in a path of Amazon Bedrock's runtime, /model/MODEL/OPERATION, and the operation.
func ModelInPath(escaped string) (model, operation string, ok bool) {
	rest, isModel := strings.CutPrefix(escaped, "/model/")
	end := strings.LastIndexByte(rest, '/')
	if !isModel || end <= 0 {
		return "", "", false
	}
	model, err := url.PathUnescape(rest[:end])
	return model, rest[end+1:], err == nil && model != ""
}

// Interface guard.
var _ platform = bedrock{}
