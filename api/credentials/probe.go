package credentials

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/excerpts"
	"palimpsest/tenants"
)

const (
	// probeTimeout bounds the test of a provider key.
	probeTimeout = 15 * time.Second
	// maxModels bounds the size of the list of models, in bytes.
	maxModels = 4 << 20
	// maxSaid bounds quotes of a provider's words, in characters.
	maxSaid = 300
)

// TestProviderKey asks the provider for its models, or for a count of tokens, with a stored key and stores the result. A key that does
// not work is a result, not an error; tenants.ErrNotFound is one.
func (s *Service) TestProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.ProviderKeyTest, error) {
	keys, err := s.ProviderKeys(ctx, workspace)
	if err != nil {
		return tenants.ProviderKeyTest{}, err
	}
	for _, key := range keys {
		if key.ID == id {
			return s.check(ctx, key)
		}
	}
	return tenants.ProviderKeyTest{}, tenants.ErrNotFound
}

// check tests a key and stores the result.
func (s *Service) check(ctx context.Context, key tenants.ProviderKey) (tenants.ProviderKeyTest, error) {
	outcome, err := s.probe(ctx, key)
	if err != nil {
		return tenants.ProviderKeyTest{}, err
	}
	err = s.CheckedProviderKey(ctx, key.Workspace, key.ID, tenants.ProviderKeyCheck{
		At: s.config.Now(), OK: outcome.OK, Status: outcome.Status, Problem: outcome.Problem,
	})
	return outcome, err
}

func (s *Service) probe(ctx context.Context, key tenants.ProviderKey) (tenants.ProviderKeyTest, error) {
	secret, err := s.config.Vault.Open(key)
	if err != nil {
		return tenants.ProviderKeyTest{}, fmt.Errorf("open provider key: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	begin := s.config.Now()
	ask, judge := s.models, judged
	if key.MadeFrom().NoList {
		ask, judge = s.count, counted
	}
	status, body, err := ask(ctx, key, secret)
	outcome := judge(status, body, err)
	outcome.Said = excerpts.Start(strings.ReplaceAll(outcome.Said, secret, "…"), maxSaid)
	outcome.Took = s.config.Now().Sub(begin)
	return outcome, nil
}

// models requests the provider's list of models. The status is 0 without an answer.
func (s *Service) models(ctx context.Context, key tenants.ProviderKey, secret string) (status int, body []byte, err error) {
	header := http.Header{"Accept": {"application/json"}}
	dialect, _ := upstream.DialectOf(key.Provider)
	dialect.AddTo(header)
	return s.ask(ctx, upstream.Request{Method: http.MethodGet, Path: dialect.ModelsPath, Header: header}, upstream.TargetOf(key, key.Provider, secret, ""))
}

// count has the provider count the tokens of a word, for providers without a list of models.
func (s *Service) count(ctx context.Context, key tenants.ProviderKey, secret string) (status int, body []byte, err error) {
	model := "claude-sonnet-4-5"
	for _, name := range key.Models {
		if !strings.Contains(name, "*") {
			model = name
			break
		}
	}
	asked, err := json.Marshal(map[string]any{"model": model, "messages": []map[string]string{{"role": "user", "content": "ping"}}})
	if err != nil {
		return 0, nil, fmt.Errorf("write question: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}}
	return s.ask(ctx, upstream.Request{Method: http.MethodPost, Path: "/v1/messages/count_tokens", Header: header, Body: asked}, upstream.TargetOf(key, key.Provider, secret, model))
}

// ask sends a request and reads the answer. The status is 0 without an answer.
func (s *Service) ask(ctx context.Context, asked upstream.Request, target upstream.Target) (status int, body []byte, err error) {
	response, err := s.config.Upstream.Send(ctx, asked, target)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(response.Body, maxModels)); err != nil {
		return response.StatusCode, nil, fmt.Errorf("read answer: %w", err)
	}
	return response.StatusCode, body, nil
}

// answered is an answer to a test.
type answered struct {
	Data   []json.RawMessage `json:"data"`
	Models []json.RawMessage `json:"models"` // of Google's Gemini API
	Tokens int               `json:"input_tokens"`
	Error  struct {
		Message string `json:"message"`
	} `json:"error"`
	Message string `json:"message"` // of Amazon Bedrock
}

// counted turns the answer to a request for a count of tokens into a test result.
func counted(status int, body []byte, err error) tenants.ProviderKeyTest {
	var answer answered
	if err == nil && status == http.StatusOK && json.Unmarshal(body, &answer) == nil && answer.Tokens > 0 {
		return tenants.ProviderKeyTest{Status: status, OK: true}
	}
	outcome := judged(status, body, err)
	switch status {
	case http.StatusOK:
		outcome.Problem = "The answer is no count of tokens. Check the base URL."
	case http.StatusNotFound, http.StatusBadRequest:
		outcome.Problem = "The provider accepts the key, but does not serve the model of the test. List the models that it serves; the first one without * is tested."
	}
	outcome.OK = false
	return outcome
}

// judged turns the answer to a request for models into a test result.
func judged(status int, body []byte, err error) tenants.ProviderKeyTest {
	outcome := tenants.ProviderKeyTest{Status: status}
	var answer answered
	unreadable := json.Unmarshal(body, &answer) != nil
	switch {
	case err != nil:
		outcome.Problem = unreachable(err)
	case status == http.StatusForbidden && strings.Contains(answer.Message, "not authorized to perform"):
		outcome.Problem = "The key is valid, but may not list models. Allow it bedrock:ListInferenceProfiles to test it."
	case status == http.StatusBadRequest && bytes.Contains(body, []byte("API_KEY_INVALID")): // of Google
		outcome.Problem = "The provider does not know this key. Replace it."
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		outcome.Problem = fmt.Sprintf("The provider refuses this key with %d. Replace it.", status)
	case status != http.StatusOK:
		outcome.Problem = strings.TrimSpace(fmt.Sprintf("The provider answered %d %s", status, http.StatusText(status))) + "."
	case unreadable || answer.Data == nil && answer.Models == nil:
		outcome.Problem = "The answer is no list of models. Check the base URL."
	default:
		outcome.OK, outcome.Models = true, len(answer.Data)+len(answer.Models)
		return outcome
	}
	outcome.Said = cmp.Or(answer.Error.Message, answer.Message)
	return outcome
}

// unreachable says why a provider gave no answer.
func unreachable(err error) string {
	switch {
	case errors.Is(err, upstream.ErrSignIn):
		return "The cloud's sign-in service gives no access token for this key" + strings.TrimPrefix(err.Error(), upstream.ErrSignIn.Error()) + ". Replace it."
	case errors.Is(err, upstream.ErrForbiddenAddress):
		return "The base URL leads to an address that is not allowed: a private or link-local one, or one of this server itself."
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("The provider did not answer within %d seconds.", int(probeTimeout.Seconds()))
	default:
		return "The provider could not be reached. Check the base URL."
	}
}
