package apibench

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Table returns the results as Markdown: one table, a row for each case and route.
func Table(rows []Row) string {
	var text strings.Builder
	text.WriteString("| case | route | p50 ms | p99 ms | added p50 / p99 | × floor | first byte added p50 / p99 | own work p50 / p99 | CPU ms | database CPU ms | requests/s | for each core | memory MB | to reach |\n")
	text.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.0f | %s | %s | %s |\n",
			row.Case.Name, row.Route, milliseconds(row.P50), milliseconds(row.P99),
			unless(row.Route == directRoute, added(row.Added50, row.Added99)),
			unless(row.Route != ourRoute || row.TimesFloor <= 0, fmt.Sprintf("%.1f", row.TimesFloor)),
			unless(row.Route == directRoute, added(row.AddedFirst50, row.AddedFirst99)),
			unless(row.Own99 == 0, milliseconds(row.Own50)+" / "+milliseconds(row.Own99)),
			unless(row.CPU == 0, milliseconds(row.CPU)), unless(row.DatabaseCPU == 0, milliseconds(row.DatabaseCPU)), row.PerSecond,
			unless(row.DatabaseCPU == 0, fmt.Sprintf("%.0f", 1/(row.CPU+row.DatabaseCPU).Seconds())),
			unless(row.MemoryPeak == 0, strconv.FormatInt(row.MemoryPeak>>20, 10)),
			row.verdict())
	}

	return text.String()
}

// Parts returns the result lines of go test -bench as Markdown, by package.
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

// verdict compares the row with its goal. It returns "" for other routes.
func (r Row) verdict() string {
	goal := r.Case.Goal
	switch {
	case r.Scales > 0 && goal.Scales > 0:
		return fmt.Sprintf("≥ %.1f × one replica: %s (%.1f by CPU)", goal.Scales, yes(r.Scales >= goal.Scales), r.Scales)
	case r.Route != ourRoute:
		return ""
	}
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
	most("database CPU", r.DatabaseCPU, goal.Database)
	if goal.TimesFloor > 0 {
		parts = append(parts, fmt.Sprintf("p99 ≤ %.0f × the floor's: %s (%.1f)", goal.TimesFloor, yes(r.Floor99 <= goal.TimesFloor), r.Floor99))
	}
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
