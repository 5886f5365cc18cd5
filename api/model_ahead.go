package api

import (
	"bytes"
	"io"
	"mime"
	"net/http"

	"palimpsest/api/proxysettings"
)

const (
	maxPeek = 64 << 10 // bytes of a relayed body that are searched for its model
	minPeek = 256      // new bytes before the next look at it
)

// modelAhead returns a function for the model named near the beginning of a request's body, and leaves the
// body whole. It only reads JSON.
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

// ended is a reader at its end, or with an error.
type ended struct{ err error }

// Read implements io.Reader.
func (e ended) Read([]byte) (int, error) { return 0, e.err }
