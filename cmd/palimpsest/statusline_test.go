package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"palimpsest/cmd/palimpsest/buildtest"
)

// statusLine returns a command that prints the status line of a session whose server is away.
func statusLine(t testing.TB, program string) func() *exec.Cmd {
	t.Helper()
	home := t.TempDir()
	login, err := json.Marshal(map[string]string{"server": "http://127.0.0.1:9", "key": "plm_key"})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"palimpsest", "Library/Application Support/palimpsest"} {
		if err := os.MkdirAll(filepath.Join(home, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, folder, "login.json"), login, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Another process reads the session now, as in most runs: none is started by this one.
	for _, folder := range []string{"palimpsest/status", "Library/Caches/palimpsest/status"} {
		if err := os.MkdirAll(filepath.Join(home, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := os.Create(filepath.Join(home, folder, "s1.lock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
	}
	return func() *exec.Cmd {
		command := exec.CommandContext(t.Context(), program, "statusline")
		command.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home, "GOGC=off"} // as connect has it run
		command.Stdin = strings.NewReader(`{"session_id":"s1"}`)
		return command
	}
}

// BenchmarkStatusLine measures the status line while the server is away, from its start to its end.
func BenchmarkStatusLine(b *testing.B) {
	command := statusLine(b, buildtest.Palimpsest(b))
	var took, worked []time.Duration
	for b.Loop() {
		began, one := time.Now(), command()
		if said, err := one.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, said)
		}
		took = append(took, time.Since(began))
		worked = append(worked, one.ProcessState.UserTime()+one.ProcessState.SystemTime())
	}
	for name, all := range map[string][]time.Duration{"": took, "cpu-": worked} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"p99-ms")
	}
}

// What packages prepare when the program starts costs the time of every command. It is counted in allocations,
// which no machine's speed changes; regular expressions and tables that only some command needs are made then.
func TestAStartPreparesLittle(t *testing.T) {
	t.Parallel()
	const most = 30_000 // allocations; half of them are of gorm, and of what cleans HTML
	command := statusLine(t, buildtest.Palimpsest(t))()
	command.Env = append(command.Env, "GODEBUG=inittrace=1")
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	total := 0
	for _, line := range regexp.MustCompile(`(?m)^init \S+ @.* (\d+) allocs$`).FindAllSubmatch(said, -1) {
		count, err := strconv.Atoi(string(line[1]))
		if err != nil {
			t.Fatal(err)
		}
		total += count
	}
	if total == 0 || total > most {
		t.Errorf("packages make %d allocations at the start, at most %d are meant:\n%s", total, most, said)
	}
}
