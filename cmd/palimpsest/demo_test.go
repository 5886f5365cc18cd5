package main

import (
	"net"
	"os"
	"palimpsest/cmd/palimpsest/settings"
	"strings"
	"testing"
)

func TestDemoOfLessThanTwoDaysIsRefused(t *testing.T) {
	t.Parallel()
	command := demoCommand(func() (settings.Config, error) {
		t.Error("the demo was begun")
		return settings.Config{}, nil
	})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"--days", "1"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--days: 1") {
		t.Errorf("error %v", err)
	}
}

// What takes a minute to make is not made where it cannot be served.
func TestDemoWhoseAddressIsTakenIsNotMade(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	config := settings.DefaultConfig()
	config.Serving.Addr, config.Storage.DataDir = taken.Addr().String(), t.TempDir()
	command := demoCommand(func() (settings.Config, error) { return config, nil })
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{})
	err = command.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "PALIMPSEST_ADDR: listen tcp") || !strings.Contains(err.Error(), "set another address") {
		t.Errorf("error %v", err)
	}
	if made, err := os.ReadDir(config.Storage.DataDir); err != nil || len(made) > 0 {
		t.Errorf("it left %v, %v", made, err)
	}
}
