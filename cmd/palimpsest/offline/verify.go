package offline

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"palimpsest/pipeline/archive/export"
)

// maxFaults limits the faults shown per file.
const maxFaults = 50

// verifyBuffer is how much of a file is read at once, in bytes.
const verifyBuffer = 64 << 10

// errFaulty is returned if a file differs from its export.
var errFaulty = errors.New("not every file is as it was exported")

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE…",
		Short: "Check that exported sessions, or a whole exported workspace, are whole and unchanged, without a server; - reads standard input",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			sound := true
			for _, file := range files {
				whole, err := verifyFile(command.InOrStdin(), command.OutOrStdout(), file)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				sound = sound && whole
			}
			if !sound {
				return errFaulty
			}
			return nil
		},
	}
}

// verifyFile verifies one file and prints the result.
func verifyFile(stdin io.Reader, w io.Writer, name string) (sound bool, err error) {
	reader := stdin
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the caller names it
		if err != nil {
			return false, err
		}
		defer func() { _ = file.Close() }()
		reader = file
	}
	shown := 0
	report := func(fault export.Fault) {
		if shown++; shown <= maxFaults {
			fmt.Fprintf(w, "%s: %s\n", name, fault)
		}
	}
	buffered := bufio.NewReaderSize(reader, verifyBuffer)
	var totals export.BundleTotals
	if export.IsBundle(buffered) {
		totals, err = export.VerifyBundle(buffered, report)
	} else {
		totals.Totals, err = export.Verify(buffered, report)
	}
	if err != nil {
		return false, err
	}
	if totals.Faults > maxFaults {
		fmt.Fprintf(w, "%s: and %d more\n", name, totals.Faults-maxFaults)
	}
	if totals.Faults > 0 {
		fmt.Fprintf(w, "%s: FAULTY, %d faults\n", name, totals.Faults)
		return false, nil
	}
	if totals.Files > 0 {
		fmt.Fprintf(w, "%s: OK, a tar of %d files\n", name, totals.Files)
	}
	fmt.Fprintf(w, "%s: OK, %d sessions, %d lanes, %d messages, %d answers, %d bytes, sha256 %s\n",
		name, totals.Sessions, totals.Lanes, totals.Messages, totals.Answers, totals.Bytes, totals.SHA256)
	return true, nil
}
