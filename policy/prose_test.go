package policy_test

import (
	"bufio"
	"bytes"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// stumbles matches wording that readers have stumbled on; docs/decisions.md says why a
// list here and not a prose linter. The words stand in groups by what to write instead.
var stumbles = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\b(of) (ours|theirs)\b`,                                           // our X, their X
	`\bwho` + `ever\b|\bsome` + `body\b`,                               // the person who, someone
	`\bno` + `body (minds|cares|does|is|waits|else)\b`,                 // no one
	`\ba` + `new\b`,                                                    // again
	`\b(is|are) none\b`,                                                // is not a ..., does not exist
	`\b(what|that) is no\b|\bno such one\b`,                            // what is not a ...
	`\b(nil|empty|0): (no` + `body|none|nothing|it is|they are|there)`, // nil if ...
	`\b(broke|breaks) off\b`,                                           // ended early
	`\b(is|are) told of\b`,                                             // is notified of
	`\bfor good\b|\bby way of\b|\bin force\b`,                          // permanently, through, current
	`\bwhere` + `from\b|\bthere` + `of\b|\bthere` + `in\b`,             // say what is meant
	`col` + `our|behavi` + `our|neighb` + `our|\blabel` + `led\b|(recogn|normal|organ)` + `is(e|a|i)`, // American spelling
	`(^|[^'"[:word:]])(lear` + `nt|spe` + `lt)([^\]'":[:word:]]|$)`,                                   // learned, spelled; a source of the API keeps its name
	`['"](lear` + `nt|spe` + `lt)[ ,.]`,
	`\bTestWhat` + `Is|\bTestWho` + `May`, // say what happens, as a sentence
}, "|"))

// keepsItsWords are files whose text goes to models, where another word would change bytes
// of prompts that providers have cached, and files that list what people write.
var keepsItsWords = []string{"pipeline/modules/ipc/summary.go", "pipeline/summary/instructions.go", "pipeline/ledger/preference.go", "pipeline/modules/semanticcache/wording.go"}

func TestTextIsPlainEnglish(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(repository, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (isForeign(entry.Name()) || isModule(file)):
			return filepath.SkipDir
		case entry.IsDir(), strings.HasSuffix(file, "_templ.go"), slices.Contains(keepsItsWords, filepath.ToSlash(file)),
			!slices.Contains([]string{".go", ".templ", ".md", ".yaml"}, filepath.Ext(file)):
			return nil
		}
		text, err := fs.ReadFile(repository, file)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for number := 1; lines.Scan(); number++ {
			if !utf8.Valid(lines.Bytes()) {
				t.Errorf("%s:%d: is not UTF-8", file, number)
			}
			if found := stumbles.FindString(lines.Text()); found != "" {
				t.Errorf("%s:%d: %q: say it in plain English (see policy/prose_test.go)", file, number, found)
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}
