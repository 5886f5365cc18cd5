package main

import (
	"testing"

	"go.uber.org/goleak"
)

// S33: no test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
