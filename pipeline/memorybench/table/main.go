// Command table measures what the memory finds again and prints the tables. The
// recall needs no database; the speed is read from what the Go benchmarks printed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"palimpsest/api/apibench"
	"palimpsest/pipeline/memorybench"
	"palimpsest/pipeline/tokens"
)

// options are the command's flags.
type options struct {
	data  string
	own   string
	speed string
	write string
}

func main() {
	var wanted options
	flag.StringVar(&wanted.data, "data", "../shared/data/recall", "directory with recorded sessions, where there is one")
	flag.StringVar(&wanted.own, "own", "pipeline/memorybench/testdata", "directory with the invented sessions")
	flag.StringVar(&wanted.speed, "speed", "", "file with the output of go test -bench of pipeline/archive/archivedb")
	flag.StringVar(&wanted.write, "write", "", "page to write the tables into")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, wanted)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted options) error {
	counter, err := tokens.NewCounter()
	if err != nil {
		return fmt.Errorf("token counter: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s, commit %s, %s.\n", time.Now().UTC().Format(time.DateOnly), commit(ctx), apibench.Machine())
	for _, set := range []struct{ title, directory string }{{"Recorded sessions", wanted.data}, {"Invented sessions", wanted.own}} {
		recorded, err := memorybench.Load(set.directory)
		if errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(os.Stderr, "table: no sessions in", set.directory)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "measuring:", set.directory)
		text.WriteString("\n### " + set.title + "\n\n" + memorybench.Markdown(memorybench.New(recorded, counter.Count).Run()))
	}
	if wanted.speed != "" {
		printed, err := os.ReadFile(wanted.speed)
		if err != nil {
			return fmt.Errorf("read the benchmarks' output: %w", err)
		}
		text.WriteString("\n### Speed of a search\n\n" + memorybench.Speed(string(printed)))
	}
	fmt.Print(text.String()) //nolint:forbidigo // the command's output
	if wanted.write == "" {
		return nil
	}
	return apibench.Write(wanted.write, "bench-memory", text.String())
}

// commit names the version that runs.
func commit(ctx context.Context) string {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
