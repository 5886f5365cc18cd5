package wire_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
)

// events splits chunks, each in memory that is overwritten afterwards.
func events(chunks ...string) []string {
	var split wire.Splitter
	var found []string
	buffer := make([]byte, 0, 1024)
	for _, chunk := range chunks {
		buffer = append(buffer[:0], chunk...)
		split.Write(buffer, func(event wire.Event) { found = append(found, event.Name+"|"+string(event.Data)) })
		if string(buffer) != chunk {
			found = append(found, "the splitter wrote into the chunk, which is on its way to the client")
		}
		for i := range buffer {
			buffer[i] = '#'
		}
	}
	return found
}

// standard finds the events of a whole stream as the standard words it.
func standard(stream string) []string {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var found, data []string
	name := ""
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if data != nil {
				found = append(found, name+"|"+strings.Join(data, "\n"))
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data = append(data, value)
		}
	}
	return found
}

const stream = "\xef\xbb\xbf: comment\n\nevent: a\ndata: {\"x\":\"é漢\"}\n\ndata:one\ndata\ndata:  two \nid: 7\nretry: 1\n\n" +
	"event: without data\n\n:ping\n\nevent:a\ndata\n\nevent: z\nevent: b\nunknown: x\ndata: last\n\ndata: never ended\n"

func TestEventsAreFoundAsTheStandardSays(t *testing.T) {
	t.Parallel()

	want := []string{`a|{"x":"é漢"}`, "|one\n\n two ", "a|", "b|last"}
	if got := events(stream); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := standard(stream); !reflect.DeepEqual(got, want) {
		t.Errorf("the test's own reading is %q, want %q", got, want)
	}
}

// S26, W14.
func TestEventsAreTheSameHoweverTheStreamIsCut(t *testing.T) {
	t.Parallel()

	for _, ending := range []string{"\n", "\r\n", "\r"} {
		text := strings.ReplaceAll(stream, "\n", ending)
		want := standard(text)
		for i := range len(text) {
			for _, j := range []int{i, min(i+1, len(text)), min(i+2, len(text)), len(text)} {
				if got := events(text[:i], text[i:j], text[j:]); !reflect.DeepEqual(got, want) {
					t.Fatalf("%q cut at %d and %d: %q, want %q", ending, i, j, got, want)
				}
			}
		}
		if got := events(strings.Split(text, "")...); !reflect.DeepEqual(got, want) {
			t.Errorf("%q byte by byte: %q, want %q", ending, got, want)
		}
	}
}

func TestAnEventIsYieldedWithItsLastByte(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"data: x\n\n", "data: x\r\r", "data: x\r\n\r"} {
		if got := events(text); len(got) != 1 {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestAnOverlongEventIsSkippedAndTheStreamGoesOn(t *testing.T) {
	t.Parallel()

	part := strings.Repeat("x", 1<<20)
	for name, long := range map[string]func(write func(string)){
		"one line": func(write func(string)) {
			write("event: long\ndata: ")
			for range wire.MaxEvent/len(part) + 1 {
				write(part)
			}
			write("\n\n")
		},
		"one line in one piece": func(write func(string)) {
			write("data: " + strings.Repeat("y", wire.MaxEvent+1) + "\n\n")
		},
		"many lines": func(write func(string)) {
			for range wire.MaxEvent/len(part) + 1 {
				write("data: " + part + "\n")
			}
			write("\n")
		},
		"a comment": func(write func(string)) {
			write("data: lost with it\n:")
			for range wire.MaxEvent/len(part) + 1 {
				write(part)
			}
			write("\ndata: and this\n\n")
		},
	} {
		var split wire.Splitter
		var found []string
		write := func(text string) {
			split.Write([]byte(text), func(event wire.Event) { found = append(found, event.Name+"|"+string(event.Data)) })
		}
		write("data: before\n\n")
		long(write)
		write("event: n\ndata: after\n\n")
		if want := []string{"|before", "n|after"}; !reflect.DeepEqual(found, want) {
			t.Errorf("%s: %d events, the last %.40q; want %q", name, len(found), found[len(found)-1], want)
		}
	}
}

func TestTheLongestEventIsYieldedWhole(t *testing.T) {
	t.Parallel()

	data := bytes.Repeat([]byte("x"), wire.MaxEvent-len("data: ")-1)
	var split wire.Splitter
	size := 0
	for _, chunk := range [][]byte{[]byte("data: "), data, []byte("\n\n")} {
		split.Write(chunk, func(event wire.Event) { size += len(event.Data) })
	}
	if size != len(data) {
		t.Errorf("%d bytes, want %d", size, len(data))
	}
}

// FuzzSplitter cuts a stream anywhere, each cut as far behind the one before as
// the next byte of cuts says, and holds the events to what the standard says.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte(stream), []byte{3, 7})
	f.Add([]byte("data: a\r\n\r\ndata: b\r\rdata: c\n\n\r\n"), []byte{1, 2})
	f.Add([]byte("\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"), []byte{1})
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		var chunks []string
		rest := string(text)
		for i := 0; rest != ""; i++ {
			size := len(rest)
			if len(cuts) > 0 {
				size = min(size, int(cuts[i%len(cuts)])+1)
			}
			chunks, rest = append(chunks, rest[:size]), rest[size:]
		}
		if got, want := events(chunks...), standard(string(text)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %q, want %q", chunks, got, want)
		}
	})
}
