package credentials

import (
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

// TestProviderKey asks the provider for its models with a stored key and stores the result. A key that does
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
	status, body, err := s.models(ctx, key, secret)
	outcome := judged(status, body, err)
	outcome.Said = shorten(strings.ReplaceAll(outcome.Said, secret, "…"))
	outcome.Took = s.config.Now().Sub(begin)
	return outcome, nil
}

// models requests the provider's list of models. The status is 0 without an answer.
func (s *Service) models(ctx context.Context, key tenants.ProviderKey, secret string) (status int, body []byte, err error) {
	header := http.Header{"Accept": {"application/json"}}
	if dialect, known := upstream.DialectOf(key.Provider); known {
		dialect.AddTo(header)
	}
	response, err := s.config.Upstream.Send(ctx, upstream.Request{Method: http.MethodGet, Path: "/v1/models", Header: header},
		upstream.TargetOf(key, key.Provider, secret, ""))
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(response.Body, maxModels)); err != nil {
		return response.StatusCode, nil, fmt.Errorf("read models: %w", err)
	}
	return response.StatusCode, body, nil
}

// judged turns the answer to a request for models into a test result.
func judged(status int, body []byte, err error) tenants.ProviderKeyTest {
	outcome := tenants.ProviderKeyTest{Status: status}
	var answer struct {
		Data  []json.RawMessage `json:"data"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
		Message string `json:"message"` // of Amazon Bedrock
	}
	unreadable := json.Unmarshal(body, &answer) != nil
	switch {
	case err != nil:
		outcome.Problem = unreachable(err)
	case status == http.StatusForbidden && strings.Contains(answer.Message, "not authorized to perform"):
		outcome.Problem = "The key is valid, but may not list models. Allow it bedrock:ListInferenceProfiles to test it."
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		outcome.Problem = fmt.Sprintf("The provider refuses this key with %d. Replace it.", status)
	case status != http.StatusOK:
		outcome.Problem = strings.TrimSpace(fmt.Sprintf("The provider answered %d %s", status, http.StatusText(status))) + "."
	case unreadable || answer.Data == nil:
		outcome.Problem = "The answer is no list of models. Check the base URL."
	default:
		outcome.OK, outcome.Models = true, len(answer.Data)
		return outcome
	}
	outcome.Said = cmp.Or(answer.Error.Message, answer.Message)
	return outcome
}

// shorten returns the beginning of a provider's message.
func shorten(said string) string {
	if letters := []rune(said); len(letters) > maxSaid {
		return string(letters[:maxSaid]) + "…"
	}
	return said
}

// unreachable says why a provider gave no answer.
func unreachable(err error) string {
	switch {
	case errors.Is(err, upstream.ErrForbiddenAddress):
		return "The base URL leads to an address that is not allowed: a private or link-local one, or one of this server itself."
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("The provider did not answer within %d seconds.", int(probeTimeout.Seconds()))
	default:
		return "The provider could not be reached. Check the base URL."
	}
}
