package manage

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

const (
	// probeTimeout bounds the test of a provider key.
	probeTimeout = 15 * time.Second
	// maxModels bounds the list of models that is read, in bytes.
	maxModels = 4 << 20
	// anthropicVersion is the version of the API whose list of models is asked for.
	anthropicVersion = "2023-06-01"
)

// Upstream sends a request to a provider with a key in the clear.
type Upstream interface {
	Send(ctx context.Context, method, path string, header http.Header, body []byte, target upstream.Target) (*http.Response, error)
}

// probeJSON is the outcome of a test. A key that does not work is an answer, not
// an error of the API.
type probeJSON struct {
	OK         bool   `json:"ok"`
	Models     int    `json:"models"`           // that the provider lists
	Status     int    `json:"status,omitempty"` // the provider's; 0: it could not be reached
	Error      string `json:"error,omitempty"`
	DurationMS int64  `json:"duration_ms"`
}

// testProviderKey asks the provider for its models with a stored key.
func (s *server) testProviderKey(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	keys, err := s.ProviderKeys.ProviderKeys(ctx, who.workspace)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if key.ID != id {
			continue
		}
		outcome, err := s.probe(ctx, key)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, outcome)
	}
	return tenants.ErrNotFound
}

func (s *server) probe(ctx context.Context, key tenants.ProviderKey) (probeJSON, error) {
	secret, err := s.Vault.Open(key.Workspace, key.Provider, key.Sealed)
	if err != nil {
		return probeJSON{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	header := http.Header{"Accept": {"application/json"}}
	if key.Provider == tenants.ProviderAnthropic {
		header.Set("Anthropic-Version", anthropicVersion)
	}
	begin := s.Now()
	response, err := s.Upstream.Send(ctx, http.MethodGet, "/v1/models", header, nil, upstream.Target{Provider: key.Provider, BaseURL: key.BaseURL, Key: secret})
	if err != nil {
		return probeJSON{Error: unreachable(err), DurationMS: s.Now().Sub(begin).Milliseconds()}, nil
	}
	defer response.Body.Close()
	outcome := probeJSON{Status: response.StatusCode}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxModels)).Decode(&list)
	outcome.DurationMS = s.Now().Sub(begin).Milliseconds()
	switch {
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		outcome.Error = "The provider refuses this key. Replace it."
	case response.StatusCode != http.StatusOK:
		outcome.Error = "The provider answered " + response.Status + "."
	case err != nil || list.Data == nil:
		outcome.Error = "The answer is no list of models. Check the base URL."
	default:
		outcome.OK, outcome.Models = true, len(list.Data)
	}
	return outcome, nil
}

// unreachable says why a provider gave no answer.
func unreachable(err error) string {
	switch {
	case errors.Is(err, upstream.ErrForbiddenAddress):
		return "The base URL leads to a private address, which this installation does not allow."
	case errors.Is(err, context.DeadlineExceeded):
		return "The provider did not answer within " + probeTimeout.String() + "."
	default:
		return "The provider could not be reached. Check the base URL."
	}
}
