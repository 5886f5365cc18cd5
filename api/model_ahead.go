package api

import (
	"bytes"
	"io"
	"mime"
	"net/http"

	"palimpsest/api/proxysettings"
)

const (
	maxPeek = 64 << 10 // bytes of a body that is relayed that are looked at for its model
	minPeek = 256      // bytes that must have come before it is looked at again
)

// modelAhead returns what tells the model that a request's body names near its
// beginning, and leaves the body whole. Only JSON is looked at.
func modelAhead(request *http.Request) proxysettings.Model {
	return func() (string, error) {
		kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type"))
		if request.Body == nil || kind != "application/json" || isEncoding(encodingOf(request.Header)) {
			return "", nil
		}
		head, model, seen := make([]byte, 0, maxPeek), "", 0
		var failure error
		for model == "" && failure == nil && len(head) < cap(head) {
			var n int
			n, failure = request.Body.Read(head[len(head):cap(head)])
			head = head[:len(head)+n]
			if failure != nil || len(head)-seen >= minPeek {
				model, _ = proxysettings.ModelIn(head)()
				seen = len(head)
			}
		}
		rest := io.Reader(request.Body)
		if failure != nil {
			rest = ended{failure}
		}
		request.Body = &resumed{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: request.Body}
		return model, nil
	}
}

// ended is a reader that has come to its end, or to a fault.
type ended struct{ err error }

// Read implements io.Reader.
func (e ended) Read([]byte) (int, error) { return 0, e.err }
