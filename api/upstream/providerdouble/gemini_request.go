package providerdouble

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// googleRequest is what bodies of generateContent and of the Interactions API have in common.
type googleRequest struct {
	members members
	modelID string
	model   Model
	limit   int // of the answer's tokens; -1 without a limit
	thinks  bool
	fixed   []geminiFixed
	tokens  int
}

func (r *googleRequest) shortest() int  { return r.model.MinCache }
func (r *googleRequest) maxOutput() int { return r.limit }
func (r *googleRequest) room() int      { return r.model.Window - r.tokens + r.model.MaxOutput }

func (r *googleRequest) overflow() *Rejection {
	return refuse("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", max(r.tokens, r.model.Window+1), r.model.Window).coded(overLength)
}

// before returns the positions of the prompt before its contents or steps.
func (r *googleRequest) before() *positionList {
	list := newPositions(r.modelID)
	for _, part := range r.fixed {
		list.add(part.label, part.sum, part.tokens)
	}
	return list
}

// geminiRequest is a body of generateContent, with the model and the kind of answer from its path.
type geminiRequest struct {
	googleRequest

	stream   bool
	contents []*geminiContent
}

// geminiFixed is a part of the prompt before the contents.
type geminiFixed struct {
	label  string
	sum    [sha256.Size]byte
	tokens int
}

// geminiContent is one content.
type geminiContent struct {
	role      string
	text      string // all text parts together, without thoughts
	calls     []geminiCall
	results   []string // names of the answered functions
	said      []string // their texts
	hasText   bool     // of a person, so that it begins a turn
	badSigned string   // the first part with a signature that isn't its own
	sum       [sha256.Size]byte
	tokens    int
}

type geminiCall struct {
	name     string
	isSigned bool
}

// skipValidation is the signature that Google accepts for calls of another origin
// (https://ai.google.dev/gemini-api/docs/thought-signatures).
const skipValidation = "skip_thought_signature_validator"

// geminiReader reads requests of the Gemini API and judges them.
type geminiReader struct {
	config   Config
	signer   *Signer
	contents memo[geminiContent]
}

// geminiNames returns the members of an object in camel case; Google takes both spellings.
func geminiNames(m members) members {
	camel := make(members, len(m))
	for name, value := range m {
		var out strings.Builder
		for i, word := range strings.Split(name, "_") {
			if i > 0 && word != "" {
				word = strings.ToUpper(word[:1]) + word[1:]
			}
			out.WriteString(word)
		}
		camel[out.String()] = value
	}
	return camel
}

// unknownName is Google's refusal of an unknown member.
func unknownName(name, path string) *Rejection {
	if path != "" {
		path = " at '" + path + "'"
	}
	return refuse("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", name, path)
}

// geminiObject reads an object of known members.
func (g *geminiReader) object(raw json.RawMessage, path string, known ...string) (members, *Rejection) {
	m, ok := objectMembers(raw)
	if !ok {
		return nil, refuse("Invalid value at '%s' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), %s", path, compact(raw))
	}
	m = geminiNames(m)
	if name := m.extra(known...); name != "" && !g.config.AllowUnknown {
		return nil, unknownName(name, path)
	}
	return m, nil
}

