package memorybench_test

import (
	"testing"

	"palimpsest/cmd/tools/memorybench"
)

func TestPrintedBenchmarksBecomeATable(t *testing.T) {
	t.Parallel()
	got := memorybench.Speed(`goos: linux
    million_test.go:44: 20000 documents in 3.1s
    million_test.go:44: table 30 MB, indexes 17 MB after 4.5s
BenchmarkSearch/a_rare_word-2         	      20	   2945023 ns/op	         2.089 cpu-ms	         2.416 p50-ms	        12.04 p99-ms
BenchmarkPut-2 	 1 	 3 ns/op
PASS
`)
	want := "A workspace of 20000 documents; they take 30 MB, their indexes 17 MB.\n\n" +
		"| asked for | p50, ms | p99, ms | processor, ms |\n| --- | --- | --- | --- |\n| a rare word | 2.416 | 12.04 | 2.089 |\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
