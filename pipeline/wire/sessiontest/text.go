package sessiontest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
)

// writer invents the session's texts.
type writer struct {
	random *rand.Rand
	cjk    bool
}

func pick(w *writer, from ...string) string { return from[w.random.IntN(len(from))] }

func (w *writer) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *writer) noun() string {
	return pick(w, "invoice", "session", "cursor", "ledger", "token", "buffer", "tenant", "window", "archive", "digest", "quota", "stream",
		"listener", "migration", "parser", "budget", "lane", "webhook", "cache", "deadline", "payload", "checkpoint", "retry", "replica")
}

func (w *writer) verb() string {
	return pick(w, "flush", "seal", "resolve", "rotate", "merge", "decode", "reserve", "publish", "truncate", "restore", "compare", "schedule", "reject", "stamp")
}

// name makes a Go name from two words and a number.
func (w *writer) name() string {
	verb, noun := w.verb(), w.noun()
	return strings.ToUpper(verb[:1]) + verb[1:] + strings.ToUpper(noun[:1]) + noun[1:]
}

// sentence is a plain sentence about the work.
func (w *writer) sentence() string {
	if w.cjk && w.chance(30) {
		return pick(w,
			"这个函数在并发写入时会丢失最后一条记录,需要先加锁再比较版本号。",
			"テストは通りますが、境界値が一つずれています。先に再現手順を確認します。",
			"캐시가 만료된 뒤에도 오래된 값을 반환하는 문제가 남아 있습니다.",
			"日志里同时出现了两个 request id 😀,说明重试没有取消第一次调用。")
	}
	return fmt.Sprintf("The %s has to %s the %s before the %s is %s, otherwise %d of them are lost in %s.",
		w.noun(), w.verb(), w.noun(), w.noun(), pick(w, "closed", "reused", "counted twice", "visible to readers", "written back"),
		2+w.random.IntN(97), w.name())
}

// prose is about size bytes of sentences.
func (w *writer) prose(size int) string {
	var text strings.Builder
	for text.Len() < size {
		if text.Len() > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(w.sentence())
	}
	return text.String()
}

// code is about size bytes of Go source.
func (w *writer) code(pkg string, size int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "package %s\n\nimport (\n\t\"context\"\n\t\"fmt\"\n)\n", pkg)
	for text.Len() < size {
		name, noun := w.name(), w.noun()
		fmt.Fprintf(&text, "\n// %s %s\nfunc (s *Store) %s(ctx context.Context, %s string) (int, error) {\n", name, w.sentence(), name, noun)
		for range 1 + w.random.IntN(4) {
			fmt.Fprintf(&text, "\tif len(%s) > %d && s.%s != nil {\n\t\treturn 0, fmt.Errorf(\"%s %s: %%w\", s.err%d)\n\t}\n",
				noun, w.random.IntN(4096), w.noun(), w.verb(), noun, w.random.IntN(90))
		}
		fmt.Fprintf(&text, "\treturn s.count[%s] + 0x%04x, nil\n}\n", noun, w.random.IntN(65536))
	}
	return text.String()
}

// numbered is a read tool's output for a source file.
func numbered(source string) string {
	var text strings.Builder
	line := 0
	for part := range strings.Lines(source) {
		line++
		fmt.Fprintf(&text, "%6d→%s", line, part)
	}
	return text.String()
}

// testRun is the output of go test, failures last.
func (w *writer) testRun(size int, fails bool) string {
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, "=== RUN   Test%s\n--- PASS: Test%s (%d.%02ds)\n", w.name(), w.name(), w.random.IntN(3), w.random.IntN(100))
	}
	const failure = "FAIL"
	pkg := "example.com/ledger/internal/" + w.noun()
	if !fails {
		fmt.Fprintf(&text, "PASS\nok  \t%s\t%d.%03ds", pkg, w.random.IntN(20), w.random.IntN(1000))
		return text.String()
	}
	fmt.Fprintf(&text, "--- FAIL: Test%s (0.%02ds)\n    %s_test.go:%d: got %d, want %d\n%s\nFAIL\t%s\t%d.%03ds\n%s",
		w.name(), w.random.IntN(100), w.noun(), 10+w.random.IntN(400), w.random.IntN(50), 50+w.random.IntN(50), failure, pkg, w.random.IntN(20), w.random.IntN(1000), failure)
	return text.String()
}

// grep is the output of a search.
func (w *writer) grep(size int, pattern string, files []string) string {
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, "%s:%d:\t%s := s.%s(ctx, %q) // %s\n", files[w.random.IntN(len(files))], 1+w.random.IntN(900), w.noun(), pattern, w.noun(), w.noun())
	}
	return text.String()
}

// picture is a small PNG in base64.
func (w *writer) picture() string {
	side := 24 + w.random.IntN(40)
	canvas := image.NewRGBA(image.Rect(0, 0, side, side))
	for x := range side {
		for y := range side {
			shade := uint8(w.random.UintN(256)) //nolint:gosec // below 256
			canvas.Set(x, y, color.RGBA{R: shade, G: uint8(4 * x), B: uint8(4 * y), A: 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, canvas); err != nil {
		panic(fmt.Sprintf("sessiontest: encode a picture: %v", err))
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// quote encodes a string as JSON, without the escapes that only HTML needs.
func quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(fmt.Sprintf("sessiontest: encode a string: %v", err))
	}
	return strings.TrimSuffix(out.String(), "\n")
}
