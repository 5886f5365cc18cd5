package memorybench

import (
	"fmt"
	"strings"
)

// Figure counts the cases in which something came out.
type Figure struct {
	Name       string
	Cases, Met int
	Least      float64  // required share of the cases; 0 if there is no requirement
	Never      bool     // it must never come out
	Unwanted   bool     // it should not come out
	Others     []string // ids of unexpected cases, for debugging
}

// Reached reports whether a figure of at least one case meets its requirement.
func (f *Figure) Reached() bool {
	return f.Cases > 0 && (!f.Never || f.Met == 0) && f.Share() >= f.Least
}

// Share returns the share of the cases in which it came out.
func (f *Figure) Share() float64 { return float64(f.Met) / float64(max(f.Cases, 1)) }

// add counts a case. what describes the case if its result is not the wanted one.
func (f *Figure) add(met bool, what func() string) {
	f.Cases++
	if met {
		f.Met++
	}
	if met == (f.Never || f.Unwanted) {
		f.Others = append(f.Others, what())
	}
}

// Figures returns figures as a table.
func Figures(figures []Figure) string {
	var text strings.Builder
	text.WriteString("| what | cases | came out | share | to reach |\n" + strings.Repeat("| --- ", 5) + "|\n")
	for i := range figures {
		figure := &figures[i]
		target := ""
		switch {
		case figure.Never:
			target = "0"
		case figure.Least > 0:
			target = fmt.Sprintf("%.0f %%", 100*figure.Least)
		}
		fmt.Fprintf(&text, "| %s | %d | %d | **%s** | %s |\n", figure.Name, figure.Cases, figure.Met, percent(figure.Share()), target)
	}
	return text.String()
}
