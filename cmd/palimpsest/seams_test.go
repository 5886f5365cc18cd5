package main

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestWhoWaitsForExchangesIsToldWhenTheyAreDurable(t *testing.T) {
	t.Parallel()
	var counted tally
	told := 0
	recorded := counted.counting(func(_ tenants.WorkspaceID, apiKeys []uuid.UUID) { told += len(apiKeys) })
	waited := make(chan error)
	go func() { waited <- counted.wait(t.Context(), 5) }()
	recorded(tenants.NewWorkspaceID(), make([]uuid.UUID, 2))
	recorded(tenants.NewWorkspaceID(), make([]uuid.UUID, 3))
	if err := <-waited; err != nil || told != 5 {
		t.Errorf("%v, and pages were told of %d", err, told)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := counted.wait(ended, 6); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up hears %v", err)
	}
}
