package ipc_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
)

// A case of testdata holds the head of a body, its messages one a line, the
// pipeline's config and what of the messages goes to the provider. Its comment
// names the format and the limit. {{12 some words }} stands for 12 times the words,
// "= #3" for the client's message 3 as it came.
//
// A12, C4, C6: the bytes are pinned: anyone who changes them changes RenderVersion.
func TestGolden(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, file)
		})
	}
}

func golden(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(text)
	sections := map[string]*txtar.File{}
	for i := range archive.Files {
		sections[archive.Files[i].Name] = &archive.Files[i]
	}
	format, limit := heading(t, string(archive.Comment))
	codec := codecs()[format]
	config, err := modules.Catalog().Parse(sections["config"].Data)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.ReplaceAll(strings.TrimSpace(expand(string(sections["in"].Data))), "\n", ",")
	head := strings.TrimSpace(string(sections["head"].Data))
	body := strings.TrimSuffix(head, "}") + `,"` + codec.List() + `":[` + lines + `]}`

	counter := newCounter(t)
	exchange := pipelinetest.NewExchange(t, codec, []byte(body), pipelinetest.Options{Counter: counter, Config: config, Limit: limit})
	pipeline.NewChain(ipc.New(counter.Message)).Process(t.Context(), exchange)
	sealed := pipelinetest.Seal(exchange)

	double := providerdouble.NewHandler(providerdouble.Config{})
	double.Trust([]byte(body))
	if err := double.Validate(string(format), sealed); err != nil {
		t.Errorf("refused: %v", err)
	}
	got := written(elementsOf(t, codec, sealed), elementsOf(t, codec, []byte(body)))
	if *update {
		sections["out"].Data = got
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := sections["out"].Data; !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// written returns what is sent, a line a message, against what the client sent.
func written(sent, from [][]byte) []byte {
	var out []byte
	next := 0
	for _, element := range sent {
		same := slices.IndexFunc(from[next:], func(original []byte) bool { return bytes.Equal(original, element) })
		if same < 0 {
			out = append(append(out, element...), '\n')
			continue
		}
		out = fmt.Appendf(out, "= #%d\n", next+same)
		next += same + 1
	}
	return out
}

// heading reads "anthropic 2000: what the case shows".
func heading(t *testing.T, comment string) (format conversation.Format, limit int) {
	t.Helper()
	words := strings.Fields(strings.Replace(comment, ":", " ", 1))
	if len(words) < 3 {
		t.Fatalf("the comment names no format and limit: %q", comment)
	}
	limit, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatal(err)
	}
	return conversation.Format(words[0]), limit
}

func expand(text string) string {
	return regexp.MustCompile(`\{\{(\d+) (.*?)\}\}`).ReplaceAllStringFunc(text, func(repeated string) string {
		count, words, _ := strings.Cut(strings.Trim(repeated, "{}"), " ")
		n, _ := strconv.Atoi(count)
		return strings.Repeat(words, n)
	})
}

var update = flag.Bool("update", false, "write the golden files") //nolint:gochecknoglobals // the usual flag of golden tests