// parse reads a body whose model and stream stand in it, as on its way through the proxy.
func (g *geminiReader) parse(_ http.Header, body []byte) (*geminiRequest, *Rejection) {
	m, ok := document(body)
	if !ok {
		return nil, refuse("Invalid JSON payload received. Unexpected end of string. Expected a value.")
	}
	r := &geminiRequest{googleRequest: googleRequest{limit: -1}, stream: m.flag("stream")}
	r.modelID, _ = m.text("model")
	r.modelID = strings.TrimPrefix(r.modelID, "models/")
	r.model, _ = g.config.model(r.modelID)
	delete(m, "model")
	delete(m, "stream")
	r.members = geminiNames(m)
	known := []string{"contents", "tools", "toolConfig", "safetySettings", "systemInstruction", "generationConfig", "cachedContent", "labels", "serviceTier", "store"}
	if name := r.members.extra(known...); name != "" && !g.config.AllowUnknown {
		return nil, unknownName(name, "")
	}
	if rejection := g.parseHead(r); rejection != nil {
		return nil, rejection
	}
	list, _ := elements(r.members["contents"])
	if len(list) == 0 {
		return nil, refuse("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i, raw := range list {
		content, rejection := g.parseContent(raw, i)
		if rejection != nil {
			return nil, rejection
		}
		r.contents = append(r.contents, content)
	}
	return r, nil
}

// parseHead reads everything but the contents.
func (g *geminiReader) parseHead(r *geminiRequest) *Rejection {
	if r.members.has("cachedContent") {
		if slices.ContainsFunc([]string{"systemInstruction", "tools", "toolConfig"}, r.members.has) {
			return refuse("CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.")
		}
	}
	config, _ := objectMembers(r.members["generationConfig"])
	config = geminiNames(config)
	if limit, given := config.number("maxOutputTokens"); given {
		if limit < 1 || r.model.MaxOutput > 0 && limit > r.model.MaxOutput {
			return refuse("Unable to submit request because it has a maxOutputTokens value of %d but the supported range is from 1 (inclusive) to %d (exclusive). Update the value and try again.", limit, r.model.MaxOutput+1)
		}
		r.limit = limit
	}
	thinking, _ := objectMembers(config["thinkingConfig"])
	r.thinks = geminiNames(thinking).flag("includeThoughts")
	for _, name := range []string{"systemInstruction", "tools"} {
		if raw := r.members[name]; r.members.has(name) {
			bare := compact(raw)
			r.fixed = append(r.fixed, geminiFixed{name, sha256.Sum256(bare), g.config.Count(string(bare))})
		}
	}
	return nil
}

// parseContent reads content i.
func (g *geminiReader) parseContent(raw json.RawMessage, i int) (*geminiContent, *Rejection) {
	key := sha256.Sum256(raw)
	if known, ok := g.contents.find(key); ok {
		return known, nil
	}
	path := item("contents", i)
	m, rejection := g.object(raw, path, "role", "parts")
	if rejection != nil {
		return nil, rejection
	}
	content := &geminiContent{tokens: messageTokens, sum: sha256.Sum256(compact(raw))}
	if content.role, _ = m.text("role"); content.role == "" || content.role == "function" {
		content.role = "user"
	}
	if content.role != "user" && content.role != "model" {
		return nil, refuse("Please use a valid role: user, model.")
	}
	parts, _ := elements(m["parts"])
	if len(parts) == 0 {
		return nil, refuse("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
	}
	for j, part := range parts {
		if rejection := g.parsePart(content, part, i, j); rejection != nil {
			return nil, rejection
		}
	}
	g.contents.keep(key, content)
	return content, nil
}

// parsePart reads part j of content i.
func (g *geminiReader) parsePart(content *geminiContent, raw json.RawMessage, i, j int) *Rejection {
	path := item(item("contents", i)+".parts", j)
	m, rejection := g.object(raw, path, "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
		"toolCall", "toolResponse", "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata")
	if rejection != nil {
		return rejection
	}
	signature, isSigned := m.text("thoughtSignature")
	signed := ""
	switch text, isText := m.text("text"); {
	case isText:
		signed = text
		content.tokens += g.config.Count(text)
		if !m.flag("thought") {
			content.text += text
			content.hasText = content.hasText || content.role == "user"
		}
	case m.has("functionCall"):
		call, rejection := g.object(m["functionCall"], path+".function_call", "id", "name", "args")
		if rejection != nil {
			return rejection
		}
		name, _ := call.text("name")
		if !matches(strings.NewReplacer(".", "_", ":", "_").Replace(name), 128) {
			return refuse("* GenerateContentRequest.%s.function_call.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.\n", path)
		}
		if content.role != "model" {
			return refuse("Please ensure that function call turns come from the model.")
		}
		signed = name + "\x00" + string(compact(call["args"]))
		content.calls = append(content.calls, geminiCall{name: name, isSigned: isSigned})
		content.tokens += g.config.Count(signed)
	case m.has("functionResponse"):
		response, rejection := g.object(m["functionResponse"], path+".function_response", "id", "name", "response", "parts", "willContinue", "scheduling")
		if rejection != nil {
			return rejection
		}
		name, _ := response.text("name")
		if name == "" {
			return refuse("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.\n", path)
		}
		if firstByte(response["response"]) != '{' {
			return refuse("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct), %s", path, compact(response["response"]))
		}
		content.results = append(content.results, name)
		content.said = append(content.said, string(compact(response["response"])))
		content.tokens += g.config.Count(string(response["response"]))
	case m.has("inlineData"):
		data, rejection := g.object(m["inlineData"], path+".inline_data", "mimeType", "data", "displayName")
		if rejection != nil {
			return rejection
		}
		encoded, _ := data.text("data")
		content.tokens += pictureTokens(encoded)
	case m.has("fileData"):
		content.tokens += largestPicture
	case m.has("executableCode"), m.has("codeExecutionResult"), m.has("toolCall"), m.has("toolResponse"):
		content.tokens += g.config.Count(string(raw))
		isSigned = false // its form is the provider's own
	case !isSigned:
		return refuse("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field\n", path)
	}
	if isSigned && signature != skipValidation && !g.signer.isOwn(signed, signature) && content.badSigned == "" {
		content.badSigned = strconv.Itoa(j + 1)
	}
	return nil
}

// isOwn reports whether a signature is that of a text, or of a recorded one.
func (s *Signer) isOwn(text, signature string) bool {
	return s.Sign(text) == signature || s.isTrusted(text, signature)
}

// check applies all rules for a whole request. Contents of one role that follow each other count as one.
func (g *geminiReader) check(r *geminiRequest) *Rejection {
	var turns []geminiContent
	for _, content := range r.contents {
		if content.badSigned != "" {
			return refuse("Thought signature is not valid.")
		}
		if last := len(turns) - 1; last >= 0 && turns[last].role == content.role {
			turns[last].calls = append(slices.Clip(turns[last].calls), content.calls...)
			turns[last].results = append(slices.Clip(turns[last].results), content.results...)
			turns[last].hasText = turns[last].hasText || content.hasText
			continue
		}
		turns = append(turns, *content)
	}
	if rejection := checkFunctions(turns); rejection != nil {
		return rejection
	}
	if rejection := r.checkSignatures(turns); rejection != nil {
		return rejection
	}
	r.tokens = g.config.reported(sumTokens(r.prompt()))
	if r.tokens > r.model.Window {
		return r.overflow()
	}
	return nil
}

// checkFunctions requires the responses of all calls right behind them, and calls behind a content of the user.
func checkFunctions(turns []geminiContent) *Rejection {
	for i := range turns {
		turn := &turns[i]
		var before geminiContent
		if i > 0 {
			before = turns[i-1]
		}
		switch {
		case len(turn.calls) > 0 && i == 0:
			return refuse("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		case len(turn.results) > 0 && len(before.calls) == 0:
			return refuse("Please ensure that function response turn comes immediately after a function call turn.")
		case len(before.calls) > 0 && len(turn.results) != len(before.calls):
			return refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
		for _, name := range turn.results {
			if !before.hasCalled(name) {
				return refuse("Please ensure that function response turn comes immediately after a function call turn. No call of %s.", name)
			}
		}
	}
	if last := turns[len(turns)-1]; len(last.calls) > 0 {
		return refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	return nil
}

func (c *geminiContent) hasCalled(name string) bool {
	for _, call := range c.calls {
		if call.name == name {
			return true
		}
	}
	return false
}

// checkSignatures requires, of Gemini 3 and later, a signature at the first call of each step since the last text
// of the user.
func (r *geminiRequest) checkSignatures(turns []geminiContent) *Rejection {
	if !strings.HasPrefix(r.modelID, "gemini-3") {
		return nil
	}
	for i := len(turns) - 1; i >= 0 && !(turns[i].role == "user" && turns[i].hasText); i-- {
		if calls := turns[i].calls; len(calls) > 0 && !calls[0].isSigned {
			return refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. "+
				"Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", calls[0].name, i+1)
		}
	}
	return nil
}

// prompt lists the positions of the prompt.
func (r *geminiRequest) prompt() []position {
	list := r.before()
	for _, content := range r.contents {
		list.add(content.role, content.sum, content.tokens)
	}
	return list.all
}

func (r *geminiRequest) about() Request {
	about := Request{Model: r.modelID, Stream: r.stream, Thinks: r.thinks, Tokens: r.tokens}
	for _, content := range r.contents {
		switch {
		case content.role == "model":
			about.Answers++
			about.Results = nil
		case len(content.results) > 0:
			about.Results = append(about.Results, content.said...)
		default:
			about.User, about.Results = content.text, nil
		}
	}
	return about
}
