package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// examineTimeout limits the check of one part.
const examineTimeout = 10 * time.Second

// errCheckFailed is returned if a part fails.
var errCheckFailed = errors.New("not every check passed; what failed and what to do is listed above")

// verdict is the outcome of a check.
type verdict string

const (
	verdictOK   verdict = "ok"
	verdictOff  verdict = "off"  // an optional part without configuration
	verdictWarn verdict = "warn" // the product runs, and something needs attention
	verdictFail verdict = "fail" // the product does not run, or not as configured
)

// result is the line of the list for one part.
type result struct {
	Name   string  `json:"name"`
	Status verdict `json:"status"`
	Text   string  `json:"text"`
	Advice string  `json:"advice,omitempty"` // how to fix it
}

func passed(format string, values ...any) result {
	return result{Status: verdictOK, Text: fmt.Sprintf(format, values...)}
}

func warned(advice, format string, values ...any) result {
	return result{Status: verdictWarn, Text: fmt.Sprintf(format, values...), Advice: advice}
}

func failed(advice, format string, values ...any) result {
	return result{Status: verdictFail, Text: fmt.Sprintf(format, values...), Advice: advice}
}

func off(text string) result {
	return result{Status: verdictOff, Text: text}
}

// examination checks one part.
type examination struct {
	name string
	look func(context.Context) result
}

// Command returns the command check.
func Command(load func() (settings.Config, error)) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "check",
		Short: "Check the settings and every part that they name: database, keys, clock, bucket, Redis, mail, providers",
		Long: "Check looks at everything that the product needs, with the settings that serve would use, and lists what works and what to do about the rest. " +
			"It changes nothing but for one object that it puts into the bucket and removes again, and prints no secrets. It exits with 1 if a check fails.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			results := checkInstallation(command.Context(), load)
			write := writeResults
			if asJSON {
				write = writeResultsJSON
			}
			if err := write(command.OutOrStdout(), results); err != nil {
				return err
			}
			if anyFailed(results) {
				return errCheckFailed
			}
			return nil
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return command
}

func anyFailed(results []result) bool {
	return slices.ContainsFunc(results, func(one result) bool { return one.Status == verdictFail })
}

// examiner checks the database and the product's other dependencies.
type examiner struct{ *setup.Database }

// checkInstallation returns a result for each part of the installation, in a fixed order.
func checkInstallation(ctx context.Context, load func() (settings.Config, error)) []result {
	config, err := load()
	if err != nil {
		wrong := failed("Correct the setting; docs/operations.md lists them all. Nothing else was checked.", "%v", err)
		wrong.Name = "Settings"
		return []result{wrong}
	}
	var settings, databases []examination
	for _, one := range config.Each() {
		examiner := examiner{setup.DatabaseOf(one)}
		defer examiner.Close()
		settings = append(settings, examination{one.About("Settings"), func(context.Context) result { return checkSettings(one) }})
		for _, look := range examiner.databaseExaminations(ctx) {
			databases = append(databases, examination{one.About(look.name), look.look})
		}
	}
	shared := examiner{setup.DatabaseOf(config)}
	defer shared.Close()
	return examine(ctx, examineTimeout, slices.Concat(
		settings, []examination{{"Data directory", func(context.Context) result { return checkDataDir(config.Storage.DataDir) }}}, databases, shared.outerExaminations(),
	))
}

// examine checks all parts at once. A part without a result in time fails, and doesn't delay the others.
func examine(ctx context.Context, limit time.Duration, examinations []examination) []result {
	results := make([]result, len(examinations))
	var looks sync.WaitGroup
	for i, one := range examinations {
		looks.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			done := make(chan result, 1)
			go func() { done <- one.look(ctx) }()
			select {
			case results[i] = <-done:
			case <-ctx.Done():
				results[i] = failed("Find out what holds it up, such as a firewall that drops packets.", "no answer within %s", limit)
			}
			results[i].Name = one.name
		})
	}
	looks.Wait()
	return results
}

func writeResultsJSON(w io.Writer, results []result) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(results)
}

// writeResults writes the list as lines of text, with each advice below its line.
func writeResults(w io.Writer, results []result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	counts := map[verdict]int{}
	for _, one := range results {
		counts[one.Status]++
		fmt.Fprintf(table, "%s\t%s\t%s\n", one.Status, one.Name, one.Text)
		if one.Advice != "" {
			fmt.Fprintf(table, "\t\t→ %s\n", one.Advice)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d ok, %d off, %d to look at, %d failed\n", counts[verdictOK], counts[verdictOff], counts[verdictWarn], counts[verdictFail])
	return err
}
