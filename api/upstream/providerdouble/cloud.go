package providerdouble

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// CloudConfig configures a Cloud.
type CloudConfig struct {
	Config // of the models behind it

	Keys      []string // accepted API keys
	Region    string   // of signatures of AWS
	Access    []BedrockAccess
	Workspace string // the accepted anthropic-workspace-id
	Project   string // of Google Cloud
	Location  string
	Tenant    string // of Microsoft Entra ID, with an application and its secret
	App       string
	AppSecret string

	// Life is how long an access token is valid; 0 means an hour.
	Life time.Duration
}

// Cloud offers the models of a Double as four clouds do, each below its own paths and behind its own sign-in:
// Microsoft Foundry (/anthropic), Azure OpenAI (/openai), Claude Platform on AWS (/v1/messages), Google Cloud
// (/v1/projects) and Anthropic's offer there (…/invoke). It is as strict as the real ones about sign-in, paths and
// bodies. It also gives the access tokens. It is an http.Handler, and safe for concurrent use.
type Cloud struct {
	// Models records the requests as they came, and answers them after they have got the form of the provider's own API.
	Models *Double

	config CloudConfig
	signer *rsa.PrivateKey // of the service account

	mu     sync.Mutex
	tokens map[string]time.Time // until when each is valid
	asked  int                  // for tokens
	isDown bool                 // no tokens are given
}

// serviceKey returns the private key of the service account. Making one takes long.
var serviceKey = sync.OnceValues(func() (*rsa.PrivateKey, error) {
	const bits = 2048
	return rsa.GenerateKey(rand.Reader, bits)
})

// NewCloud returns a Cloud for use without a server of its own.
func NewCloud(config CloudConfig) (*Cloud, error) {
	signer, err := serviceKey()
	if err != nil {
		return nil, err
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Life == 0 {
		config.Life = time.Hour
	}
	return &Cloud{Models: NewHandler(config.Config), config: config, signer: signer, tokens: map[string]time.Time{}}, nil
}

// Listen serves the double on an address and returns its URL, until stop is called.
func (c *Cloud) Listen(address string) (url string, stop func(), err error) {
	return listen(c, address)
}

// Asked returns how often an access token was asked for.
func (c *Cloud) Asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// SignIns switches the sign-in services off or on.
func (c *Cloud) SignIns(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isDown = !on
}

// Revoke makes all access tokens invalid.
func (c *Cloud) Revoke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.tokens)
}

// cloudRequest is a request on its way through a Cloud.
type cloudRequest struct {
	*http.Request

	cloud  *Cloud
	entry  *Recorded
	body   []byte
	out    http.ResponseWriter
	path   string // of the provider's own API; "" until it is known
	google bool   // errors have Google's shape
}

// googlePath matches the paths of Claude's models on Google Cloud.
var googlePath = regexp.MustCompile(`^/v1/projects/([^/]+)/locations/([^/]+)/publishers/anthropic/models/([^/:]+):(rawPredict|streamRawPredict)$`)

// googleModel matches the names of Claude's models there.
var googleModel = regexp.MustCompile(`^claude-[a-z0-9-]+(@(\d{8}|default))?$`)

// ServeHTTP answers like the cloud of the path.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody))
	asked := &cloudRequest{Request: r, cloud: c, entry: received(r, body), body: body, out: w}
	path := r.URL.Path
	workspace := "/v1/projects/" + c.config.Project + "/locations/" + c.config.Location + "/workspaces/" + c.config.Workspace + "/invoke"
	switch rest := ""; {
	case err != nil:
		asked.refuse(http.StatusBadRequest, "invalid_request_error", "The body could not be read.")
	case r.Method == http.MethodPost && (path == "/token" || path == "/"+c.config.Tenant+"/oauth2/v2.0/token"):
		c.giveToken(asked)
	case isBelow(path, "/anthropic", &rest):
		c.foundry(asked, rest)
	case isBelow(path, "/openai", &rest):
		c.azure(asked, rest)
	case isBelow(path, workspace, &rest):
		asked.google, asked.path = true, rest
		if c.hasToken(asked) {
			c.answer(asked, "")
		}
	case strings.HasPrefix(path, "/v1/projects/"):
		asked.google = true
		c.google(asked)
	default:
		c.onAWS(asked)
	}
}

// isBelow reports whether a path is below a prefix, and sets rest to the part behind it.
func isBelow(path, prefix string, rest *string) bool {
	after, found := strings.CutPrefix(path, prefix)
	*rest = after
	return found && strings.HasPrefix(after, "/")
}

