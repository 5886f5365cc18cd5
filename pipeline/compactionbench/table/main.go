// Command table compares ways to compact sessions and prints the tables. It needs
// no provider, no network and no database.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"palimpsest/api/apibench"
	"palimpsest/pipeline/compactionbench"
)

// options are the command's flags.
type options struct {
	json  bool
	write string
	quick bool
	data  string
}

func main() {
	var wanted options
	flag.BoolVar(&wanted.json, "json", false, "print JSON, not tables")
	flag.StringVar(&wanted.write, "write", "", "page to write the tables into")
	flag.BoolVar(&wanted.quick, "quick", false, "fewer and shorter sessions")
	flag.StringVar(&wanted.data, "data", "../shared/data", "directory with transcripts/*.anthropic.json, where there is one")
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
	bench, err := compactionbench.New()
	if err != nil {
		return err
	}
	result, err := bench.Run(ctx, compactionbench.Suite{
		Data: wanted.data, Quick: wanted.quick, Note: func(note string) { fmt.Fprintln(os.Stderr, "comparing:", note) },
	})
	if err != nil {
		return err
	}
	if wanted.json {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	text := fmt.Sprintf("%s, commit %s, %s; as many sessions at a time as there are cores.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), commit(ctx), apibench.Machine(), result.Markdown())
	fmt.Print(text) //nolint:forbidigo // the command's output
	if wanted.write == "" {
		return nil
	}
	return compactionbench.Write(wanted.write, text)
}

// commit names the version that runs.
func commit(ctx context.Context) string {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
