package providerdouble

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// geminiAnswer is an answer of generateContent, whole or a chunk.
type geminiAnswer struct {
	Candidates []geminiCandidate `json:"candidates"`
	Usage      geminiUsage       `json:"usageMetadata"`
	Model      string            `json:"modelVersion"`
	ID         string            `json:"responseId"`
}

type geminiCandidate struct {
	Content      geminiSaid       `json:"content"`
	FinishReason string           `json:"finishReason,omitempty"`
	Index        int              `json:"index"`
	Grounding    *geminiGrounding `json:"groundingMetadata,omitempty"`
}

// geminiGrounding is what an answer says about its searches.
type geminiGrounding struct {
	Queries []string `json:"webSearchQueries"`
}

func (u Usage) grounding() *geminiGrounding {
	if u.Searches == 0 {
		return nil
	}
	grounding := &geminiGrounding{Queries: []string{""}}
	for i := range u.Searches {
		grounding.Queries = append(grounding.Queries, fmt.Sprint("query ", i))
	}
	return grounding
}

type geminiSaid struct {
	Parts []geminiPart `json:"parts"`
	Role  string       `json:"role"`
}

type geminiPart struct {
	Text      *string         `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Call      *geminiCallPart `json:"functionCall,omitempty"`
	Signature string          `json:"thoughtSignature,omitempty"`
}

type geminiCallPart struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiUsage struct {
	Prompt     int `json:"promptTokenCount"`
	Candidates int `json:"candidatesTokenCount,omitempty"`
	Total      int `json:"totalTokenCount"`
	Cached     int `json:"cachedContentTokenCount,omitempty"`
	Thoughts   int `json:"thoughtsTokenCount,omitempty"`
}

func (u Usage) gemini() geminiUsage {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return geminiUsage{Prompt: prompt, Candidates: u.Output - u.Reasoning, Total: prompt + u.Output, Cached: u.CacheRead, Thoughts: u.Reasoning}
}

// parts returns the content of a reply. Gemini 3 names and signs its calls.
func (r *geminiRequest) parts(d *Double, reply Reply) []geminiPart {
	var parts []geminiPart
	if reply.Thinking != "" && r.thinks {
		parts = append(parts, geminiPart{Text: &reply.Thinking, Thought: true})
	}
	if reply.Text != "" || len(reply.Calls) == 0 {
		parts = append(parts, geminiPart{Text: &reply.Text})
	}
	for i, call := range reply.Calls {
		part := geminiPart{Call: &geminiCallPart{Name: call.Name, Args: call.Input}}
		if strings.HasPrefix(r.modelID, "gemini-3") {
			part.Call.ID = d.name("", 8)
			if i == 0 {
				part.Signature = d.Sign(call.Name + "\x00" + string(compact(call.Input)))
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// answer writes a reply as the Gemini API does.
func (r *geminiRequest) answer(d *Double, reply Reply, usage Usage) answer {
	parts := r.parts(d, reply)
	reason := "STOP"
	switch {
	case reply.StopReason == cutAtWindow, reply.StopReason == "" && r.limit > 0 && usage.Output >= r.limit:
		reason = "MAX_TOKENS"
	case reply.StopReason != "":
		reason = reply.StopReason
	}
	whole := geminiAnswer{Usage: usage.gemini(), Model: cmp.Or(usage.Model, r.modelID), ID: d.name("", 22)}
	frame := whole
	frame.Usage = geminiUsage{Prompt: whole.Usage.Prompt, Total: whole.Usage.Prompt, Cached: whole.Usage.Cached}
	whole.Candidates = []geminiCandidate{{Content: geminiSaid{parts, "model"}, FinishReason: reason, Grounding: usage.grounding()}}
	var events []event
	add := func(frame geminiAnswer, finish string, parts ...geminiPart) {
		frame.Candidates = []geminiCandidate{{Content: geminiSaid{parts, "model"}, FinishReason: finish}}
		if finish != "" {
			frame.Candidates[0].Grounding = usage.grounding()
		}
		events = append(events, event{data: encode(frame), chunk: true})
	}
	for i, part := range parts {
		last := i == len(parts)-1
		if part.Text == nil || part.Thought {
			if last {
				add(whole, reason, part)
			} else {
				add(frame, "", part)
			}
			continue
		}
		cut := pieces(*part.Text, reply.Chunks)
		if len(cut) == 0 {
			cut = []string{""}
		}
		for k, text := range cut {
			if last && k == len(cut)-1 {
				add(whole, reason, geminiPart{Text: &text})
			} else {
				add(frame, "", geminiPart{Text: &text})
			}
		}
	}
	return answer{whole: encode(whole), events: events}
}

// geminiPath splits a path of the Gemini API into its model and method; ok is false for other paths.
func geminiPath(path string) (model, method string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1beta/models/")
	if !ok {
		return "", "", false
	}
	model, method, _ = strings.Cut(rest, ":")
	return model, method, true
}

// gemini answers a request of the Gemini API.
func (c *call) gemini() {
	model, method, isModel := geminiPath(c.r.URL.Path)
	switch method {
	case "generateContent", "streamGenerateContent":
		if c.r.Method != http.MethodPost {
			break
		}
		c.body = withMembers(c.body, model, method == "streamGenerateContent")
		c.generate(c.r.Context(), Gemini)
		return
	case "countTokens":
		c.countGemini(model)
		return
	}
	c.entry.Status = http.StatusOK
	c.double.log.add(c.entry)
	switch path := strings.TrimSuffix(c.r.URL.Path, "/"); {
	case path == "/v1beta/models" && c.r.Method == http.MethodGet:
		list := struct {
			Models []geminiListed `json:"models"`
		}{}
		for _, entry := range geminiModels() {
			list.Models = append(list.Models, c.geminiListed(entry.prefix))
		}
		c.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		writeBody(c.w, list)
	case isModel && method == "" && c.r.Method == http.MethodGet:
		if _, found := c.double.config.model(model); !found {
			c.refuse(Gemini, noModel(Gemini, model), false)
			return
		}
		c.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		writeBody(c.w, c.geminiListed(model))
	default:
		c.echo()
	}
}

type geminiListed struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Input       int      `json:"inputTokenLimit"`
	Output      int      `json:"outputTokenLimit"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func (c *call) geminiListed(id string) geminiListed {
	model, _ := c.double.config.model(id)
	return geminiListed{"models/" + id, id, model.Window, model.MaxOutput, []string{"generateContent", "countTokens"}}
}

// withMembers returns a body with the model and the kind of answer of its path as its last members, which count.
func withMembers(body []byte, model string, stream bool) []byte {
	m, ok := document(body)
	if !ok {
		return body
	}
	out := bytes.Clone(bytes.TrimSuffix(bytes.TrimSpace(body), []byte("}")))
	if len(m) > 0 {
		out = append(out, ',')
	}
	if _, has := m["stream"]; has {
		out = append(out, `"streamInBody":0,`...) // Google doesn't know it
	}
	return fmt.Appendf(out, `"model":%s,"stream":%t}`, encode(model), stream)
}

// countGemini answers countTokens.
func (c *call) countGemini(model string) {
	d := c.double
	m, _ := document(c.body)
	m = geminiNames(m)
	inner := c.body
	rejection := (*Rejection)(nil)
	switch name := m.extra("contents", "generateContentRequest"); {
	case name != "":
		rejection = unknownName(name, "")
	case m.has("generateContentRequest"):
		inner = m["generateContentRequest"]
	}
	c.entry.Status = http.StatusOK
	var r *geminiRequest
	if rejection == nil {
		r, rejection = d.gemini.parse(nil, withMembers(inner, model, false))
	}
	if rejection == nil {
		rejection = d.config.knows(Gemini, model)
	}
	if rejection != nil {
		c.entry.Status, c.entry.Invalid = rejection.Status, rejection
		d.log.add(c.entry)
		rejection.write(c.w, Gemini, c.requestID)
		return
	}
	tokens := d.config.reported(sumTokens(r.prompt()))
	c.entry.Model, c.entry.Prompt = model, tokens
	d.log.add(c.entry)
	c.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	writeBody(c.w, struct {
		Tokens int `json:"totalTokens"`
	}{tokens})
}

// geminiKey returns the key of a request to the Gemini API.
func geminiKey(r *http.Request) string {
	query, _ := url.ParseQuery(r.URL.RawQuery)
	return cmp.Or(r.Header.Get("X-Goog-Api-Key"), query.Get("key"))
}

// geminiError is an error in Google's form.
type geminiError struct {
	Error geminiErrorDetail `json:"error"`
}

type geminiErrorDetail struct {
	Code    int              `json:"code"`
	Message string           `json:"message"`
	Status  string           `json:"status"`
	Details []map[string]any `json:"details,omitempty"`
}

func (r *Rejection) gemini() geminiError {
	status := map[int]string{
		http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusForbidden: "PERMISSION_DENIED", http.StatusNotFound: "NOT_FOUND",
		http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusInternalServerError: "INTERNAL", http.StatusServiceUnavailable: "UNAVAILABLE",
	}[r.Status]
	detail := geminiErrorDetail{Code: r.Status, Message: r.Message, Status: cmp.Or(status, "INVALID_ARGUMENT")}
	switch {
	case r.Code == "API_KEY_INVALID":
		detail.Details = []map[string]any{{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": r.Code, "domain": "googleapis.com"}}
	case r.RetryAfter > 0:
		detail.Details = []map[string]any{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": encodeSeconds(r.RetryAfter)}}
	}
	return geminiError{Error: detail}
}

// geminiRefusalFor returns the refusal of a misbehavior in Google's words; nil for other misbehavior.
func geminiRefusalFor(misbehave string) *Rejection {
	switch misbehave {
	case MisbehaveRateLimit:
		return &Rejection{Status: http.StatusTooManyRequests, RetryAfter: 1, Message: "You exceeded your current quota, please check your plan and billing details. Please retry in 1s."}
	case MisbehaveSpendCap:
		return &Rejection{Status: http.StatusTooManyRequests, Message: "Resource has been exhausted (e.g. check quota)."}
	case MisbehaveOverloaded:
		return &Rejection{Status: http.StatusServiceUnavailable, Message: "The model is overloaded. Please try again later."}
	case MisbehaveFailure:
		return &Rejection{Status: http.StatusInternalServerError, Message: "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"}
	default:
		return nil
	}
}

// geminiSignIn refuses a missing or a wrong key in Google's words.
func geminiSignIn(key string) *Rejection {
	if key == "" {
		return &Rejection{
			Status:  http.StatusForbidden,
			Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
		}
	}
	return refuse("API key not valid. Please pass a valid API key.").coded("API_KEY_INVALID")
}

func encodeSeconds(seconds int) string { return strconv.Itoa(seconds) + "s" }
