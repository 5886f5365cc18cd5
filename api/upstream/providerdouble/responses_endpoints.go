package providerdouble

import (
	"net/http"
	"strings"
)

type responsesCount struct {
	Object      string `json:"object"`
	InputTokens int    `json:"input_tokens"`
}

type responsesCompaction struct {
	ID        string         `json:"id"`
	Object    string         `json:"object"`
	CreatedAt int64          `json:"created_at"`
	Output    []responseItem `json:"output"`
	Usage     *responseUsage `json:"usage"`
}

type responsesDeletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// responsesRead answers POST /v1/responses/input_tokens and /v1/responses/compact, which check a body without
// generating an answer.
func (c *call) responsesRead(what string) {
	d := c.double
	c.entry.Status = http.StatusOK
	r, rejection := d.responses.parse(nil, c.body)
	if rejection == nil {
		r.truncates = r.truncates || what == "input_tokens"
		rejection = d.responses.check(r)
	}
	if rejection == nil {
		rejection = d.config.knows(OpenAIResponses, r.modelID)
	}
	if rejection != nil {
		c.entry.Status, c.entry.Invalid = rejection.Status, rejection
	} else {
		c.entry.Model, c.entry.Prompt = r.modelID, r.tokens
	}
	d.log.add(c.entry)
	switch {
	case rejection != nil:
		rejection.write(c.w, OpenAIResponses, c.requestID)
	case what == "input_tokens":
		c.w.Header().Set("Content-Type", "application/json")
		writeBody(c.w, responsesCount{Object: "response.input_tokens", InputTokens: r.tokens})
	default:
		c.w.Header().Set("Content-Type", "application/json")
		writeBody(c.w, responsesCompaction{
			ID: d.name("resp_", 48), Object: "response.compaction", CreatedAt: d.config.Now().Unix(),
			Output: append(userItems(d, r), d.compaction()), Usage: Usage{Input: r.tokens, Output: 1}.response(),
		})
	}
}

// userItems returns the messages of a person, which a compaction keeps.
func userItems(d *Double, r *responsesRequest) []responseItem {
	items := []responseItem{}
	for _, i := range r.items {
		if i.role == "user" {
			items = append(items, responseItem{
				Type: "message", ID: d.name("msg_", 24), Status: "completed", Role: "user", Content: &[]responsePart{{Type: "input_text", Text: i.text}},
			})
		}
	}
	return items
}

// storedResponse answers GET and DELETE /v1/responses/{id}.
func (c *call) storedResponse(id string) {
	body, found := c.double.stored.body(id)
	if !found {
		c.refuse(OpenAIResponses, &Rejection{
			Status: http.StatusNotFound, Type: "invalid_request_error", Message: "Response with id '" + id + "' not found.",
		}, false)
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	if c.r.Method == http.MethodDelete {
		writeBody(c.w, responsesDeletion{ID: id, Object: "response", Deleted: c.double.stored.forget(id)})
		return
	}
	_, _ = c.w.Write(body)
}

// isStored reports whether a path names a stored response.
func isStored(method, path string) (string, bool) {
	id, ok := strings.CutPrefix(path, "/v1/responses/")
	reads := method == http.MethodGet || method == http.MethodDelete
	return id, ok && reads && !strings.Contains(id, "/")
}
