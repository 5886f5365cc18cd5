package memorybench

import (
	"fmt"
	"strings"
)

// Figure is in how many of some cases something came out.
type Figure struct {
	Name       string
	Cases, Met int
	Least      float64  // share of the cases to reach; 0 if none is named
	Never      bool     // it is to come out in no case
	Unwanted   bool     // it had better come out in none
	Others     []string // cases that came out otherwise, for anyone who looks into them
}

// Reached reports whether a figure of at least one case is as it is to be.
func (f *Figure) Reached() bool {
	return f.Cases > 0 && (!f.Never || f.Met == 0) && f.Share() >= f.Least
}

// Share returns in which share of the cases it came out.
func (f *Figure) Share() float64 { return float64(f.Met) / float64(max(f.Cases, 1)) }

// add counts a case; what tells of it where it came out otherwise than wanted.
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
