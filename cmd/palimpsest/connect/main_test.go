package connect

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// killAt is the variable of the environment that has a test's process connect a client and die at a step.
const killAt = "PALIMPSEST_TEST_KILL_AT"

func TestMain(m *testing.M) {
	if at := os.Getenv(killAt); at != "" {
		os.Exit(connectAndDie(at))
	}
	goleak.VerifyTestMain(m)
}

// connectAndDie sets codex up in the home of the environment, and kills this process at a step.
func connectAndDie(at string) int {
	left, err := strconv.Atoi(at)
	if err != nil {
		return 2
	}
	connector := &Connector{Place: scratchAt(os.Getenv("HOME"))}
	connector.disk.before = func(string) {
		if left--; left < 0 {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {}
		}
	}
	client, err := ByName("codex")
	if err != nil {
		return 2
	}
	plan, err := connector.Plan(client, Setup{Server: os.Getenv("SERVER"), Key: "plm_1", Program: "/bin/palimpsest"})
	if err != nil || connector.Apply(plan) != nil {
		return 2
	}
	return 0
}
