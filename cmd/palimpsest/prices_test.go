package main

import (
	"net/http"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// What a workspace has agreed on with its provider is what its requests cost from then on.
func TestModelPricesHoldInTheProxy(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("prices")
	cost := func() int64 {
		response, answer := w.post("/v1/messages", []byte(smallMessage), nil)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", response.StatusCode, answer)
		}
		var list struct {
			Data []struct {
				ID   string
				Cost int64 `json:"cost_micro_usd"`
			}
		}
		w.until(func() bool {
			w.call(http.MethodGet, "/api/v1/requests?limit=1", nil, http.StatusOK, &list)
			return len(list.Data) == 1 && list.Data[0].ID == response.Header.Get("X-Palimpsest-Request-Id")
		})
		return list.Data[0].Cost
	}
	listed := cost()
	set := func(prices ...map[string]any) {
		w.call(http.MethodPut, "/api/v1/models/prices", map[string]any{"prices": append([]map[string]any{}, prices...)}, http.StatusNoContent, nil)
	}
	everywhere := map[string]any{"model": "claude-sonnet-4-5", "input": 30, "output": 150}
	set(everywhere)
	w.hears(func() bool { return cost() == 10*listed })
	var keys struct{ Data []struct{ ID string } }
	w.call(http.MethodGet, "/api/v1/provider-keys", nil, http.StatusOK, &keys)
	set(everywhere, map[string]any{"model": "claude-sonnet-4-5", "provider_key_id": keys.Data[0].ID, "input": 6, "output": 30})
	w.hears(func() bool { return cost() == 2*listed })
	set()
	w.hears(func() bool { return cost() == listed })
}

// The limits of a model at a provider key hold for requests with that key.
func TestModelLimitsHoldInTheProxy(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("limits")
	window := func() string {
		response, answer := w.post("/v1/messages", []byte(smallMessage), nil)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", response.StatusCode, answer)
		}
		return response.Header.Get("X-Palimpsest-Context-Window")
	}
	listed := window()
	var keys struct {
		Data []struct{ ID, Provider string }
	}
	w.call(http.MethodGet, "/api/v1/provider-keys", nil, http.StatusOK, &keys)
	var limits []map[string]any
	for _, key := range keys.Data {
		limits = append(limits, map[string]any{"model": "claude-sonnet-4-5", "provider_key_id": key.ID, "window_tokens": map[bool]int{true: 30_000, false: 60_000}[key.Provider == "anthropic"]})
	}
	w.call(http.MethodPut, "/api/v1/models/limits", map[string]any{"limits": limits}, http.StatusNoContent, nil)
	w.hears(func() bool { return len(window()) == 5 && window() < "30001" })
	w.call(http.MethodPut, "/api/v1/models/limits", map[string]any{"limits": []any{}}, http.StatusNoContent, nil)
	w.hears(func() bool { return window() == listed })
}
