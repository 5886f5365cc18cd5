package memorybench

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	benchmarkLine = regexp.MustCompile(`^BenchmarkSearch/(\S+?)(?:-\d+)?\s+\d+\s+.*?([\d.]+) cpu-ms\s+([\d.]+) p50-ms\s+([\d.]+) p99-ms`)
	documentsLine = regexp.MustCompile(`(\d+) documents in `)
	sizeLine      = regexp.MustCompile(`table (.+), indexes (.+?) after`)
)

// Speed returns the output of the search's benchmark as a table.
func Speed(printed string) string {
	var text strings.Builder
	if match := documentsLine.FindStringSubmatch(printed); match != nil {
		fmt.Fprintf(&text, "A workspace of %s documents", match[1])
		if size := sizeLine.FindStringSubmatch(printed); size != nil {
			fmt.Fprintf(&text, "; they take %s, their indexes %s", size[1], size[2])
		}
		text.WriteString(".\n\n")
	}
	text.WriteString("| asked for | p50, ms | p99, ms | processor, ms |\n| --- | --- | --- | --- |\n")
	for line := range strings.Lines(printed) {
		if match := benchmarkLine.FindStringSubmatch(line); match != nil {
			fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", strings.ReplaceAll(match[1], "_", " "), match[3], match[4], match[2])
		}
	}
	return text.String()
}
