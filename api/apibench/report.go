package apibench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Table returns the results as Markdown: one table, a row for each case and route.
func Table(rows []Row) string {
	var text strings.Builder
	text.WriteString("| case | route | p50 ms | p99 ms | added p50 / p99 | × floor | first byte added p50 / p99 | own work p50 / p99 | CPU ms | requests/s | memory MB | to reach |\n")
	text.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %.0f | %s | %s |\n",
			row.Case.Name, row.Route, milliseconds(row.P50), milliseconds(row.P99),
			unless(row.Route == directRoute, added(row.Added50, row.Added99)),
			unless(row.Route != ourRoute || row.TimesFloor <= 0, fmt.Sprintf("%.1f", row.TimesFloor)),
			unless(row.Route == directRoute, added(row.AddedFirst50, row.AddedFirst99)),
			unless(row.Own99 == 0, milliseconds(row.Own50)+" / "+milliseconds(row.Own99)),
			unless(row.CPU == 0, milliseconds(row.CPU)), row.PerSecond,
			unless(row.MemoryPeak == 0, strconv.FormatInt(row.MemoryPeak>>20, 10)),
			unless(row.Route != ourRoute, row.verdict()))
	}

	return text.String()
}

// Parts returns the results among what go test -bench printed as Markdown, by package.
func Parts(printed string) string {
	var text strings.Builder
	text.WriteString("The parts alone, `go test -bench`:\n\n```text\n")
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "pkg: ") || strings.HasPrefix(line, "Benchmark") && strings.Contains(line, " ns/op") {
			text.WriteString(line)
		}
	}

	return text.String() + "```\n"
}

// verdict sets the row beside its goal.
func (r Row) verdict() string {
	goal := r.Case.Goal
	var parts []string
	most := func(name string, got, goal time.Duration) {
		if goal > 0 {
			parts = append(parts, fmt.Sprintf("%s ≤ %s: %s", name, milliseconds(goal), yes(got <= goal)))
		}
	}
	most("p50", r.Added50, goal.P50)
	most("p99", r.Added99, goal.P99)
	most("first byte", r.AddedFirst50, goal.FirstByte)
	most("own p50", r.Own50, goal.Own50)
	most("own p99", r.Own99, goal.Own99)
	most("CPU", r.CPU, goal.CPU)
	if goal.PerSecond > 0 {
		parts = append(parts, fmt.Sprintf("≥ %.0f/s: %s (%.2f of the floor's)", goal.PerSecond, yes(r.PerSecond >= goal.PerSecond), r.ShareOfRate))
	}
	if goal.MemoryPeak > 0 {
		parts = append(parts, fmt.Sprintf("≤ %d MB: %s", goal.MemoryPeak>>20, yes(r.MemoryPeak <= goal.MemoryPeak)))
	}
	if fault := r.Fault(); fault != "" {
		parts = append(parts, fault)
	}

	return strings.Join(parts, ", ")
}

// Machine describes where a run was made, in one line.
func Machine() string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		parts = append(parts, model)
	}
	if memory := field("/proc/meminfo", "MemTotal"); memory != "" {
		parts = append(parts, memory+" of memory")
	}

	return strings.Join(append(parts, runtime.GOOS+"/"+runtime.GOARCH, runtime.Version()), ", ")
}

// field returns the first value of a name in a file of "name: value" lines.
func field(file, name string) string {
	content, err := os.ReadFile(file) //nolint:gosec // the caller names it
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}

	return ""
}

// marks are the lines of a page between which a target of the Makefile writes.
func marks(target string) (begin, end string) {
	return "<!-- make " + target + " writes from here -->", "<!-- make " + target + " writes to here -->"
}

// CanWrite returns why Write would fail: the file cannot be read or written, or the marks
// are missing. It changes nothing.
func CanWrite(file, target string) error {
	if _, _, err := around(file, target); err != nil {
		return err
	}
	page, err := os.OpenFile(file, os.O_WRONLY, 0) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}

	return page.Close() //nolint:wrapcheck // nothing was written
}

// Write puts text between the marks of a target of the Makefile in a file.
func Write(file, target, text string) error {
	before, after, err := around(file, target)
	if err != nil {
		return err
	}
	changed := before + "\n\n" + strings.TrimSpace(text) + "\n\n" + after
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil { //nolint:gosec // a page of the documentation
		return fmt.Errorf("write the report: %w", err)
	}

	return nil
}

// around returns what a file holds up to the first mark of a target and from the second on.
func around(file, target string) (before, after string, err error) {
	beginMark, endMark := marks(target)
	content, err := os.ReadFile(file) //nolint:gosec // the caller names it
	if err != nil {
		return "", "", fmt.Errorf("read the report: %w", err)
	}
	before, rest, begun := strings.Cut(string(content), beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !begun || !ended {
		return "", "", errors.New(file + ": the marks to write between are missing")
	}

	return before + beginMark, endMark + after, nil
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond))
}

func added(p50, p99 time.Duration) string {
	return fmt.Sprintf("%+.2f / %+.2f", float64(p50)/float64(time.Millisecond), float64(p99)/float64(time.Millisecond))
}

func unless(absent bool, text string) string {
	if absent {
		return ""
	}

	return text
}

func yes(reached bool) string {
	if reached {
		return "yes"
	}

	return "**no**"
}
