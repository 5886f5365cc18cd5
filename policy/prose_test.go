package policy_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// stumble is wording that readers have stumbled on. To match it takes a hundred times as long as to
// look whether a file has a fragment of it at all.
type stumble struct {
	fragments []string // of which each match has one, in lower case
	wording   *regexp.Regexp
}

// stumbles is such wording; docs/decisions.md says why a list here and not a prose linter. The words
// stand in groups by what to write instead.
var stumbles = []stumble{
	of(`\b(of) (ours|theirs)\b`, "of our", "of their"),                                                                // our X, their X
	of(`\bwho`+`ever\b|\bsome`+`body\b`, "hoever", "omebody"),                                                         // the person who, someone
	of(`\bno`+`body (minds|cares|does|is|waits|else)\b`, "obody "),                                                    // no one
	of(`\ba`+`new\b`, "a"+"new"),                                                                                      // again
	of(`\b(is|are) none\b`, "s none", "re none"),                                                                      // is not a ..., does not exist
	of(`\b(what|that) is no\b|\bno such one\b`, "hat is no", "o such one"),                                            // what is not a ...
	of(`\b(nil|empty|0): (no`+`body|none|nothing|it is|they are|there)`, "nil: ", "empty: ", "0: "),                   // nil if ...
	of(`\b(broke|breaks) off\b`, "roke off", "reaks off"),                                                             // ended early
	of(`\b(is|are) told of\b`, "told of"),                                                                             // is notified of
	of(`\bfor good\b|\bby way of\b|\bin force\b`, "or good", "y way of", "n force"),                                   // permanently, through, current
	of(`\bwhere`+`from\b|\bthere`+`of\b|\bthere`+`in\b`, "herefrom", "hereof", "herein"),                              // say what is meant
	of(`col`+`our|behavi`+`our|neighb`+`our|\blabel`+`led\b`, "olour", "aviour", "ghbour", "abelled"),                 // American spelling
	of(`(recogn|normal|organ)`+`is(e|a|i)`, "ognis", "rmalis", "rganis"),                                              // American spelling
	of(`(^|[^'"[:word:]])(lear`+`nt|spe`+`lt)([^\]'":[:word:]]|$)|['"](lear`+`nt|spe`+`lt)[ ,.]`, "earn"+"t", "pelt"), // learned, spelled; a source of the API keeps its name
	of(`\bTestWhat`+`Is|\bTestWho`+`May`, "estwhatis", "estwhomay"),                                                   // say what happens, as a sentence
}

func of(wording string, fragments ...string) stumble {
	return stumble{fragments, regexp.MustCompile(`(?i)` + wording)}
}

// mayBeIn reports whether a text in lower case has a fragment of the stumble.
func (s stumble) mayBeIn(lower string) bool {
	return slices.ContainsFunc(s.fragments, func(fragment string) bool { return strings.Contains(lower, fragment) })
}

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
		checkProse(t, file, string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkProse reports each line of a file that someone would stumble on.
func checkProse(t *testing.T, file, text string) {
	t.Helper()
	all := strings.ToLower(text)
	possible := slices.DeleteFunc(slices.Clone(stumbles), func(s stumble) bool { return !s.mayBeIn(all) })
	for i, line := range strings.Split(text, "\n") {
		if !utf8.ValidString(line) {
			t.Errorf("%s:%d: is not UTF-8", file, i+1)
		}
		lower := strings.ToLower(line)
		for _, stumble := range possible {
			if !stumble.mayBeIn(lower) {
				continue
			}
			if found := stumble.wording.FindString(line); found != "" {
				t.Errorf("%s:%d: %q: say it in plain English (see policy/prose_test.go)", file, i+1, found)
			}
		}
	}
}
