// Package reporttest writes benchmark results into a page of the documentation, measures the CPU time of
// processes, and describes the machine.
package reporttest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine of a run in one line.
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

// marks returns the lines around the part of a page that a Makefile target writes.
func marks(target string) (begin, end string) {
	return "<!-- make " + target + " writes from here -->", "<!-- make " + target + " writes to here -->"
}

// CanWrite returns the error that Write would return: the file can't be read or written, or the marks are
// missing. It doesn't change the file.
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

// Write replaces the text between the marks of a Makefile target in a file.
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

// around returns a file's content up to the first mark of a target and from the second on.
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
