package main

import (
	"strings"
	"testing"
)

func TestDemoOfLessThanTwoDaysIsRefused(t *testing.T) {
	t.Parallel()
	command := demoCommand(func() (Config, error) {
		t.Error("the demo was begun")
		return Config{}, nil
	})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"--days", "1"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--days: 1") {
		t.Errorf("error %v", err)
	}
}
