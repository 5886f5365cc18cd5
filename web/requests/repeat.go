package requests

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// repeat is the commands that repeat a request, without any secret.
type repeat struct {
	Fetch string // writes the client's message from the archive into a file; "" if it is not available
	Send  string // sends that file; "" if the request cannot be repeated
	Words string // a note, or the reason why not
}

// repeatOf returns the commands that repeat a request. mayRead means that the reader may read its messages
// from the archive.
func repeatOf(publicURL string, request *tenants.ExchangeRequest, mayRead bool) repeat {
	codec, known := formats.AtPath(request.Endpoint)
	if !known {
		return repeat{Words: "Only requests of a conversation can be repeated from here."}
	}
	traits, headers, more := codec.Traits(), "", ""
	if traits.VersionHeader != "" {
		headers = " \\\n  -H " + quoted(strings.ToLower(traits.VersionHeader)+": "+traits.Version)
	}
	if traits.Beside != "" {
		more = ", " + traits.Beside
	}
	path, members := request.Endpoint, "model: $model"+more+", stream: "+strconv.FormatBool(request.Stream)+", "
	if traits.Address != nil {
		path, members = traits.Address(request.Endpoint, request.Model, request.Stream), ""
	}
	r := repeat{
		Send: fmt.Sprintf("curl %s \\\n  -H \"Authorization: Bearer $PALIMPSEST_KEY\"%s \\\n  -H 'Content-Type: application/json' \\\n  --data @body.json",
			quoted(publicURL+path), headers),
		Words: "PALIMPSEST_KEY holds an API key with the scope proxy. The body is not archived as a whole, so put your own into body.json.",
	}
	if !mayRead || request.Session == uuid.Nil || request.Position == 0 {
		return r
	}
	original := fmt.Sprintf("%s/api/v1/sessions/%s/archive/$i?lane=%s", publicURL, request.Session, request.Lane)
	r.Fetch = fmt.Sprintf("for i in $(seq 0 %d); do\n  curl -sf \"%s\" -H \"Authorization: Bearer $PALIMPSEST_KEY\"; echo\ndone | jq -s --arg model %s '{%s%s: .}' > body.json",
		request.Position-1, original, quoted(request.Model), members, codec.List())
	r.Words = "PALIMPSEST_KEY holds an API key with the scopes read and proxy. The archive has every message as the client sent it; " +
		"system prompt, tools and settings are not archived, so add them to body.json."
	return r
}

// quoted returns a text quoted for a shell, as one literal word.
func quoted(text string) string {
	clean := strings.Map(func(sign rune) rune {
		if sign < ' ' || sign == 0x7f {
			return -1 // a terminal would interpret it
		}
		return sign
	}, text)
	return "'" + strings.ReplaceAll(clean, "'", `'\''`) + "'"
}
