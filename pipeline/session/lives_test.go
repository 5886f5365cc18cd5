package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

func TestLivesAreReadBesideRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		asked, answer, fails := 0, []int{30, 10, 20}, error(nil)
		lives, err := session.NewLives(func(_ context.Context, _ tenants.WorkspaceID, client string) ([]int, error) {
			asked++
			if client != "claude-code" {
				return nil, nil
			}
			return slices.Clone(answer), fails
		}, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		workspace := tenants.NewWorkspaceID()
		of := func(want []int, times int) {
			t.Helper()
			got := lives.Of(workspace, "claude-code")
			synctest.Wait()
			if !slices.Equal(got, want) || asked != times {
				t.Errorf("lives %v, asked %d times; want %v, %d", got, asked, want, times)
			}
		}
		of(nil, 1) // the first request does not wait
		of([]int{10, 20, 30}, 1)
		answer = []int{5}
		now = now.Add(11 * time.Minute)
		of([]int{10, 20, 30}, 2) // as they were until they are read
		of([]int{5}, 2)
		fails = errors.New("away")
		now = now.Add(11 * time.Minute)
		of([]int{5}, 3)
		of([]int{5}, 3)
		if other := lives.Of(tenants.NewWorkspaceID(), "claude-code"); other != nil {
			t.Errorf("another workspace has %v", other)
		}
		synctest.Wait()
	})
}
