package providerdouble

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// Echoed is the answer of an endpoint that the double does not know: the request as it came.
type Echoed struct {
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Query  string      `json:"query"`
	Header http.Header `json:"headers"`
	SHA256 string      `json:"sha256"` // of the body, hexadecimal
	Size   int         `json:"size"`
}

// other answers every request that generates nothing.
func (c *call) other() {
	c.entry.Status = http.StatusOK
	path := strings.TrimSuffix(c.r.URL.Path, "/")
	if !strings.HasPrefix(path, "/v1/") {
		c.entry.Status = http.StatusNotFound
	}
	c.double.log.add(c.entry)
	model, isModel := strings.CutPrefix(path, "/v1/models/")
	response, isStoredResponse := isStored(c.r.Method, path)
	switch reads := c.r.Method == http.MethodGet; {
	case reads && path == "/v1/models":
		c.listModels()
	case reads && isModel:
		c.getModel(model)
	case isStoredResponse:
		c.storedResponse(response)
	case path == "/v1/embeddings" && c.r.Method == http.MethodPost:
		c.embed()
	case path == "/v1/responses":
		c.refuse(OpenAIResponses, &Rejection{Status: http.StatusUpgradeRequired, Type: "invalid_request_error", Message: "This server does not speak WebSocket."}, false)
	case c.entry.Status == http.StatusNotFound:
		(&Rejection{Status: http.StatusNotFound, Type: "not_found_error", Message: "Not found"}).write(c.w, familyOf(c.r), c.requestID)
	default:
		c.echo()
	}
}

func (c *call) echo() {
	sum := sha256.Sum256(c.entry.Body)
	c.w.Header().Set("Content-Type", "application/json")
	writeBody(c.w, Echoed{
		Method: c.r.Method, Path: c.r.URL.Path, Query: c.r.URL.RawQuery, Header: c.r.Header,
		SHA256: hex.EncodeToString(sum[:]), Size: len(c.entry.Body),
	})
}