// foundry answers like Claude in Microsoft Foundry, which has no list of models.
func (c *Cloud) foundry(asked *cloudRequest, path string) {
	key := asked.Header.Get("X-Api-Key")
	switch {
	case !slices.Contains(c.config.Keys, key) && !c.isTokenValid(asked.Header):
		asked.refuse(http.StatusUnauthorized, "authentication_error", "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription.")
	case path != "/v1/messages" && path != "/v1/messages/count_tokens":
		asked.refuse(http.StatusNotFound, "not_found_error", "Resource not found")
	case asked.Header.Get("Anthropic-Version") == "":
		asked.refuse(http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
	default:
		asked.path = path
		c.answer(asked, "")
	}
}

// azure answers like Azure OpenAI: its v1 API, and paths of deployments with an api-version.
func (c *Cloud) azure(asked *cloudRequest, path string) {
	if !slices.Contains(c.config.Keys, asked.Header.Get("Api-Key")) && !c.isTokenValid(asked.Header) {
		asked.refuse(http.StatusUnauthorized, "401", "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.")
		return
	}
	rest, isDeployment := strings.CutPrefix(path, "/deployments/")
	if !isDeployment {
		asked.path = path
		c.answer(asked, "")
		return
	}
	name, operation, _ := strings.Cut(rest, "/")
	if asked.URL.Query().Get("api-version") == "" || name == "" {
		asked.refuse(http.StatusNotFound, "404", "Resource not found")
		return
	}
	asked.path = "/v1/" + operation
	c.answer(asked, name)
}

// onAWS answers like Claude Platform on AWS.
func (c *Cloud) onAWS(asked *cloudRequest) {
	asked.path = asked.URL.Path
	if !slices.Contains(c.config.Keys, asked.Header.Get("X-Api-Key")) {
		account := awsAccount{c.config.Access, c.config.Region, "aws-external-anthropic", c.config.Now}
		if refusal := account.verify(asked.Request, asked.body); refusal != nil {
			asked.refuse(refusal.Status, "authentication_error", refusal.Message)
			return
		}
	}
	if got := asked.Header.Values("Anthropic-Workspace-Id"); len(got) != 1 || got[0] != c.config.Workspace {
		asked.refuse(http.StatusBadRequest, "invalid_request_error", "anthropic-workspace-id: header is required")
		return
	}
	c.answer(asked, "")
}

// google answers like Claude on Google Cloud's Agent Platform.
func (c *Cloud) google(asked *cloudRequest) {
	if !c.hasToken(asked) {
		return
	}
	match := googlePath.FindStringSubmatch(asked.URL.Path)
	if asked.Method != http.MethodPost || match == nil {
		asked.refuse(http.StatusNotFound, "NOT_FOUND", "The requested URL was not found on this server.")
		return
	}
	if match[1] != c.config.Project || match[2] != c.config.Location {
		asked.refuse(http.StatusForbidden, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied on resource (or it may not exist).")
		return
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(asked.body, &members); err != nil || members == nil {
		asked.refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "Invalid JSON payload received.")
		return
	}
	model, isCount, isStream := match[3], match[3] == "count-tokens", match[4] == "streamRawPredict"
	if isCount {
		_ = json.Unmarshal(members["model"], &model)
	}
	var streams bool
	_ = json.Unmarshal(members["stream"], &streams)
	switch {
	case string(members["anthropic_version"]) != `"vertex-2023-10-16"`:
		asked.google = false
		asked.refuse(http.StatusBadRequest, "invalid_request_error", "anthropic_version: Field required")
		return
	case !isCount && members["model"] != nil:
		asked.google = false
		asked.refuse(http.StatusBadRequest, "invalid_request_error", "model: Extra inputs are not permitted")
		return
	case !googleModel.MatchString(model):
		asked.refuse(http.StatusNotFound, "NOT_FOUND", "Publisher Model `publishers/anthropic/models/"+model+"` was not found or your project does not have access to it.")
		return
	case streams != isStream:
		asked.refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "The stream member does not fit the method.")
		return
	}
	delete(members, "anthropic_version")
	members["model"] = encode(strings.Replace(strings.TrimSuffix(model, "@default"), "@", "-", 1))
	asked.path, asked.body = "/v1/messages", encode(members)
	if isCount {
		asked.path = "/v1/messages/count_tokens"
	}
	c.answer(asked, "")
}

// answer has the models answer a request. deployment replaces the model of the body; "" keeps it.
func (c *Cloud) answer(asked *cloudRequest, deployment string) {
	if deployment != "" {
		var members map[string]json.RawMessage
		if json.Unmarshal(asked.body, &members) == nil && members != nil {
			members = maps.Clone(members)
			members["model"] = encode(deployment)
			asked.body = encode(members)
		}
	}
	inner := asked.Clone(asked.Context())
	inner.URL = &url.URL{Path: asked.path}
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(asked.body)), int64(len(asked.body))
	inner.Header.Del("Authorization")
	inner.Header.Set("X-Api-Key", "cloud")
	if strings.HasPrefix(asked.URL.Path, "/openai") {
		inner.Header.Set("Authorization", "Bearer cloud")
	} else {
		inner.Header.Set("Anthropic-Version", "2023-06-01")
	}
	c.Models.serve(asked.out, inner, asked.entry)
}

// refuse answers with an error, in Google's or Anthropic's shape, before the request has reached the models.
func (a *cloudRequest) refuse(status int, kind, message string) {
	a.cloud.Models.log.answered(a.entry, &Rejection{Status: status, Type: kind, Message: message})
	a.out.Header().Set("Content-Type", "application/json")
	a.out.WriteHeader(status)
	if a.google {
		writeBody(a.out, map[string]any{"error": map[string]any{"code": status, "message": message, "status": kind}})
		return
	}
	writeBody(a.out, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
}

var _ http.Handler = (*Cloud)(nil)
